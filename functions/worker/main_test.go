package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// started is the handler as the function's environment makes it.
func started(t *testing.T) awslambda.Handler {
	t.Helper()
	cfg, err := config.Read[config.Worker]()
	if err != nil {
		t.Fatal(err)
	}
	h, err := handler(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// failures are the records that the invocation wants to come again.
func failures(t *testing.T, h awslambda.Handler, event []byte) []string {
	t.Helper()
	raw, err := h.Invoke(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	var report events.SQSEventResponse
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	failed := []string{}
	for _, f := range report.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

func none(t *testing.T, failed []string) {
	t.Helper()
	if len(failed) > 0 {
		t.Errorf("records %q failed", failed)
	}
}

// Either wake-up delivers, and any number of them delivers once (docs/design.md "One message, step by step").
func TestEitherWakeUpDelivers(t *testing.T) {
	for _, first := range []string{"stream", "queue"} {
		t.Run(first, func(t *testing.T) {
			s := lambdatest.New(t)
			a, h := s.Accept(t, 0), started(t)
			wakeUps := [][]byte{a.Stream, a.Queue}
			if first == "queue" {
				wakeUps = [][]byte{a.Queue, a.Stream}
			}
			for range 2 {
				for _, event := range wakeUps {
					none(t, failures(t, h, event))
					a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
				}
			}
			charge := s.Charges(t)[0]
			if charge.Key != string(a.Message.ID) || charge.Amount != 1999 || charge.Source != "card_ok" || charge.Attempts != 1 {
				t.Errorf("charge %+v", charge)
			}
		})
	}
}

// Trouble with the provider is none of the batch's: the message waits in its row, and a delayed wake-up stands in the
// queue of wake-ups.
func TestProviderThatIsBusyFailsNoRecord(t *testing.T) {
	s := lambdatest.New(t)
	a, h := s.Accept(t, 0), started(t)
	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Charge, Fault: provider.RateLimit, DelayMillis: 20_000, Times: 1}); err != nil {
		t.Fatal(err)
	}
	none(t, failures(t, h, a.Stream))
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 0)
	sent := s.Queues.WakeUps()
	if len(sent) != 1 || sent[0].Body != `{"message":"`+string(a.Message.ID)+`"}` || sent[0].DelaySeconds < 10 || sent[0].DelaySeconds > 20 {
		t.Errorf("queue of wake-ups %+v", sent)
	}
	none(t, failures(t, h, a.Queue)) // early: it is not due
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 0)
}

// ATTEMPTS_MAX reaches the topics; what is given up leaves a copy in the dead-letter queue.
func TestAttemptsEnd(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("ATTEMPTS_MAX", "1")
	a, h := s.Accept(t, 0), started(t)
	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Charge, Fault: provider.RateLimit}); err != nil {
		t.Fatal(err)
	}
	none(t, failures(t, h, a.Stream))
	a.Want(t, storage.MessageDead, storage.StateFailed, payments.StatusFailed, 0)
	if sent := s.Queues.Dead(); len(sent) != 1 || !strings.Contains(sent[0].Body, `"message":"`+string(a.Message.ID)+`"`) || !strings.Contains(sent[0].Body, `"reason":"attempts over"`) {
		t.Errorf("dead-letter queue %+v", sent)
	}
}

// Records that are no new messages need nothing; so does a wake-up for a message that is not there.
func TestRecordsThatNeedNothing(t *testing.T) {
	s := lambdatest.New(t)
	h := started(t)
	for _, name := range []string{"worker-stream-modify", "worker-stream-ttl", "worker-queue"} {
		none(t, failures(t, h, lambdatest.Sample(t, name)))
	}
	if charges := s.Charges(t); len(charges) > 0 {
		t.Errorf("charges %+v", charges)
	}
}

// What this release can't read, or does not know, is acknowledged with an alarm: it would stop the shard, and every tenant
// with it. The sweep of the release that knows it offers it again.
func TestRecordsOfAnotherReleaseStopNobody(t *testing.T) {
	s := lambdatest.New(t)
	h := started(t)
	stream := string(lambdatest.Sample(t, "worker-stream-insert"))
	for name, event := range map[string]string{
		"no message in the image": strings.Replace(stream, "\"na\": {\n            \"N\"", "\"na\": {\n            \"S\"", 1),
		"another release's state": strings.Replace(stream, "pending", "waiting", 1),
		"another schema":          strings.Replace(stream, "\"sv\": {\n            \"N\": \"1\"", "\"sv\": {\n            \"N\": \"2\"", 1),
		"another release's topic": strings.Replace(stream, "payments.charges", "payments.disputes", 1),
	} {
		if event == stream {
			t.Fatalf("%s: the sample is unchanged", name)
		}
		none(t, failures(t, h, []byte(event)))
	}
	if charges := s.Charges(t); len(charges) > 0 {
		t.Errorf("charges %+v", charges)
	}
}

