package main

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// semantics.md "What is never cached or trusted": neither record nor message shows what was stored, and an erased tenant's
// answers are 410, whoever asks, by key or by operation.
func TestSealedAndErased(t *testing.T) {
	s := lambdatest.New(t)
	keys := s.Seal(t)
	h := started(t)
	payment := lambdatest.Sample(t, "api-http-payment")
	first, second := invoke(t, h, payment), invoke(t, h, payment)
	if first.StatusCode != 202 || second.Body != first.Body || second.header("Idempotent-Replayed") != "true" {
		t.Fatalf("%+v, then %+v", first, second)
	}
	for _, item := range append(s.Items(t, s.Idempotency), s.Items(t, s.Outbox)...) {
		for name, value := range item {
			if b, ok := value.(*types.AttributeValueMemberB); ok && bytes.Contains(b.Value, []byte("order-17")) {
				t.Errorf("attribute %s is in clear: %s", name, b.Value)
			}
		}
		if item[schema.Sealed] == nil {
			t.Errorf("not sealed: %v", item)
		}
	}

	if err := keys.Erase(t.Context(), lambdatest.Tenant); err != nil {
		t.Fatal(err)
	}
	h = started(t) // a process that holds the key may use it for KEY_AGE_MAX
	status := strings.ReplaceAll(string(lambdatest.Sample(t, "api-http-account")), "/v1/accounts/acct_1", first.header("Location"))
	other := strings.ReplaceAll(string(payment), "order-17", "order-18")
	for name, event := range map[string]string{"replay": string(payment), "new operation": other} {
		if got := invoke(t, h, []byte(event)); got.StatusCode != 410 || !strings.Contains(got.Body, "idempotency_response_erased") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := invoke(t, h, []byte(status)); got.StatusCode != 410 || !strings.Contains(got.Body, "idempotency_response_erased") {
		t.Errorf("status: %+v", got)
	}
	if records := s.Items(t, s.Idempotency); len(records) != 1 {
		t.Errorf("%d records, want none of the refused operation", len(records))
	}
}

// The breaker is always there: once the tables are known to be down, nothing is sent any more, and clients are told when
// to come back (docs/semantics.md: store trouble fails closed).
func TestBreakerStandsBeforeTheTables(t *testing.T) {
	lambdatest.New(t)
	lambdatest.Unreachable(t)
	log := lambdatest.Log(t)
	t.Setenv("LOG_LEVEL", "ERROR")
	h := started(t)
	for range 6 {
		if got := invoke(t, h, lambdatest.Sample(t, "api-http-payment")); got.StatusCode != 503 || got.header("Retry-After") == "" {
			t.Errorf("%+v", got)
		}
	}
	opened := 0
	for _, line := range log() {
		if strings.Contains(line.Message, "circuit breaker opened") {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("the breaker opened %d times, want once", opened)
	}
}

// RECORD_CACHE: a replay that reads first is answered from memory, even where the tables are gone.
func TestRecordCacheAnswersReplays(t *testing.T) {
	for _, cached := range []bool{false, true} {
		s := lambdatest.New(t)
		s.Account(t, lambdatest.Tenant, "acct_1", 1000)
		t.Setenv("RECORD_CACHE", map[bool]string{true: "true", false: "false"}[cached])
		h := started(t)
		first := invoke(t, h, lambdatest.Sample(t, "api-http-payout"))
		if again := invoke(t, h, lambdatest.Sample(t, "api-http-payout")); first.StatusCode != 201 || again.Body != first.Body {
			t.Fatalf("%+v, then %+v", first, again)
		}
		empty(t, s)
		again := invoke(t, h, lambdatest.Sample(t, "api-http-payout"))
		if held := again.StatusCode == 201 && again.Body == first.Body; held != cached {
			t.Errorf("cache %v: %+v", cached, again)
		}
	}
}

// FINGERPRINT_SECRETS: records name the secret of their fingerprint, and a retry is compared under the one that it was
// stored with, after another became the newest.
func TestFingerprintsAreKeyed(t *testing.T) {
	s := lambdatest.New(t)
	secret := func(id string) string {
		return id + ":" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(id), 32))
	}
	t.Setenv("FINGERPRINT_SECRETS", secret("a"))
	first := invoke(t, started(t), lambdatest.Sample(t, "api-http-payment"))
	t.Setenv("FINGERPRINT_SECRETS", secret("b")+","+secret("a"))
	again := invoke(t, started(t), lambdatest.Sample(t, "api-http-payment"))
	if first.StatusCode != 202 || again.Body != first.Body || again.header("Idempotent-Replayed") != "true" {
		t.Errorf("%+v, then %+v", first, again)
	}
	records := s.Items(t, s.Idempotency)
	if id, ok := records[0][schema.FingerprintKeyID].(*types.AttributeValueMemberS); len(records) != 1 || !ok || id.Value != "a" {
		t.Errorf("records %v", records)
	}
	t.Setenv("FINGERPRINT_SECRETS", "short:"+base64.StdEncoding.EncodeToString([]byte("short")))
	cfg, err := config.Read[config.API]()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handler(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "FINGERPRINT_SECRETS") {
		t.Errorf("a short secret: %v", err)
	}
}

