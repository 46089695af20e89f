package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/identity"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/internal/token"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// answered is what the gateway gets, as JSON.
func answered(t *testing.T, a authorizer, event []byte) (string, error) {
	t.Helper()
	answer, err := a.authorize(context.Background(), event)
	if err != nil {
		if answer != nil {
			t.Errorf("an answer %+v beside the error %v", answer, err)
		}
		return "", err
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), nil
}

// sent is a sample event with another token; "" is none at all.
func sent(t *testing.T, name, authorization string) []byte {
	t.Helper()
	event := string(lambdatest.Sample(t, name))
	if authorization != "" {
		return []byte(strings.ReplaceAll(event, "Bearer "+lambdatest.Token, authorization))
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(event), &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "authorizationToken")
	for _, headers := range []string{"headers", "multiValueHeaders"} {
		if h, ok := members[headers].(map[string]any); ok {
			delete(h, "authorization")
			delete(h, "Authorization")
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

const unknown = "Bearer idem_test_00000000000000000000000000000EXAMPLEnobody02TQVP5"

// allowedContext is what an allowed caller's key says, as JSON.
var allowedContext = fmt.Sprintf(`{"scopes":%q,"tenant":"tenant-a"}`, apikey.JoinScopes(apikey.Scopes()))

// stage has, beside the samples' key, one that has expired and one that is revoked.
func stage(t *testing.T) (a authorizer, expired, revoked string) {
	t.Helper()
	s := lambdatest.New(t)
	expired, revoked = token.New(token.Live), token.New(token.Live)
	s.Key(t, apikey.Key{ID: token.ID(expired), Tenant: lambdatest.Tenant, Scopes: apikey.Scopes(), ExpiresAt: time.Now().Add(-time.Second)})
	s.Key(t, apikey.Key{ID: token.ID(revoked), Tenant: lambdatest.Tenant, Scopes: apikey.Scopes()})
	if _, err := s.KeyTable().Revoke(t.Context(), token.ID(revoked), "ada", time.Now()); err != nil {
		t.Fatal(err)
	}
	return authorizer{keys: s.Keys(t), log: discard()}, "Bearer " + expired, "Bearer " + revoked
}

// An HTTP API takes the simple response: false is its 403 (docs/platform.md "API Gateway").
func TestAuthorizeForAnHTTPAPI(t *testing.T) {
	a, expired, revoked := stage(t)
	for authorization, want := range map[string]string{
		"Bearer " + lambdatest.Token: `{"isAuthorized":true,"context":` + allowedContext + `}`,
		expired:                      `{"isAuthorized":false}`,
		revoked:                      `{"isAuthorized":false}`,
		unknown:                      `{"isAuthorized":false}`,
		"Basic YTpi":                 `{"isAuthorized":false}`,
		"":                           `{"isAuthorized":false}`,
	} {
		if got, err := answered(t, a, sent(t, "authorizer-http", authorization)); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", authorization, got, err, want)
		}
	}
}

// A REST API takes a policy: a denial is its 403, and only the error "Unauthorized" its 401. The policy is for the whole
// stage, because the gateway keeps it for the caller's other requests.
func TestAuthorizeForARESTAPI(t *testing.T) {
	a, expired, revoked := stage(t)
	const statement = `"policyDocument":{"Version":"2012-10-17","Statement":[{"Action":["execute-api:Invoke"],"Effect":"%","Resource":["arn:aws:execute-api:us-east-1:000000000000:f6g7h8i9j0/prod/*"]}]}`
	allow := `{"principalId":"tenant-a",` + strings.Replace(statement, "%", "Allow", 1) + `,"context":` + allowedContext + `}`
	deny := `{"principalId":"unknown",` + strings.Replace(statement, "%", "Deny", 1) + `}`
	for _, event := range []string{"authorizer-rest-token", "authorizer-rest-request"} {
		for authorization, want := range map[string]string{"Bearer " + lambdatest.Token: allow, "bearer " + lambdatest.Token: allow, unknown: deny, "Bearer short": deny, expired: deny, revoked: deny} {
			if got, err := answered(t, a, sent(t, event, authorization)); err != nil || got != want {
				t.Errorf("%s, %q: %s, %v, want %s", event, authorization, got, err, want)
			}
		}
		for _, authorization := range []string{"", "Basic YTpi", "Bearer"} {
			if got, err := answered(t, a, sent(t, event, authorization)); err == nil || err.Error() != "Unauthorized" {
				t.Errorf("%s, %q: %s, %v, want the error Unauthorized", event, authorization, got, err)
			}
		}
	}
}

// docs/payments-api.md "API keys": with TEST_KEYS=refuse a test key gets 403 of either gateway.
func TestAuthorizeRefusesTestKeys(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("TEST_KEYS", "refuse")
	cfg, err := config.Read[config.Authorizer]()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := apikey.New(keysOf(cfg, s.Client, discard()))
	if err != nil {
		t.Fatal(err)
	}
	a := authorizer{keys: keys, log: discard()}
	for event, want := range map[string]string{"authorizer-http": `{"isAuthorized":false}`, "authorizer-rest-token": `"Effect":"Deny"`} {
		if got, err := answered(t, a, sent(t, event, "Bearer "+lambdatest.Token)); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %s, %v", event, got, err)
		}
	}
}

// A tenant's own limits are said to the function, in both forms, and where it has none nothing is.
func TestAuthorizeSaysTheTenantsLimits(t *testing.T) {
	s := lambdatest.New(t)
	a := authorizer{keys: s.Keys(t), log: discard()}
	if err := s.KeyTable().Limit(t.Context(), lambdatest.Tenant, token.ID(lambdatest.Token), apikey.Limits{NewKeysPerSecond: 5, LookUpsPerSecond: 9}); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"authorizer-http", "authorizer-rest-token", "authorizer-rest-request"} {
		got, err := answered(t, a, sent(t, event, "Bearer "+lambdatest.Token))
		if err != nil || !strings.Contains(got, `"limits":"new_keys=5 look_ups=9"`) {
			t.Errorf("%s: %s, %v", event, got, err)
		}
	}
}

