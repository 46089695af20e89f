package identity_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/identity"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// identified returns what the identifier says of the request that an event makes.
func identified(t *testing.T, event []byte, identify func(*http.Request) (middleware.Identity, error)) (who middleware.Identity, err error) {
	t.Helper()
	handler := awslambda.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { who, err = identify(r) }), awslambda.Config{})
	if _, failed := handler.Invoke(context.Background(), event); failed != nil {
		t.Fatal(failed)
	}
	return who, err
}

// changed is a sample event in which the authorizer says something else, and the client claims to be anybody.
func changed(t *testing.T, name string, authorizer any) []byte {
	t.Helper()
	var event map[string]any
	if err := json.Unmarshal(lambdatest.Sample(t, name), &event); err != nil {
		t.Fatal(err)
	}
	headers := event["headers"].(map[string]any)
	for _, header := range []string{"tenant", "x-tenant", "x-tenant-id", "x-amzn-tenant"} {
		headers[header] = lambdatest.Tenant
	}
	event["queryStringParameters"], event["rawQueryString"] = map[string]any{"tenant": lambdatest.Tenant}, "tenant="+lambdatest.Tenant
	event["requestContext"].(map[string]any)["authorizer"] = authorizer
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// docs/semantics.md "Words": the tenant is from the authorizer's context only.
func TestGatewayTrustsTheAuthorizerAlone(t *testing.T) {
	for _, name := range []string{"api-http-payment", "api-rest-payment"} {
		if who, err := identified(t, lambdatest.Sample(t, name), identity.Gateway); err != nil || who.Tenant != lambdatest.Tenant {
			t.Errorf("%s: %+v, %v, want %s", name, who, err, lambdatest.Tenant)
		}
	}
	for name, event := range map[string][]byte{
		"no authorizer":              changed(t, "api-http-payment", nil),
		"no authorizer, REST":        changed(t, "api-rest-payment", nil),
		"no context":                 changed(t, "api-http-payment", map[string]any{"lambda": nil}),
		"no tenant":                  changed(t, "api-http-payment", map[string]any{"lambda": map[string]any{"tenantId": lambdatest.Tenant}}),
		"empty tenant":               changed(t, "api-http-payment", map[string]any{"lambda": map[string]any{"tenant": ""}}),
		"null tenant":                changed(t, "api-http-payment", map[string]any{"lambda": map[string]any{"tenant": nil}}),
		"tenant that is no name":     changed(t, "api-http-payment", map[string]any{"lambda": map[string]any{"tenant": []string{lambdatest.Tenant}}}),
		"a claim that users choose":  changed(t, "api-http-payment", map[string]any{"jwt": map[string]any{"claims": map[string]any{"tenant": lambdatest.Tenant}}}),
		"a Cognito claim":            changed(t, "api-rest-payment", map[string]any{"claims": map[string]any{"tenant": lambdatest.Tenant}}),
		"principal without a tenant": changed(t, "api-rest-payment", map[string]any{"principalId": lambdatest.Tenant}),
		"JWT authorizer":             lambdatest.Sample(t, "api-http-jwt"),
		"IAM":                        lambdatest.Sample(t, "api-url-payment"),
		"load balancer":              lambdatest.Sample(t, "api-alb-payment"),
	} {
		if who, err := identified(t, event, identity.Gateway); !errors.Is(err, middleware.ErrUnauthenticated) || who != (middleware.Identity{}) {
			t.Errorf("%s: %+v, %v, want ErrUnauthenticated", name, who, err)
		}
	}
}

// The function's own authenticator does not look at what a gateway says.
func TestFunctionAuthenticatesByItself(t *testing.T) {
	s := lambdatest.New(t)
	identify := identity.Function(apikey.Authenticator{Client: s.Client, Table: s.Payments})
	for _, c := range []struct {
		name, authorization, tenant string
		err                         error
	}{
		{"known", "Bearer " + lambdatest.Token, lambdatest.Tenant, nil},
		{"missing", "", "", middleware.ErrUnauthenticated},
		{"another scheme", "Basic YTpi", "", middleware.ErrUnauthenticated},
		{"unknown", "Bearer another-token-of-tenant-a", "", middleware.ErrForbidden},
	} {
		who, err := identified(t, changed(t, "api-http-payment", map[string]any{"lambda": map[string]any{"tenant": "tenant-b"}}), func(r *http.Request) (middleware.Identity, error) {
			r.Header.Del("Authorization")
			if c.authorization != "" {
				r.Header.Set("Authorization", c.authorization)
			}
			return identify(r)
		})
		if who.Tenant != c.tenant || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v, want %q, %v", c.name, who, err, c.tenant, c.err)
		}
	}

	refusing := dynamotest.Client("http://127.0.0.1:1", func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	down := identity.Function(apikey.Authenticator{Client: refusing, Table: s.Payments})
	who, err := identified(t, lambdatest.Sample(t, "api-http-payment"), down)
	if err == nil || errors.Is(err, middleware.ErrUnauthenticated) || errors.Is(err, middleware.ErrForbidden) || who.Tenant != "" {
		t.Errorf("table down: %+v, %v, want an error that says nothing of the caller", who, err)
	}
}
