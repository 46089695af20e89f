package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/provider"
)

const (
	neighbour = "tenant-b"
	others    = 20          // requests of the other tenant that wait: in every other round their calls to the provider hang
	asked     = 10          // requests of the neighbour, sent at once
	bursts    = 2           // how often they are sent in a round, one time after the other
	hang      = time.Second // a call that hangs, until its time-out
)

// instances are those of the function: each has one request at a time, and there are no more than its reserved concurrency. A request
// that finds none is throttled and not executed, as Lambda does it.
type instances chan awslambda.Handler

func reserved(t *testing.T, most int) instances {
	t.Helper()
	all := make(instances, most)
	for range most {
		all <- started(t)
	}
	return all
}

// post sends a request until an instance takes it, as a client does that is throttled, and returns the answer's status.
func (all instances) post(t *testing.T, tenant, key, destination string) int {
	t.Helper()
	event := payout(t, tenant, key, destination, "wait=20")
	for {
		select {
		case h := <-all:
			defer func() { all <- h }()
			raw, err := h.Invoke(t.Context(), event)
			var a answer
			if err == nil {
				err = json.Unmarshal(raw, &a)
			}
			if err != nil {
				t.Error(err)
			}
			return a.StatusCode
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// payout is the sample, for another tenant, under another key, to another destination, and with a preference.
func payout(t *testing.T, tenant, key, destination, prefer string) []byte {
	t.Helper()
	var event map[string]any
	sample := strings.NewReplacer(lambdatest.Tenant, tenant, "iban_ok", destination).Replace(string(lambdatest.Sample(t, "api-http-payout")))
	if err := json.Unmarshal([]byte(sample), &event); err != nil {
		t.Fatal(err)
	}
	headers := event["headers"].(map[string]any)
	headers["idempotency-key"], headers["prefer"] = `"`+key+`"`, prefer
	made, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Requests of one tenant that hang at the provider, and wait for as long as they may, delay nobody else's while there are executions for
// both. The same measurement must fail where the first tenant's requests have all executions.
func TestWaitsThatHangAreTheirTenantsAlone(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("PROVIDER_TIMEOUT", hang.String())
	t.Setenv("CLAIM_LEASE", "4s")
	t.Setenv("WAIT_MAX", "2s")
	t.Setenv("INLINE_PAUSE", "1ms") // every one of them calls, as the first one of each process does
	t.Setenv("BACKOFF_MIN", "10m")  // none of them is called again within the test
	t.Setenv("BACKOFF_MAX", "10m")
	for _, tenant := range []string{lambdatest.Tenant, neighbour} {
		s.Account(t, tenant, "acct_1", 10_000_000)
	}
	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Screening, Destination: "iban_hang", Fault: provider.HangBefore}); err != nil {
		t.Fatal(err)
	}
	got := waited(t, s, lambdatest.Rounds, others+asked)
	t.Logf("%d requests beside %d, %d executions: %v", asked, others, others+asked, got)
	if !got.Isolated() {
		t.Errorf("requests wait for another tenant's that hang: %v", got)
	}
	planted := waited(t, s, lambdatest.RoundsMin, others)
	t.Logf("%d executions, which the requests that hang have all: %v", others, planted)
	if planted.Isolated() {
		t.Errorf("a tenant whose requests have all executions is not noticed: %v", planted)
	}
}

// waited is how long the neighbour's requests take: after the same requests of the other tenant, which have been answered in one kind of
// round, and hang in the other. So nothing else is at work meanwhile. A machine that stops has requests answered 202 when their wait is
// over: that time counts, too.
func waited(t *testing.T, s *lambdatest.Stage, rounds, most int) lambdatest.Apart {
	t.Helper()
	all := reserved(t, most)
	var keys atomic.Int64
	send := func(tenant string, count int, destination string, statuses ...int) []time.Duration {
		took := make([]time.Duration, count)
		var clients sync.WaitGroup
		began := time.Now()
		for i := range took {
			clients.Go(func() {
				if got := all.post(t, tenant, fmt.Sprintf("%d-%d", most, keys.Add(1)), destination); !slices.Contains(statuses, got) {
					t.Errorf("%d, want one of %d", got, statuses)
				}
				took[i] = time.Since(began)
			})
		}
		clients.Wait()
		return took
	}
	neighbours := func() (took []time.Duration) {
		for range bursts {
			took = append(took, send(neighbour, asked, "iban_ok", http.StatusCreated, http.StatusAccepted)...)
		}
		return took
	}
	prompt := func() []time.Duration {
		send(lambdatest.Tenant, others, "iban_ok", http.StatusCreated, http.StatusAccepted)
		return neighbours()
	}
	// beside is nil where the other tenant's requests did not all come to hang before the first one's hang was over.
	beside := func() (took []time.Duration) {
		before := underway(t, s)
		var hung sync.WaitGroup
		defer hung.Wait()
		hung.Go(func() { send(lambdatest.Tenant, others, "iban_hang", http.StatusAccepted) })
		for began := time.Now(); underway(t, s) < before+others; time.Sleep(time.Millisecond) {
			if time.Since(began) > hang {
				return nil
			}
		}
		return neighbours()
	}
	return lambdatest.Measure(rounds, hang, prompt, func() []time.Duration {
		for range 5 {
			if took := beside(); took != nil {
				return took
			}
		}
		t.Fatalf("never do all of %d requests hang at once", others)
		return nil
	})
}

// underway is how many requests have met the rule that hangs so far.
func underway(t *testing.T, s *lambdatest.Stage) int {
	t.Helper()
	rules, err := s.Provider.Rules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rules[0].Applied
}

// A provider that hangs holds one request of an execution: the payouts that follow are left to the worker, and get their 202 at once.
// Other tenants' are made within their requests meanwhile, and the tenant's are again once the provider answers.
func TestAProviderThatHangsHoldsOneRequestOfAnExecution(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("PROVIDER_TIMEOUT", hang.String())
	t.Setenv("CLAIM_LEASE", "4s")
	t.Setenv("INLINE_PAUSE", "2s")
	for _, tenant := range []string{lambdatest.Tenant, neighbour} {
		s.Account(t, tenant, "acct_1", 10_000_000)
	}
	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Screening, Destination: "iban_hang", Fault: provider.HangBefore}); err != nil {
		t.Fatal(err)
	}
	h := started(t)
	wants := func(tenant, key, destination string, status int) (took time.Duration) {
		t.Helper()
		began := time.Now()
		if got := invoke(t, h, payout(t, tenant, key, destination, "")); got.StatusCode != status {
			t.Errorf("%s: %d, want %d", key, got.StatusCode, status)
		}
		return time.Since(began)
	}
	if took := wants(lambdatest.Tenant, "first", "iban_hang", http.StatusAccepted); took < hang {
		t.Errorf("the first one took %v, want %v at least", took, hang)
	}
	paused := time.Now()
	if took := wants(lambdatest.Tenant, "second", "iban_hang", http.StatusAccepted); took >= hang/2 || underway(t, s) != 1 {
		t.Errorf("the second one took %v and called %d times altogether, want its answer at once, and one call", took, underway(t, s))
	}
	if n := unclaimed(t, s); n != 1 {
		t.Errorf("%d messages were inserted for the stream to wake a worker, want one", n)
	}
	wants(neighbour, "other", "iban_ok", http.StatusCreated)
	time.Sleep(3*time.Second - time.Since(paused))
	wants(lambdatest.Tenant, "third", "iban_ok", http.StatusCreated)
}

// unclaimed is how many messages are as they were inserted, for the worker: what the stream's mapping filters for, and claimed by nobody.
func unclaimed(t *testing.T, s *lambdatest.Stage) (n int) {
	t.Helper()
	for _, item := range s.Items(t, s.Outbox) {
		state, _ := item[schema.State].(*types.AttributeValueMemberS)
		epoch, _ := item[schema.Epoch].(*types.AttributeValueMemberN)
		if state != nil && state.Value == schema.MessageStatePending && (epoch == nil || epoch.Value == "0") {
			n++
		}
	}
	return n
}