// What our own store can't be asked about comes again.
func TestRecordsThatComeAgain(t *testing.T) {
	lambdatest.New(t)
	h := started(t)
	const sequence, message = "100000000000000000001", "059f36b4-87a3-44ab-83d2-661975830a7d"
	stream, queue := string(lambdatest.Sample(t, "worker-stream-insert")), string(lambdatest.Sample(t, "worker-queue"))
	if failed := failures(t, h, []byte(strings.Replace(queue, `\"message\"`, `\"massage\"`, 1))); len(failed) != 1 || failed[0] != message {
		t.Errorf("no wake-up: %q", failed)
	}

	lambdatest.Unreachable(t)
	t.Setenv("PROVIDER_TIMEOUT", "50ms")
	t.Setenv("CLAIM_LEASE", "2100ms") // which is also how long a claim without a reply is sent again
	down := started(t)
	if failed := failures(t, down, []byte(stream)); len(failed) != 1 || failed[0] != sequence {
		t.Errorf("store down, stream: %q", failed)
	}
	if failed := failures(t, down, []byte(queue)); len(failed) != 1 || failed[0] != message {
		t.Errorf("store down, queue: %q", failed)
	}
	for _, name := range []string{"sweep-schedule", "api-http-payment"} {
		if _, err := h.Invoke(t.Context(), lambdatest.Sample(t, name)); err == nil {
			t.Errorf("%s is taken by the worker", name)
		}
	}
}

// What the configuration contradicts is found at the start, before anything is taken.
func TestHandlerRefusesItsConfiguration(t *testing.T) {
	for name, value := range map[string]string{
		"FUNCTION_TIMEOUT": "10s", "CLAIM_LEASE": "6s", "PROVIDER_TIMEOUT": "2m", "BACKOFF_MAX": "1ms", "ATTEMPTS_MAX": "-1", "PROVIDER_URL": "provider:4580", "BREAKER_FAILURES_MAX": "-1",
		"RESPONSE_BYTES_MAX": "1", "OUTBOX_TABLE": "x",
	} {
		t.Run(name, func(t *testing.T) {
			lambdatest.New(t)
			t.Setenv(name, value)
			cfg, err := config.Read[config.Worker]()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := handler(t.Context(), cfg); err == nil {
				t.Errorf("%s=%s is accepted", name, value)
			}
		})
	}
}

// A message that nobody has claimed within a topic's bound is cancelled by whoever is woken for it.
func TestMessageThatIsTooOld(t *testing.T) {
	s := lambdatest.New(t)
	a, h := s.Accept(t, 25*time.Hour), started(t)
	none(t, failures(t, h, a.Queue))
	a.Want(t, storage.MessageCancelled, storage.StateFailed, payments.StatusFailed, 0)
}

// PROVIDER_CREDENTIAL_ID: a credential that the provider does not take has executed nothing, and the message is delivered with
// the other one of the secret. Without a secret, or with nonsense in it, the function does not start, and shows nothing of it.
func TestTheProvidersCredential(t *testing.T) {
	s := lambdatest.New(t)
	s.Demand("old")
	id, replace := lambdatest.Secret(t, "new,old\n")
	t.Setenv("PROVIDER_CREDENTIAL_ID", id)
	t.Setenv("BACKOFF_MIN", "1ms")
	t.Setenv("BACKOFF_MAX", "1ms")
	a, h := s.Accept(t, 0), started(t)
	none(t, failures(t, h, a.Stream))
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 0)
	none(t, failures(t, h, a.Queue))
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)

	cfg, err := config.Read[config.Worker]()
	if err != nil {
		t.Fatal(err)
	}
	replace("new,old,older")
	if _, err := handler(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "PROVIDER_CREDENTIAL_ID") || strings.Contains(err.Error(), "older") {
		t.Errorf("%v", err)
	}
	cfg.CredentialID = "nowhere"
	if _, err := handler(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `PROVIDER_CREDENTIAL_ID = "nowhere"`) {
		t.Errorf("%v", err)
	}
}
