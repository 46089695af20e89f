package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	keytable "github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Limits hold across the functions that share a table, for new keys and look-ups of one tenant, and never for replays.
func TestQuotaAcrossFunctions(t *testing.T) {
	s := lambdatest.New(t)
	table := s.Idempotency + "-quota"
	if err := dynamotest.CreateTable(t.Context(), s.Client, table, schema.Quota()); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"QUOTA_TABLE": table, "QUOTA_NEW_KEYS_PER_SECOND": "1000", "QUOTA_ACTIVE_KEYS": "2", "QUOTA_LOOK_UPS_PER_SECOND": "1000",
	} {
		t.Setenv(name, value)
	}
	one, other := started(t), started(t)
	payment := func(key, tenant string) []byte {
		event := strings.Replace(string(lambdatest.Sample(t, "api-http-payment")), "order-17", key, 1)
		return []byte(strings.Replace(event, `"tenant": "tenant-a"`, `"tenant": "`+tenant+`"`, 1))
	}
	first := invoke(t, one, payment("order-1", "tenant-a"))
	second := invoke(t, other, payment("order-2", "tenant-a"))
	third := invoke(t, one, payment("order-3", "tenant-a"))
	if first.StatusCode != 202 || second.StatusCode != 202 {
		t.Errorf("%+v, %+v", first, second)
	}
	if third.StatusCode != 429 || !strings.Contains(third.Body, `"idempotency_quota_exceeded"`) || third.header("Retry-After") == "" {
		t.Errorf("a third key got %+v", third)
	}
	if again := invoke(t, one, payment("order-2", "tenant-a")); again.StatusCode != 202 || again.Body != second.Body {
		t.Errorf("a replay got %+v", again)
	}
	if bystander := invoke(t, one, payment("order-3", "tenant-b")); bystander.StatusCode != 202 {
		t.Errorf("another tenant got %+v", bystander)
	}
	if items := s.Items(t, s.Outbox); len(items) != 3 {
		t.Errorf("%d messages, want 3: what is refused writes nothing", len(items))
	}
	status := strings.ReplaceAll(string(lambdatest.Sample(t, "api-http-account")), "/v1/accounts/acct_1", first.header("Location"))
	if got := invoke(t, one, []byte(status)); got.StatusCode != 200 {
		t.Errorf("a look-up got %+v", got)
	}
	t.Setenv("QUOTA_LOOK_UPS_PER_SECOND", "1")
	slow := started(t)
	refused := 0
	for range 20 {
		if got := invoke(t, slow, []byte(status)); got.StatusCode == 429 {
			refused++
		}
	}
	if refused == 0 {
		t.Error("20 look-ups passed a limit of one per second")
	}
}

// What an operator has written on a tenant's keys is its limit, in place of the deployment's, whoever authenticates: without a
// deployment, and for this tenant alone. What is malformed there lifts no limit.
func TestQuotaOfOneTenant(t *testing.T) {
	for _, auth := range []string{"gateway", "function"} {
		t.Run(auth, func(t *testing.T) {
			s := lambdatest.New(t)
			counters := s.Idempotency + "-quota"
			if err := dynamotest.CreateTable(t.Context(), s.Client, counters, schema.Quota()); err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"QUOTA_TABLE": counters, "QUOTA_ACTIVE_KEYS": "3", "AUTH": auth, "API_KEY_CACHE_AGE": "0s"} {
				t.Setenv(name, value)
			}
			h := started(t)
			sent := 0
			wants := func(limits string, statuses ...int) {
				t.Helper()
				limited(t, s, limits)
				for _, status := range statuses {
					sent++
					event := strings.Replace(string(lambdatest.Sample(t, "api-http-payment")), "order-17", fmt.Sprint("order-", sent), 1)
					event = strings.Replace(event, `"tenant": "tenant-a"`, `"tenant": "tenant-a", "limits": "`+limits+`"`, 1)
					if got := invoke(t, h, []byte(event)); got.StatusCode != status {
						t.Errorf("key %d with limits %q: %d, want %d", sent, limits, got.StatusCode, status)
					}
				}
			}
			wants("", 202)
			wants("active_keys=1", 429)
			for _, limits := range []string{"active_keys=2", "active_keys=none", "active_keys=4"} {
				wants(limits, 202, 429)
			}
			wants("", 429)
		})
	}
}

// limited writes limits on the samples' key, as a gateway's authorizer would read them.
func limited(t *testing.T, s *lambdatest.Stage, limits string) {
	t.Helper()
	for _, key := range s.Items(t, s.APIKeys) {
		delete(key, keytable.KeyLimits)
		if limits != "" {
			key[keytable.KeyLimits] = &types.AttributeValueMemberS{Value: limits}
		}
		s.Put(t, s.APIKeys, key)
	}
}

// Each function serves one request, as an instance of AWS Lambda does. The waits of repetitions are bounded across them: over the
// limit the 202 comes at once.
func TestQuotaOfWaitsAcrossFunctions(t *testing.T) {
	s := lambdatest.New(t)
	table := s.Idempotency + "-waits"
	if err := dynamotest.CreateTable(t.Context(), s.Client, table, schema.Quota()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("QUOTA_TABLE", table)
	t.Setenv("QUOTA_WAITS_PER_SECOND", "1")
	var event map[string]any
	if err := json.Unmarshal(lambdatest.Sample(t, "api-http-payment"), &event); err != nil {
		t.Fatal(err)
	}
	plain := lambdatest.Sample(t, "api-http-payment")
	event["headers"].(map[string]any)["prefer"] = "wait=20"
	waiting, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	first := invoke(t, started(t), plain)
	var group sync.WaitGroup
	var atOnce, waits atomic.Int32
	all := make([]awslambda.Handler, 8)
	for i := range all {
		all[i] = started(t)
	}
	for _, api := range all {
		group.Go(func() {
			switch got := invoke(t, api, waiting); {
			case got.StatusCode == 201:
				waits.Add(1)
			case got.StatusCode == 202 && got.Body == first.Body && got.header("Retry-After") != "":
				atOnce.Add(1)
			default:
				t.Errorf("%+v", got)
			}
		})
	}
	// Three are answered before the payment has its end, which the others see, one for each second of the clock in which they began.
	// Half of the wait would be no answer at once.
	for until := time.Now().Add(8 * time.Second); atOnce.Load() < 3 && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	early := atOnce.Load()
	deliver(t, s, first)
	group.Wait()
	if waited := waits.Load(); early < 3 || waited == 0 {
		t.Errorf("%d of 8 waited, %d were answered before the payment's end; those that are over the limit are answered at once", waited, early)
	}
	if items := s.Items(t, table); len(items) == 0 {
		t.Error("nothing was counted")
	}
	before := len(s.Items(t, table))
	invoke(t, started(t), plain)
	if after := len(s.Items(t, table)); after != before {
		t.Error("a repetition that does not wait was counted")
	}
}

// deliver has a worker deliver what the answer of a payment speaks of.
func deliver(t *testing.T, s *lambdatest.Stage, accepted answer) {
	t.Helper()
	var payment struct{ Operation idem.OperationID }
	if err := json.Unmarshal([]byte(accepted.Body), &payment); err != nil {
		t.Fatal(err)
	}
	s.Deliver(t, payment.Operation.Message(1))
}