// Store trouble fails closed, and is no word about the caller: the gateway's 500, not 401 or 403.
func TestAuthorizeWhileTheTableIsDown(t *testing.T) {
	client := dynamotest.Client("http://127.0.0.1:1", func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	keys, err := apikey.New(apikey.Config{Table: apikey.Table{Client: client, Name: "keys"}})
	if err != nil {
		t.Fatal(err)
	}
	a := authorizer{keys: keys, log: discard()}
	for _, event := range []string{"authorizer-http", "authorizer-rest-token", "authorizer-rest-request"} {
		got, err := answered(t, a, lambdatest.Sample(t, event))
		if err == nil || errors.Is(err, errUnauthorized) || strings.Contains(err.Error(), lambdatest.Token) {
			t.Errorf("%s: %s, %v, want an error of its own", event, got, err)
		}
	}
	if _, err := answered(t, a, []byte(`[]`)); err == nil {
		t.Error("an event that is none is answered")
	}
}

func TestContextIsWhereTheAPILooks(t *testing.T) {
	if contextTenant != identity.ContextTenant || contextScopes != identity.ContextScopes || contextLimits != identity.ContextLimits {
		t.Errorf("the authorizer writes %q, %q, %q; the api reads %q, %q, %q",
			contextTenant, contextScopes, contextLimits, identity.ContextTenant, identity.ContextScopes, identity.ContextLimits)
	}
}

func TestEveryMethodOfTheStage(t *testing.T) {
	for arn, want := range map[string]string{
		"arn:aws:execute-api:eu-west-1:1:api/prod/POST/v1/payments": "arn:aws:execute-api:eu-west-1:1:api/prod/*",
		"arn:aws:execute-api:eu-west-1:1:api/$default/GET/":         "arn:aws:execute-api:eu-west-1:1:api/$default/*",
		"arn:aws:execute-api:eu-west-1:1:api/prod/POST":             "arn:aws:execute-api:eu-west-1:1:api/prod/*",
		"arn:aws:execute-api:eu-west-1:1:api/prod":                  "arn:aws:execute-api:eu-west-1:1:api/prod", // never more than what was asked for
		"": "",
	} {
		if got := everyMethod(arn); got != want {
			t.Errorf("%q widens to %q, want %q", arn, got, want)
		}
	}
}
