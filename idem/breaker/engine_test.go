package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// orders is an operation of an engine behind the breaker.
func (w *world) orders(op idem.Operation) *idem.Registered {
	w.Helper()
	engine := must[*idem.Engine](w.T)(idem.New(w.breaker, idem.Config{}))
	op.Name, op.Policy = "orders.create", idem.IETF()
	return must[*idem.Registered](w.T)(engine.Register(op))
}

func request(key string) idem.Request {
	return idem.Request{Tenant: "t", Key: key, Input: canonical.Input{MediaType: "application/json", Body: []byte(`{"a":1}`)}}
}

// handler counts its commits in a row.
func handler(_ context.Context, tx *idem.Tx) (storage.Response, error) {
	tx.Write(memstore.Write{Key: "commits", Apply: func(row []byte) []byte { return append(row, '1') }})
	return idem.JSON(201, "done")
}

var kinds = []idem.Operation{{Kind: storage.KindAtomic}, {Kind: storage.KindAtomic, ReadFirst: true}, {Kind: storage.KindOptimistic}, {Kind: storage.KindWrapped, UnknownToOperator: true}}

func noHandler(context.Context, *idem.Tx) (storage.Response, error) {
	return storage.Response{}, errors.New("a handler ran while the store was down")
}

// hang is a store that never answers.
func hang(ctx context.Context, _ func(context.Context) error) error {
	<-ctx.Done()
	return &storage.OutcomeUnknownError{Cause: ctx.Err()}
}

// semantics.md "What is never cached or trusted": 503 before the handler runs, and at once while the store is down.
func TestRequestsFailClosedAndAtOnce(t *testing.T) {
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, breaker.Config{FailuresMax: 3})
				orders := w.orders(op)
				w.faults.All(hang)
				for range 3 {
					_, err := orders.Do(t.Context(), request("before"), noHandler)
					if unavailable(t, err).RetryAfter > 5*time.Second {
						t.Errorf("Retry-After %v", unavailable(t, err).RetryAfter)
					}
				}
				time.Sleep(2 * time.Second)
				began := time.Now()
				_, err := orders.Do(t.Context(), request("k"), noHandler)
				if after := unavailable(t, err).RetryAfter; notAsked(err) == nil || after <= time.Second || after > 3*time.Second {
					t.Errorf("Retry-After %v of %v, want the time until the probe", after, err)
				}
				var unknown *storage.OutcomeUnknownError
				if took := time.Since(began); took != 0 || errors.As(err, &unknown) {
					t.Errorf("%v after %v, want nothing unknown, at once", err, took)
				}

				w.faults.Clear()
				time.Sleep(5 * time.Second)
				for _, outcome := range []idem.Outcome{idem.OutcomeExecuted, idem.OutcomeReplayed} {
					h := handler
					if op.Kind == storage.KindWrapped {
						h = func(context.Context, *idem.Tx) (storage.Response, error) { return idem.JSON(201, "done") }
					}
					if result, err := orders.Do(t.Context(), request("k"), h); err != nil || result.Outcome != outcome {
						t.Errorf("after the store is back: %+v, %v, want %s", result, err, outcome)
					}
				}
				if op.Kind != storage.KindWrapped && len(w.mem.Row("commits")) != 1 {
					t.Errorf("%d commits", len(w.mem.Row("commits")))
				}
			})
		})
	}
}

func unavailable(t *testing.T, err error) *idem.UnavailableError {
	t.Helper()
	var unavailable *idem.UnavailableError
	if !errors.As(err, &unavailable) {
		t.Fatalf("got %v, want an UnavailableError", err)
	}
	return unavailable
}

// A breaker that opens while a handler runs does not keep its commit from being sent, or from being fenced off.
func TestWhoHoldsALeaseFinishes(t *testing.T) {
	for _, op := range kinds[:3] {
		t.Run(string(op.Kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, breaker.Config{OpenFor: time.Hour})
				result, err := w.orders(op).Do(t.Context(), request("k"), func(ctx context.Context, tx *idem.Tx) (storage.Response, error) {
					w.trip()
					w.faults.Clear()
					return handler(ctx, tx)
				})
				if err != nil || result.Outcome != idem.OutcomeExecuted || len(w.mem.Row("commits")) != 1 {
					t.Errorf("%+v, %v, %d commits; want it executed once", result, err, len(w.mem.Row("commits")))
				}
			})
		})
	}
}

// The commit's replies are lost until the breaker opens and beyond: it is sent again and fenced off all the same, and what
// it did is the answer.
func TestALostCommitIsResolvedThroughAnOpenBreaker(t *testing.T) { // peers.md H1
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, breaker.Config{FailuresMax: 1, OpenFor: time.Hour})
		for n := range 4 {
			w.faults.On(faulty.Commit, n+1, faulty.LoseReply())
		}
		result, err := w.orders(kinds[0]).Do(t.Context(), request("k"), handler)
		if err != nil || result.Outcome != idem.OutcomeExecuted || len(w.mem.Row("commits")) != 1 {
			t.Errorf("%+v, %v, %d commits; want it executed once", result, err, len(w.mem.Row("commits")))
		}
		if w.faults.Count(faulty.Commit) != 5 {
			t.Errorf("%d commits were sent, want the fifth to be answered", w.faults.Count(faulty.Commit))
		}
	})
}

// A reserve that happened and had no reply opens the breaker, so it is not sent again; it must still count as one that may
// have happened, and be given back (ADR 0010).
func TestAReserveWithoutAReplyIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, breaker.Config{FailuresMax: 1})
		orders := w.orders(kinds[0])
		w.faults.On(faulty.Insert, 1, faulty.LoseReply())
		_, err := orders.Do(t.Context(), request("k"), noHandler)
		if unavailable(t, err).RetryAfter > 5*time.Second || w.faults.Count(faulty.Insert) != 1 {
			t.Errorf("%v after %d reserves", err, w.faults.Count(faulty.Insert))
		}
		for _, r := range w.mem.Records() {
			if r.State != storage.StateFailedRetryable {
				t.Errorf("the record is %s, want it given back", r.State)
			}
		}
		time.Sleep(5*time.Second + 1)
		if result, err := orders.Do(t.Context(), request("k"), handler); err != nil || result.Outcome != idem.OutcomeExecuted {
			t.Errorf("the retry after the 503: %+v, %v", result, err)
		}
	})
}
