package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	others    = 20 // requests of the other tenant: in every other round their calls to the provider hang
	asked     = 10 // requests of the neighbour, sent at once
	bursts    = 2  // how often they are sent in a round, one time after the other
	// callTimeout is for how long a call may hang.
	callTimeout = 10 * time.Second
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

// stallMin is the least that an answer takes of a machine that stood: one that is there sooner has another cause.
const stallMin = time.Second

// post sends a request until an instance takes it, as a client does that is throttled, and returns the answer's status. Where the store
// did not answer in time, on a machine that stood, it is sent again, as the answer asks for, and until nothing is in progress of that.
func (all instances) post(t *testing.T, tenant, key, destination string) int {
	t.Helper()
	event, stood := payout(t, tenant, key, destination, "wait=20"), false
	for until := time.Now().Add(lambdatest.Patience); ; time.Sleep(10 * time.Millisecond) {
		select {
		case h := <-all:
			began := time.Now()
			raw, err := h.Invoke(t.Context(), event)
			all <- h
			var a answer
			if err == nil {
				err = json.Unmarshal(raw, &a)
			}
			if err != nil {
				t.Error(err)
			}
			stood = stood || a.StatusCode == http.StatusServiceUnavailable && time.Since(began) >= stallMin
			again := a.StatusCode == http.StatusServiceUnavailable || a.StatusCode == http.StatusConflict
			if !stood || !again || time.Now().After(until) {
				return a.StatusCode
			}
		default:
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

// Requests of one tenant that hang at the provider hold up nobody else's while there are executions for both: the neighbour's are answered
// while all of the other tenant's hang. That must not be so where those have all executions.
func TestWaitsThatHangAreTheirTenantsAlone(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("PROVIDER_TIMEOUT", callTimeout.String()) // no call ends before the test lets it; more would leave a request no time for one
	t.Setenv("CLAIM_LEASE", "15s")
	t.Setenv("INLINE_PAUSE", "1ms") // every one of them calls, as the first one of each process does
	for _, tenant := range []string{lambdatest.Tenant, neighbour} {
		s.Account(t, tenant, "acct_1", 10_000_000)
	}
	all := reserved(t, others+asked)
	// A round in which the calls that hang end by themselves says nothing of them. That is where a neighbour is held up by them, and where
	// the machine stands for ten seconds: the latter does not happen time after time.
	round := func(destination string) func() []time.Duration {
		return func() []time.Duration {
			for range 3 {
				if took, held := all.answered(t, s, destination, lambdatest.Patience); took != nil && held {
					return took
				}
			}
			t.Fatalf("not all requests are answered beside another tenant's to %s, or those do not all hang", destination)
			return nil
		}
	}
	got := lambdatest.Measure(round("iban_ok"), round("iban_hang"))
	t.Logf("%d requests beside %d, %d executions: %v", asked, others, others+asked, got)
	if !got.Isolated() {
		t.Errorf("requests are slower beside another tenant's that hang: %v", got)
	}
	noticed(t, s, got.Enough())
}

// noticed demands that a neighbour who waits so long is not answered where the other tenant's requests have all executions. A round in
// which those did not all hang says nothing of that, either.
func noticed(t *testing.T, s *lambdatest.Stage, enough time.Duration) {
	t.Helper()
	full := reserved(t, others)
	for range 3 {
		took, held := full.answered(t, s, "iban_hang", enough)
		if held && took != nil {
			t.Error("a tenant whose requests have all executions is not noticed")
		}
		if held {
			return
		}
	}
	t.Error("the requests that are to have all executions do not all hang")
}

var keys atomic.Int64

// send posts so many requests at once, and returns how long each took until it was answered: 201, because nothing is left to the worker
// but what a call leaves that hung until its time was over. It is nil where one did.
func (all instances) send(t *testing.T, tenant string, count int, destination string) []time.Duration {
	t.Helper()
	took := make([]time.Duration, count)
	var left atomic.Bool
	var clients sync.WaitGroup
	began := time.Now()
	for i := range took {
		clients.Go(func() {
			got := all.post(t, tenant, fmt.Sprint(keys.Add(1)), destination)
			took[i] = time.Since(began)
			switch hung := destination == "iban_hang" || took[i] >= callTimeout; {
			case got == http.StatusAccepted && hung:
				left.Store(true)
			case got != http.StatusCreated:
				t.Errorf("%s: %d, want 201", tenant, got)
			}
		})
	}
	clients.Wait()
	if left.Load() {
		return nil
	}
	return took
}

// answered is how long the neighbour's requests take, after the same requests of the other tenant. If those are to iban_hang, they hang
// meanwhile: held says whether all of them did until the end. The times are nil where not all of the neighbour's are answered within
// patience, or a call of the neighbour's hung as well. In the end all requests are answered.
func (all instances) answered(t *testing.T, s *lambdatest.Stage, destination string, patience time.Duration) (took []time.Duration, held bool) {
	t.Helper()
	rule := provider.Rule{On: provider.Screening, Destination: "iban_hang", Fault: provider.HangAfter, DelayMillis: time.Hour.Milliseconds()}
	if err := s.Provider.Faults(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	var tenants sync.WaitGroup
	defer tenants.Wait()
	defer func() {
		if err := errors.Join(s.Provider.Faults(t.Context()), s.Provider.Resume(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	tenants.Go(func() { all.send(t, lambdatest.Tenant, others, destination) })
	hanging := func() bool {
		screenings, _ := s.Payouts(t)
		return lambdatest.Hanging(screenings, "iban_hang") == others
	}
	if destination == "iban_hang" {
		for until := time.Now().Add(lambdatest.Patience); !hanging(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(until) {
				return nil, false
			}
		}
	} else {
		tenants.Wait()
	}
	done := make(chan []time.Duration, 1)
	tenants.Go(func() {
		var each []time.Duration
		for range bursts {
			burst := all.send(t, neighbour, asked, "iban_ok")
			if burst == nil {
				done <- nil
				return
			}
			each = append(each, burst...)
		}
		done <- each
	})
	select {
	case took = <-done:
	case <-time.After(patience):
	}
	return took, destination != "iban_hang" || hanging()
}

// A provider that hangs holds one request of an execution: the payouts that follow are left to the worker, and get their 202 without a
// call. Other tenants' are made within their requests meanwhile, and the tenant's are again once the provider answers and the pause is over.
func TestAProviderThatHangsHoldsOneRequestOfAnExecution(t *testing.T) {
	const hang = 5 * time.Second
	s := lambdatest.New(t)
	t.Setenv("PROVIDER_TIMEOUT", hang.String())
	t.Setenv("CLAIM_LEASE", "10s")
	neighbours := []string{neighbour, "tenant-c", "tenant-d"}
	for _, tenant := range append(neighbours, lambdatest.Tenant) {
		s.Account(t, tenant, "acct_1", 10_000_000)
	}
	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Screening, Destination: "iban_hang", Fault: provider.HangBefore}); err != nil {
		t.Fatal(err)
	}
	wants := func(h awslambda.Handler, tenant, key, destination string, status int) {
		t.Helper()
		if got := invoke(t, h, payout(t, tenant, key, destination, "")); got.StatusCode != status {
			t.Errorf("%s: %d, want %d", key, got.StatusCode, status)
		}
	}
	// made wants a payout made within its request. One that took as if its call had hung says nothing, on a machine that stood: then
	// another is tried.
	made := func(try func(n int) answer) {
		t.Helper()
		for n := range 3 {
			began := time.Now()
			got := try(n)
			if got.StatusCode == http.StatusCreated {
				return
			}
			if took := time.Since(began); took < hang/2 || n == 2 {
				t.Fatalf("try %d: %d after %v, want 201", n, got.StatusCode, took)
			}
		}
	}
	t.Setenv("INLINE_PAUSE", "1h")
	h := started(t)
	began := time.Now()
	wants(h, lambdatest.Tenant, "first", "iban_hang", http.StatusAccepted)
	if took := time.Since(began); took < hang {
		t.Errorf("the first one took %v, want %v at least", took, hang)
	}
	wants(h, lambdatest.Tenant, "second", "iban_hang", http.StatusAccepted)
	if rules, err := s.Provider.Rules(t.Context()); err != nil || rules[0].Applied != 1 {
		t.Errorf("%+v, %v: want one call altogether", rules, err)
	}
	if n := unclaimed(t, s); n != 1 {
		t.Errorf("%d messages were inserted for the stream to wake a worker, want one", n)
	}
	made(func(n int) answer { return invoke(t, h, payout(t, neighbours[n], "other", "iban_ok", "")) })

	t.Setenv("INLINE_PAUSE", "500ms")
	h = started(t)
	wants(h, lambdatest.Tenant, "third", "iban_hang", http.StatusAccepted)
	made(func(n int) answer {
		time.Sleep(time.Second)
		return invoke(t, h, payout(t, lambdatest.Tenant, fmt.Sprint("fourth ", n), "iban_ok", ""))
	})
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
