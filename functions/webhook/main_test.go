package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

const secret = "whsec_of_this_stage_0123"

// staged is a stage where the function has its secret.
func staged(t *testing.T) *lambdatest.Stage {
	t.Helper()
	s := lambdatest.New(t)
	t.Setenv("WEBHOOK_SECRET", secret)
	return s
}

// started is the handler as the function's environment makes it.
func started(t *testing.T) awslambda.Handler {
	t.Helper()
	cfg, err := config.Read[config.Webhook]()
	if err != nil {
		t.Fatal(err)
	}
	h, err := handler(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// answer is what both gateways' response forms share.
type answer struct {
	StatusCode        int
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Body              string
}

func (a answer) header(name string) string {
	return a.Headers[name] + a.Headers[strings.ToLower(name)] + strings.Join(a.MultiValueHeaders[name], ", ")
}

// posted delivers a body as an HTTP API does, and as a REST API that treats every body as binary where rest says so.
func posted(t *testing.T, h awslambda.Handler, rest bool, body []byte, signature string) answer {
	t.Helper()
	sample := map[bool]string{false: "api-http-payment", true: "api-rest-payment"}[rest]
	var event map[string]any
	if err := json.Unmarshal(lambdatest.Sample(t, sample), &event); err != nil {
		t.Fatal(err)
	}
	event["body"], event["isBase64Encoded"] = base64.StdEncoding.EncodeToString(body), true
	if rest {
		event["path"] = "/v1/webhooks/provider"
		event["multiValueHeaders"] = map[string]any{"Provider-Signature": []string{signature}}
	} else {
		event["rawPath"], event["cookies"] = "/v1/webhooks/provider", nil
		event["headers"] = map[string]any{"provider-signature": signature}
	}
	return invoked(t, h, event)
}

func invoked(t *testing.T, h awslambda.Handler, event map[string]any) answer {
	t.Helper()
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = h.Invoke(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// told is the event of an object, signed now, delivered by an HTTP API.
func told(t *testing.T, h awslambda.Handler, id string, o provider.Object) int {
	t.Helper()
	body := event(t, id, o)
	return posted(t, h, false, body, provider.Sign(secret, time.Now(), body)).StatusCode
}

func event(t *testing.T, id string, o provider.Object) []byte {
	t.Helper()
	body, err := json.Marshal(provider.Event{ID: id, Type: "charge." + string(o.Status), Created: o.CreatedAt, Key: o.Key, Data: o})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func accepted(t *testing.T, status int) {
	t.Helper()
	if status != http.StatusNoContent {
		t.Errorf("status %d, want 204", status)
	}
}

func TestWebhookBeforeTheWorker(t *testing.T) {
	s := staged(t)
	a, h := s.Accept(t, 0), started(t)
	a.Charge(t)
	accepted(t, told(t, h, "evt_1", s.Charges(t)[0]))
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
	s.Deliver(t, a.Message.ID)
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
}

func TestWebhookAfterTheWorker(t *testing.T) {
	s := staged(t)
	a, h := s.Accept(t, 0), started(t)
	s.Deliver(t, a.Message.ID)
	accepted(t, told(t, h, "evt_1", s.Charges(t)[0]))
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
}

// The provider has charged, and its answer was lost: the message is parked.
func TestWebhookSettlesWhatIsUnknown(t *testing.T) {
	s := staged(t)
	a, h := s.Accept(t, time.Hour), started(t)
	a.Park(t)
	a.Charge(t)
	accepted(t, told(t, h, "evt_1", s.Charges(t)[0]))
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
}

// With encryption, what was asked for is opened before it is compared; after the tenant's keys are erased, what happened
// ends its operation, of which nobody can read the answer.
func TestWebhookOfAnEncryptedMessage(t *testing.T) {
	for _, erased := range []bool{false, true} {
		s := staged(t)
		keys := s.Seal(t)
		t.Setenv("KEY_AGE_MAX", "1m")
		a := s.Accept(t, 0)
		a.Charge(t)
		wanted, record, payment := storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded
		if erased {
			if err := keys.Erase(t.Context(), lambdatest.Tenant); err != nil {
				t.Fatal(err)
			}
			wanted, record, payment = storage.MessageDelivered, storage.StateFailed, payments.StatusPending
		}
		h, charge := started(t), s.Charges(t)[0]
		other := charge
		other.Amount++
		accepted(t, told(t, h, "evt_1", other))
		if !erased {
			a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 1)
		}
		accepted(t, told(t, h, "evt_2", charge))
		a.Want(t, wanted, record, payment, 1)
	}
}

// Deliveries by two instances at once, and again later: the same event is remembered once.
func TestWebhookTwiceAndAtOnce(t *testing.T) {
	s := staged(t)
	a := s.Accept(t, 0)
	a.Charge(t)
	charge := s.Charges(t)[0]
	instances := []awslambda.Handler{started(t), started(t)}
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() { accepted(t, told(t, instances[n%2], "evt_1", charge)) })
	}
	group.Wait()
	accepted(t, told(t, instances[0], "evt_1", charge))
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
	if records := s.Items(t, s.Idempotency); len(records) != 2 {
		t.Errorf("%d records, want the payment's and the event's", len(records))
	}
}

// What is not the provider's, or not of now, is refused in the same words by either gateway, and leaves nothing.
func TestWebhookThatIsForgedOrStale(t *testing.T) {
	s := staged(t)
	a, h := s.Accept(t, 0), started(t)
	a.Charge(t)
	body := event(t, "evt_1", s.Charges(t)[0])
	for name, signature := range map[string]string{
		"missing": "", "malformed": "t=1", "forged": provider.Sign("whsec_of_somebody_else", time.Now(), body),
		"stale": provider.Sign(secret, time.Now().Add(-302*time.Second), body), "ahead": provider.Sign(secret, time.Now().Add(302*time.Second), body),
	} {
		for _, rest := range []bool{false, true} {
			got := posted(t, h, rest, body, signature)
			if got.StatusCode != http.StatusUnauthorized || !strings.Contains(got.Body, `"code":"webhook_signature_invalid"`) || got.header("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 1)
	if records := s.Items(t, s.Idempotency); len(records) != 1 {
		t.Errorf("%d records, want the payment's", len(records))
	}
}

// A client's reference may have the character that gateways put in place of damaged bytes. Here the signature says whether any were: a
// webhook of such a payment is taken like any other, and one that was changed on the way is not.
func TestWebhookWithTheCharacterOfDamagedBytes(t *testing.T) {
	s := staged(t)
	a, h := s.Accept(t, 0), started(t)
	a.Charge(t)
	charge := s.Charges(t)[0]
	charge.Reference = "\uFFFD"
	body := event(t, "evt_1", charge)
	signature := provider.Sign(secret, time.Now(), body)
	damaged := strings.Replace(string(body), "evt_1", "evt_\uFFFD", 1)
	if status := asText(t, h, damaged, signature); status != http.StatusUnauthorized {
		t.Errorf("damaged: status %d, want 401", status)
	}
	accepted(t, asText(t, h, string(body), signature))
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
}

// asText delivers a body as an HTTP API does that takes it for text.
func asText(t *testing.T, h awslambda.Handler, body, signature string) int {
	t.Helper()
	var event map[string]any
	if err := json.Unmarshal(lambdatest.Sample(t, "api-http-payment"), &event); err != nil {
		t.Fatal(err)
	}
	event["body"], event["isBase64Encoded"] = body, false
	event["rawPath"], event["cookies"] = "/v1/webhooks/provider", nil
	event["headers"] = map[string]any{"provider-signature": signature}
	return invoked(t, h, event).StatusCode
}

// After a loss of data it may be the only trace of an effect: it is not remembered, and comes again.
func TestWebhookForAnUnknownIDComesAgain(t *testing.T) {
	s := staged(t)
	a, h := s.Accept(t, 0), started(t)
	a.Charge(t)
	charge := s.Charges(t)[0]
	charge.Key = strings.TrimSuffix(charge.Key, ".1") + ".2"
	for range 2 {
		if got := told(t, h, "evt_1", charge); got != 404 {
			t.Errorf("status %d, want 404", got)
		}
	}
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 1)
}

// The provider is told to send again, and nothing counts as done.
func TestWebhookWhileTheStoreIsDown(t *testing.T) {
	s := staged(t)
	a, up := s.Accept(t, 0), started(t)
	a.Charge(t)
	body := event(t, "evt_1", s.Charges(t)[0])
	endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	lambdatest.Unreachable(t)
	down := started(t)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
	got := posted(t, down, true, body, provider.Sign(secret, time.Now(), body))
	if got.StatusCode != http.StatusServiceUnavailable || got.header("Retry-After") == "" || !strings.Contains(got.Body, "idempotency_store_unavailable") {
		t.Errorf("%+v", got)
	}
	if got := posted(t, up, true, body, provider.Sign(secret, time.Now(), body)); got.StatusCode != http.StatusNoContent || got.Body != "" {
		t.Errorf("%+v", got)
	}
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
}

// WEBHOOK_SECRET_ID: the secrets are read when the function starts; a list while one is replaced by another.
func TestSecretsAreReadAtTheStart(t *testing.T) {
	s := lambdatest.New(t)
	id, _ := lambdatest.Secret(t, "whsec_the_next_one_0123, "+secret+"\n")
	t.Setenv("WEBHOOK_SECRET_ID", id)
	a, h := s.Accept(t, 0), started(t)
	a.Charge(t)
	accepted(t, told(t, h, "evt_1", s.Charges(t)[0]))
	body := event(t, "evt_2", s.Charges(t)[0])
	accepted(t, posted(t, h, false, body, provider.Sign("whsec_the_next_one_0123", time.Now(), body)).StatusCode)
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
}

// A running instance asks again when no secret that it knows has signed; how often, is package webhook's test.
func TestSecretsAreReadAgain(t *testing.T) {
	lambdatest.New(t)
	id, replace := lambdatest.Secret(t, secret)
	read, err := secrets(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{secret, "whsec_the_next_one_0123"} {
		replace(value)
		if got, err := read(t.Context()); err != nil || !slices.Equal(got, []string{value}) {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// What the configuration contradicts is found at the start, and no secret is shown.
func TestHandlerRefusesItsConfiguration(t *testing.T) {
	for name, value := range map[string]string{
		"WEBHOOK_SECRET": "shorty", "WEBHOOK_SECRET_ID": "another", "PROVIDER_URL": "provider:4580", "BREAKER_FAILURES_MAX": "-1",
	} {
		t.Run(name, func(t *testing.T) {
			staged(t)
			lambdatest.Secret(t, "nobody asks for it")
			if name == "WEBHOOK_SECRET_ID" {
				t.Setenv("WEBHOOK_SECRET", "")
			}
			t.Setenv(name, value)
			cfg, err := config.Read[config.Webhook]()
			if err != nil {
				t.Fatal(err)
			}
			if _, err = handler(t.Context(), cfg); err == nil || strings.Contains(err.Error(), "shorty") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
			if strings.HasPrefix(name, "WEBHOOK") && !strings.Contains(err.Error(), name) {
				t.Errorf("%v, want %s named", err, name)
			}
		})
	}
}