// FINGERPRINT_SECRET_ID: the same from a store of secrets, as it is when the function starts.
func TestFingerprintsAreKeyedByAStoredSecret(t *testing.T) {
	s := lambdatest.New(t)
	const key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	id, replace := lambdatest.Secret(t, "2026:"+key+"\n")
	t.Setenv("FINGERPRINT_SECRET_ID", id)
	if got := invoke(t, started(t), lambdatest.Sample(t, "api-http-payment")); got.StatusCode != 202 {
		t.Fatalf("%+v", got)
	}
	records := s.Items(t, s.Idempotency)
	if id, ok := records[0][schema.FingerprintKeyID].(*types.AttributeValueMemberS); len(records) != 1 || !ok || id.Value != "2026" {
		t.Errorf("records %v", records)
	}
	cfg, err := config.Read[config.API]()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"2026=" + key, " ", "2026:" + key[:8]} {
		replace(text)
		if _, err := handler(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "FINGERPRINT_SECRET_ID") || strings.Contains(err.Error(), key[:8]) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// SCOPE_SECRET, SCOPE_SECRET_ID: operation ids don't confirm guesses of keys, the same secret finds the same record wherever
// it comes from, and without it nothing is executed.
func TestRecordsAreNamedUnderTheSecret(t *testing.T) {
	s := lambdatest.New(t)
	const secret = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	t.Setenv("SCOPE_SECRET", secret)
	first := invoke(t, started(t), lambdatest.Sample(t, "api-http-payment"))
	id, err := dynamo.OperationOf(s.Items(t, s.Idempotency)[0])
	if err != nil {
		t.Fatal(err)
	}
	guess := idem.Scope{Tenant: lambdatest.Tenant, Operation: "payments.create", Key: "order-17"}
	if shown, err := id.RecordKey(); err != nil || shown == guess.RecordKey() || first.StatusCode != 202 {
		t.Errorf("%+v of the operation %s, %v", first, id, err)
	}
	t.Setenv("SCOPE_SECRET", "")
	if got := invoke(t, started(t), lambdatest.Sample(t, "api-http-payment")); got.StatusCode != 503 {
		t.Errorf("without the secret %+v", got)
	}
	stored, replace := lambdatest.Secret(t, secret+"\n")
	t.Setenv("SCOPE_SECRET_ID", stored)
	if got := invoke(t, started(t), lambdatest.Sample(t, "api-http-payment")); got.Body != first.Body || got.header("Idempotent-Replayed") != "true" {
		t.Errorf("under the stored secret %+v", got)
	}
	cfg, err := config.Read[config.API]()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{" ", "not base64", secret[:8]} {
		replace(text)
		if _, err := handler(t.Context(), cfg); err == nil || strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if records := s.Items(t, s.Idempotency); len(records) != 1 {
		t.Errorf("%d records", len(records))
	}
}

// empty takes every record away.
func empty(t *testing.T, s *lambdatest.Stage) {
	t.Helper()
	for _, record := range s.Items(t, s.Idempotency) {
		_, err := s.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &s.Idempotency, Key: map[string]types.AttributeValue{schema.RecordKey: record[schema.RecordKey]},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
