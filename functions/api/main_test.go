package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// started is the handler as the function's environment makes it.
func started(t *testing.T) awslambda.Handler {
	t.Helper()
	cfg, err := config.Read[config.API]()
	if err != nil {
		t.Fatal(err)
	}
	h, err := handler(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// answer has what the gateways' response forms share.
type answer struct {
	StatusCode        int                 `json:"statusCode"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// header is a header of either form, "" where it is not there.
func (a answer) header(name string) string {
	for n, value := range a.Headers {
		if strings.EqualFold(n, name) {
			return value
		}
	}
	for n, values := range a.MultiValueHeaders {
		if strings.EqualFold(n, name) {
			return strings.Join(values, ", ")
		}
	}
	return ""
}

func invoke(t *testing.T, h awslambda.Handler, event []byte) answer {
	t.Helper()
	raw, err := h.Invoke(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	if a.IsBase64Encoded {
		t.Errorf("JSON is sent as base64: %s", raw)
	}
	return a
}

// events/README.md: the payments of the HTTP and of the REST event are one and the same, so that the second replays.
func TestSamplesOfBothGatewaysAreOneRequest(t *testing.T) {
	s := lambdatest.New(t)
	h := started(t)
	first := invoke(t, h, lambdatest.Sample(t, "api-http-payment"))
	second := invoke(t, h, lambdatest.Sample(t, "api-rest-payment"))
	if first.StatusCode != 202 || first.header("Idempotency-Status") != "executed" || first.header("Location") == "" || first.header("Retry-After") == "" {
		t.Errorf("first %+v", first)
	}
	if second.StatusCode != 202 || second.header("Idempotent-Replayed") != "true" || second.Body != first.Body {
		t.Errorf("second %+v, want a replay of %+v", second, first)
	}
	records, messages := s.Items(t, s.Idempotency), s.Items(t, s.Outbox)
	if len(records) != 1 || len(messages) != 1 {
		t.Errorf("%d records, %d messages", len(records), len(messages))
	}
	payments := slices.DeleteFunc(s.Items(t, s.Payments), func(item map[string]types.AttributeValue) bool {
		return !strings.HasPrefix(item["pk"].(*types.AttributeValueMemberS).Value, "payment#"+lambdatest.Tenant+"/")
	})
	if len(payments) != 1 || len(s.Charges(t)) != 0 {
		t.Errorf("%d payments, %d charges", len(payments), len(s.Charges(t)))
	}
}

// docs/design.md "Kinds of operation": the function calls the provider and settles within the invocation; no wake-up is
// needed.
func TestSamplePayoutIsDeliveredInline(t *testing.T) {
	s := lambdatest.New(t)
	s.Account(t, lambdatest.Tenant, "acct_1", 1000)
	h := started(t)
	first := invoke(t, h, lambdatest.Sample(t, "api-http-payout"))
	second := invoke(t, h, lambdatest.Sample(t, "api-http-payout"))
	if first.StatusCode != 201 || first.header("Idempotency-Status") != "executed" || second.StatusCode != 201 || second.Body != first.Body || second.header("Idempotent-Replayed") != "true" {
		t.Errorf("payout %+v, then %+v", first, second)
	}
	if got := invoke(t, h, lambdatest.Sample(t, "api-http-account")); got.Body != `{"id":"acct_1","currency":"EUR","balance":500}` {
		t.Errorf("account %+v", got)
	}
	if screenings, payouts := s.Payouts(t); len(screenings) != 1 || len(payouts) != 1 || payouts[0].Amount != 500 || payouts[0].Attempts != 1 {
		t.Errorf("provider made %+v and %+v", screenings, payouts)
	}
	if sent := s.Queues.WakeUps(); len(sent) > 0 {
		t.Errorf("queue of wake-ups %+v", sent)
	}
}

// What the function can't finish it leaves to the worker: a delayed wake-up stands in the queue of wake-ups, or a copy of what is
// given up in the dead-letter queue, with the final answer told at once and the funds back.
func TestSamplePayoutThatIsNotFinishedInline(t *testing.T) {
	s := lambdatest.New(t)
	s.Account(t, lambdatest.Tenant, "acct_1", 1000)
	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Payout, Fault: provider.RateLimit, DelayMillis: 20_000}); err != nil {
		t.Fatal(err)
	}
	left := invoke(t, started(t), lambdatest.Sample(t, "api-http-payout"))
	var accepted struct{ Operation string }
	if err := json.Unmarshal([]byte(left.Body), &accepted); err != nil || left.StatusCode != 202 || left.header("Location") != "/v1/operations/"+accepted.Operation {
		t.Errorf("%+v, %v", left, err)
	}
	if sent := s.Queues.WakeUps(); len(sent) != 1 || sent[0].Body != `{"message":"`+accepted.Operation+`.2"}` || sent[0].DelaySeconds < 10 {
		t.Errorf("queue of wake-ups %+v", sent)
	}
	if screenings, payouts := s.Payouts(t); len(screenings) != 1 || len(payouts) != 0 {
		t.Errorf("provider made %+v and %+v", screenings, payouts)
	}

	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Screening, Fault: provider.RateLimit}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ATTEMPTS_MAX", "1")
	other := strings.Replace(string(lambdatest.Sample(t, "api-http-payout")), "payout-1", "payout-2", 1)
	if failed := invoke(t, started(t), []byte(other)); failed.StatusCode != 502 || !strings.Contains(failed.Body, "provider_unavailable") {
		t.Errorf("%+v", failed)
	}
	if sent := s.Queues.Dead(); len(sent) != 1 || !strings.Contains(sent[0].Body, `"reason":"attempts over"`) {
		t.Errorf("dead-letter queue %+v", sent)
	}
	if got := invoke(t, started(t), lambdatest.Sample(t, "api-http-account")); got.Body != `{"id":"acct_1","currency":"EUR","balance":500}` {
		t.Errorf("account %+v", got)
	}
}

func TestSampleTransferAndAccount(t *testing.T) {
	s := lambdatest.New(t)
	s.Account(t, lambdatest.Tenant, "acct_1", 1000)
	s.Account(t, lambdatest.Tenant, "acct_2", 0)
	h := started(t)
	first := invoke(t, h, lambdatest.Sample(t, "api-http-transfer"))
	second := invoke(t, h, lambdatest.Sample(t, "api-http-transfer"))
	if first.StatusCode != 201 || second.StatusCode != 201 || second.Body != first.Body || second.header("Idempotent-Replayed") != "true" {
		t.Errorf("transfer %+v, then %+v", first, second)
	}
	if got := invoke(t, h, lambdatest.Sample(t, "api-http-account")); got.StatusCode != 200 || got.Body != `{"id":"acct_1","currency":"EUR","balance":500}` {
		t.Errorf("account %+v", got)
	}
}

// docs/design.md: AUTH=gateway without a tenant in the authorizer's context fails closed, whatever else the event proves;
// AUTH=function asks the tokens' table, whatever the gateway says.
func TestAuth(t *testing.T) {
	s := lambdatest.New(t)
	unknown := []byte(strings.ReplaceAll(string(lambdatest.Sample(t, "api-http-payment")), lambdatest.Token, "idem_test_00000000000000000000000000000EXAMPLEnobody02TQVP5"))
	for _, c := range []struct {
		auth, name string
		event      []byte
		status     int
		code       string
	}{
		{"gateway", "JWT authorizer", lambdatest.Sample(t, "api-http-jwt"), 401, "unauthorized"},
		{"gateway", "IAM", lambdatest.Sample(t, "api-url-payment"), 401, "unauthorized"},
		{"gateway", "load balancer", lambdatest.Sample(t, "api-alb-payment"), 401, "unauthorized"},
		{"gateway", "authorised, token not looked at", unknown, 202, ""},
		{"function", "unknown token", unknown, 403, "forbidden"},
		{"function", "test key where none is taken", lambdatest.Sample(t, "api-url-payment"), 403, "forbidden"},
		{"function", "known token", lambdatest.Sample(t, "api-url-payment"), 202, ""},
	} {
		t.Run(c.auth+", "+c.name, func(t *testing.T) {
			t.Setenv("AUTH", c.auth)
			if strings.HasPrefix(c.name, "test key") {
				t.Setenv("TEST_KEYS", "refuse")
			}
			before := len(s.Items(t, s.Idempotency))
			got := invoke(t, started(t), c.event)
			var problem struct{ Code string }
			if err := json.Unmarshal([]byte(got.Body), &problem); err != nil || got.StatusCode != c.status || problem.Code != c.code {
				t.Errorf("%+v, want %d %s", got, c.status, c.code)
			}
			if after := len(s.Items(t, s.Idempotency)); c.status != 202 && after != before {
				t.Error("a refused caller left a record")
			}
		})
	}
}

// docs/semantics.md: store trouble fails closed, with 503, also where the store is what authenticates.
func TestStoreIsDown(t *testing.T) {
	for _, auth := range []string{"gateway", "function"} {
		lambdatest.New(t)
		lambdatest.Unreachable(t)
		t.Setenv("AUTH", auth)
		got := invoke(t, started(t), lambdatest.Sample(t, "api-http-account"))
		if got.StatusCode != 503 || got.header("Retry-After") == "" || got.header("Content-Type") != "application/problem+json" {
			t.Errorf("AUTH=%s: %+v", auth, got)
		}
	}
}

// What the configuration contradicts is found at the start, before anything is taken.
func TestHandlerRefusesItsConfiguration(t *testing.T) {
	for name, value := range map[string]string{
		"FUNCTION_TIMEOUT": "10s", "CLAIM_LEASE": "6s", "INLINE_PAUSE": "-1s", "PROVIDER_URL": "provider:4580", "RETENTION": "1m", "BODY_BYTES_MAX": "-1", "RESPONSE_BYTES_MAX": "104857600", "OUTBOX_TABLE": "x", "IDEMPOTENCY_TABLE": "not a name",
	} {
		t.Run(name, func(t *testing.T) {
			lambdatest.New(t)
			t.Setenv(name, value)
			cfg, err := config.Read[config.API]()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := handler(t.Context(), cfg); err == nil {
				t.Errorf("%s=%s is accepted", name, value)
			}
		})
	}
}

// A limit of the configuration is the limit of the API.
func TestBodyBytesMax(t *testing.T) {
	lambdatest.New(t)
	t.Setenv("BODY_BYTES_MAX", "10")
	if got := invoke(t, started(t), lambdatest.Sample(t, "api-http-payment")); got.StatusCode != 413 {
		t.Errorf("%+v", got)
	}
}
