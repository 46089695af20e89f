package identity_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/identity"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/internal/token"
)

var silent = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// identified returns what the identifier says of the request that an event makes, on the route that the request has.
func identified(t *testing.T, event []byte, identify func(*http.Request) (middleware.Identity, error)) (who middleware.Identity, err error) {
	t.Helper()
	mux := http.NewServeMux()
	for _, pattern := range []string{"POST /v1/payments", "POST /v1/payouts", "GET /v1/accounts/{id}", "/"} {
		mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) { who, err = identify(r) })
	}
	if _, failed := awslambda.HTTP(mux, awslambda.Config{}).Invoke(context.Background(), event); failed != nil {
		t.Fatal(failed)
	}
	return who, err
}

// codeOf is the code of the problem that a refusal is answered with, "" where it has none of its own.
func codeOf(err error) string {
	var rejected *idem.RejectedError
	if !errors.As(err, &rejected) {
		return ""
	}
	return rejected.Problem.Code
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
		if who, err := identified(t, lambdatest.Sample(t, name), identity.Gateway(nil)); err != nil || who.Tenant != lambdatest.Tenant {
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
		if who, err := identified(t, event, identity.Gateway(nil)); !errors.Is(err, middleware.ErrUnauthenticated) || who != (middleware.Identity{}) {
			t.Errorf("%s: %+v, %v, want ErrUnauthenticated", name, who, err)
		}
	}
}

// docs/payments-api.md "API keys": a key opens the routes of its scopes, and no other.
func TestScopesOpenRoutes(t *testing.T) {
	with := func(scopes any) []byte {
		return changed(t, "api-http-payment", map[string]any{"lambda": map[string]any{"tenant": lambdatest.Tenant, "scopes": scopes}})
	}
	for _, scopes := range []string{"payments:write", "accounts:read payments:write", "payments:write refunds:write"} {
		if who, err := identified(t, with(scopes), identity.Gateway(nil)); err != nil || who.Tenant != lambdatest.Tenant {
			t.Errorf("%q: %+v, %v", scopes, who, err)
		}
	}
	for name, scopes := range map[string]any{
		"none": "", "no member": nil, "others": "payments:read payouts:write", "one that begins so": "payments:writer",
		"another case": "Payments:Write", "a list": []string{"payments:write"},
	} {
		if who, err := identified(t, with(scopes), identity.Gateway(nil)); codeOf(err) != "scope_missing" || who != (middleware.Identity{}) {
			t.Errorf("%s: %+v, %v, want scope_missing", name, who, err)
		}
	}
	// What no scope was given to is closed, whatever the key may.
	elsewhere := bytes.ReplaceAll(lambdatest.Sample(t, "api-http-payment"), []byte("/v1/payments"), []byte("/v1/secrets"))
	if who, err := identified(t, elsewhere, identity.Gateway(nil)); !errors.Is(err, middleware.ErrForbidden) || who != (middleware.Identity{}) {
		t.Errorf("a route without a scope: %+v, %v, want ErrForbidden", who, err)
	}
}

// docs/payments-api.md "API keys": with TEST_KEYS=refuse a test key gets 403, as one that is nobody's.
func TestFunctionRefusesTestKeys(t *testing.T) {
	s := lambdatest.New(t)
	live := token.New(token.Live)
	s.Key(t, apikey.Key{ID: token.ID(live), Tenant: "tenant-b", Scopes: apikey.Scopes()})
	keys, err := apikey.New(apikey.Config{Table: s.KeyTable(), RefuseTest: true})
	if err != nil {
		t.Fatal(err)
	}
	for bearer, want := range map[string]error{lambdatest.Token: middleware.ErrForbidden, live: nil} {
		who, err := identified(t, lambdatest.Sample(t, "api-http-payment"), func(r *http.Request) (middleware.Identity, error) {
			r.Header.Set("Authorization", "Bearer "+bearer)
			return identity.Function(keys, nil, silent)(r)
		})
		if !errors.Is(err, want) || (who.Tenant != "") != (want == nil) {
			t.Errorf("%s: %+v, %v, want %v", bearer[:10], who, err, want)
		}
	}
}

// The function's own authenticator does not look at what a gateway says.
func TestFunctionAuthenticatesByItself(t *testing.T) {
	s := lambdatest.New(t)
	reading, expired, revoked := token.New(token.Live), token.New(token.Live), token.New(token.Live)
	s.Key(t, apikey.Key{ID: token.ID(reading), Tenant: lambdatest.Tenant, Scopes: []apikey.Scope{apikey.PaymentsRead}})
	s.Key(t, apikey.Key{ID: token.ID(expired), Tenant: lambdatest.Tenant, Scopes: apikey.Scopes(), ExpiresAt: time.Now()})
	s.Key(t, apikey.Key{ID: token.ID(revoked), Tenant: lambdatest.Tenant, Scopes: apikey.Scopes()})
	if _, err := s.KeyTable().Revoke(t.Context(), token.ID(revoked), "ada", time.Now()); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	identify := identity.Function(s.Keys(t), nil, slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct {
		name, authorization, tenant string
		err                         error
		code                        string
	}{
		{"known", "Bearer " + lambdatest.Token, lambdatest.Tenant, nil, ""},
		{"missing", "", "", middleware.ErrUnauthenticated, ""},
		{"another scheme", "Basic YTpi", "", middleware.ErrUnauthenticated, ""},
		{"unknown", "Bearer " + token.New(token.Test), "", middleware.ErrForbidden, ""},
		{"expired", "Bearer " + expired, "", nil, "api_key_expired"},
		{"revoked", "Bearer " + revoked, "", nil, "api_key_revoked"},
		{"without the scope", "Bearer " + reading, "", nil, "scope_missing"},
	} {
		log.Reset()
		who, err := identified(t, changed(t, "api-http-payment", map[string]any{"lambda": map[string]any{"tenant": "tenant-b"}}), func(r *http.Request) (middleware.Identity, error) {
			r.Header.Del("Authorization")
			if c.authorization != "" {
				r.Header.Set("Authorization", c.authorization)
			}
			return identify(r)
		})
		if who.Tenant != c.tenant || codeOf(err) != c.code || c.code == "" && !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v, want %q, %v, %q", c.name, who, err, c.tenant, c.err, c.code)
		}
		if denied := err != nil && c.code != "scope_missing"; denied != strings.Contains(log.String(), "msg=auth.denied reason=") || strings.Contains(log.String(), token.Live) {
			t.Errorf("%s: logged %q, want auth.denied and its reason: %t", c.name, &log, denied)
		}
	}

	refusing := dynamotest.Client("http://127.0.0.1:1", func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	keys, err := apikey.New(apikey.Config{Table: apikey.Table{Client: refusing, Name: s.APIKeys}})
	if err != nil {
		t.Fatal(err)
	}
	who, err := identified(t, lambdatest.Sample(t, "api-http-payment"), identity.Function(keys, nil, silent))
	if err == nil || errors.Is(err, middleware.ErrUnauthenticated) || errors.Is(err, middleware.ErrForbidden) || codeOf(err) != "" || who.Tenant != "" {
		t.Errorf("table down: %+v, %v, want an error that says nothing of the caller", who, err)
	}
}
