package idem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// alone answers with the run's number and writes nothing.
func (w *world) alone(status int) idem.Handler {
	return func(context.Context, *idem.Tx) (idem.Response, error) {
		w.runs++
		return idem.JSON(status, w.runs)
	}
}

func TestExtendMovesTheEndAndNeverShortens(t *testing.T) {
	eachKind(t, func(p *idem.Policy) { p.GoneAfterExpiry, p.KeepFor = true, day }, func(w *world, orders *idem.Registered) {
		done := time.Now()
		id := w.do(orders, request("{}"), w.handler(201)).OperationID
		for _, c := range []struct{ until, want time.Duration }{{30 * day, 30 * day}, {2 * day, 30 * day}, {90 * day, 90 * day}} {
			if got, err := w.engine.Extend(w.Context(), "t", id, done.Add(c.until)); err != nil || !got.Equal(done.Add(c.want)) {
				w.Errorf("extended to %v: %v, %v; want %v", c.until, got.Sub(done), err, c.want)
			}
		}
		var tooFar *idem.ExtendError
		if _, err := w.engine.Extend(w.Context(), "t", id, done.Add(91*day)); !errors.As(err, &tooFar) || !tooFar.Latest.Equal(done.Add(90*day)) {
			w.Errorf("past 90 days: %v, want an ExtendError", err)
		}
		for range 90 {
			result := w.do(orders, request("{}"), w.handler(201))
			w.want(result, idem.OutcomeReplayed, 201, "1")
			if !result.ExpiresAt.Equal(done.Add(90 * day)) {
				w.Fatalf("expires %v after it was done, want 90 d", result.ExpiresAt.Sub(done))
			}
			w.mem.Expire(time.Now().Add(late))
			time.Sleep(day)
		}
		w.expired(orders, request("{}"), false)
		if _, err := w.engine.Extend(w.Context(), "t", id, time.Now().Add(time.Hour)); !errors.Is(err, idem.ErrNotLive) {
			w.Errorf("what has expired was extended: %v", err)
		}
	})
}

func TestAmendmentsAreTheTenantsOwnAndOfThisIncarnation(t *testing.T) { // I5
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		id := w.do(w.register(idem.Operation{Kind: idem.KindAtomic}), request("{}"), w.handler(201)).OperationID
		for tenant, id := range map[string]idem.OperationID{"u": id, "t": another(id), "t ": "op_nonsense"} {
			_, extend := w.engine.Extend(t.Context(), tenant, id, time.Now().Add(2*day))
			_, bust := w.engine.CacheBust(t.Context(), tenant, id, "", "no")
			for name, err := range map[string]error{
				"extend": extend, "end": w.engine.End(t.Context(), tenant, id), "cache-bust": bust,
			} {
				if !errors.Is(err, idem.ErrNotLive) {
					t.Errorf("tenant %q, id %q, %s: %v, want ErrNotLive", tenant, id, name, err)
				}
			}
		}
		if got := w.mem.Records()[0]; !got.ExpiresAt.Equal(time.Now().Add(day)) {
			t.Errorf("expires %v, want it untouched", got.ExpiresAt)
		}
	})
}

func TestOnlyFinalRecordsAreAmended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		id := w.do(w.register(idem.Operation{Kind: idem.KindDeferred}), request("{}"), w.handler(202)).OperationID
		_, extend := w.engine.Extend(t.Context(), "t", id, time.Now().Add(2*day))
		_, bust := w.engine.CacheBust(t.Context(), "t", id, "", "no")
		for name, err := range map[string]error{
			"extend": extend, "end": w.engine.End(t.Context(), "t", id), "cache-bust": bust,
		} {
			var refused *idem.TransitionError
			if !errors.As(err, &refused) || refused.State != storage.StatePending {
				t.Errorf("%s of a pending record: %v, want a TransitionError", name, err)
			}
		}
	})
}

func TestConcurrentExtensionsEndWithTheLongest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		id := w.do(w.register(idem.Operation{Kind: idem.KindOptimistic}), request("{}"), w.handler(201)).OperationID
		until := time.Now().Add(30 * day)
		store.On(faulty.Update, 1, faulty.Before(func() {
			if _, err := w.engine.Extend(t.Context(), "t", id, until); err != nil {
				t.Error(err)
			}
		}))
		if got, err := w.engine.Extend(t.Context(), "t", id, time.Now().Add(2*day)); err != nil || !got.Equal(until) {
			t.Errorf("%v, %v; want the longer one to stand", got, err)
		}
		if got := w.mem.Records()[0].ExpiresAt; !got.Equal(until) {
			t.Errorf("stored %v, want %v", got, until)
		}
	})
}

func TestAnAmendmentSurvivesALostReply(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"request lost": faulty.LoseRequest(), "reply lost": faulty.LoseReply(), "contention": faulty.Refuse(storage.ErrContention),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(withPolicy(idem.Operation{Kind: idem.KindOptimistic}, func(p *idem.Policy) { p.ResourceBacked = true }))
				id := w.do(orders, request("{}"), w.handler(201)).OperationID
				store.On(faulty.Update, 1, fault)
				if err := w.engine.End(t.Context(), "t", id); err != nil {
					t.Errorf("end: %v", err)
				}
				time.Sleep(skew)
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
				store.All(faulty.Refuse(errors.New("down")))
				var unavailable *idem.UnavailableError
				if _, err := w.engine.Extend(t.Context(), "t", w.mem.Records()[0].OperationID, time.Now()); !errors.As(err, &unavailable) {
					t.Errorf("a store that is down: %v, want an UnavailableError", err)
				}
			})
		})
	}
}

// semantics.md "Policies": a record may live as long as the resource that it made.
func TestResourceBackedRecordsLiveUntilTheyAreEnded(t *testing.T) {
	eachKind(t, func(p *idem.Policy) { p.ResourceBacked = true }, func(w *world, orders *idem.Registered) {
		id := w.do(orders, request("{}"), w.handler(201)).OperationID
		for range 24 {
			time.Sleep(30 * day)
			w.mem.Expire(time.Now().Add(late))
			result := w.do(orders, request("{}"), w.handler(201))
			w.want(result, idem.OutcomeReplayed, 201, "1")
			if !result.ExpiresAt.IsZero() {
				w.Fatalf("expires %v, want no expiry", result.ExpiresAt)
			}
		}
		if until, err := w.engine.Extend(w.Context(), "t", id, time.Now().Add(day)); err != nil || !until.IsZero() {
			w.Errorf("extended to %v, %v; want no end", until, err)
		}
		for range 2 { // again until it succeeds
			if err := w.engine.End(w.Context(), "t", id); err != nil {
				w.Error(err)
			}
		}
		time.Sleep(skew)
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
		if err := w.engine.End(w.Context(), "t", id); !errors.Is(err, idem.ErrNotLive) {
			w.Errorf("the next incarnation was ended by the first one's id: %v", err)
		}
	})
}

func TestResourceBackedFailuresExpire(t *testing.T) {
	eachKind(t, func(p *idem.Policy) { p.ResourceBacked = true }, func(w *world, orders *idem.Registered) {
		declined := w.do(orders, request("{}"), w.alone(402))
		if !declined.ExpiresAt.Equal(time.Now().Add(day)) {
			w.Errorf("a declined request expires %v, want its retention", declined.ExpiresAt)
		}
		if err := w.engine.End(w.Context(), "t", declined.OperationID); err != nil {
			w.Error(err)
		}
		w.want(w.do(orders, request("{}"), w.alone(402)), idem.OutcomeReplayed, 402, "1")
		time.Sleep(day + skew)
		w.want(w.do(orders, request("{}"), w.alone(201)), idem.OutcomeExecuted, 201, "2")
	})
}

// A business rejection made nothing that its record could live as long as, also where the handler itself answered with a success.
func TestResourceBackedRejectionsExpire(t *testing.T) {
	problem := idem.NewProblem(402, "insufficient_funds", "Insufficient funds", "The account does not hold the amount.")
	eachKind(t, func(p *idem.Policy) { p.ResourceBacked = true }, func(w *world, orders *idem.Registered) {
		poor := true
		handler := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(memstore.Write{Key: "balance", Condition: func([]byte) bool { return !poor }, Failure: idem.Reject(problem)})
			return idem.Response{Status: 201}, nil
		}
		rejected := w.do(orders, request("{}"), handler)
		if !rejected.ExpiresAt.Equal(time.Now().Add(day)) {
			w.Errorf("a rejection expires %v, want its retention", rejected.ExpiresAt)
		}
		poor = false
		body := string(problem.Response().Body)
		w.want(w.do(orders, request("{}"), handler), idem.OutcomeReplayed, 402, body)
		time.Sleep(day + skew)
		w.want(w.do(orders, request("{}"), handler), idem.OutcomeExecuted, 201, "")
	})
}

// An ended record under 410 is kept as an expired one is.
func TestEndedRecordsLeaveATombstone(t *testing.T) {
	eachKind(t, func(p *idem.Policy) { p.ResourceBacked, p.GoneAfterExpiry, p.KeepFor = true, true, 3*day }, func(w *world, orders *idem.Registered) {
		id := w.do(orders, request("{}"), w.handler(201)).OperationID
		time.Sleep(100 * day)
		if err := w.engine.End(w.Context(), "t", id); err != nil {
			w.Fatal(err)
		}
		for range 3 {
			w.expired(orders, request("{}"), false)
			w.mem.Expire(time.Now().Add(late))
			time.Sleep(day)
		}
		time.Sleep(skew)
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
	})
}

// A commit that was on its way while its resource was made and deleted again finds that it has happened.
func TestALateCommitAfterTheEndOfItsRecordChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(withPolicy(idem.Operation{Kind: idem.KindOptimistic}, func(p *idem.Policy) { p.ResourceBacked = true }))
		late := new(faulty.Late)
		store.On(faulty.Commit, 1, late.Fault())
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
		if err := w.engine.End(t.Context(), "t", w.mem.Records()[0].OperationID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(14 * time.Minute) // past the token's window, and a request may still be under way
		w.mem.Expire(time.Now().Add(time.Hour))
		if err := late.Deliver(t.Context()); err == nil {
			t.Error("the late commit landed")
		}
		w.written(1)
	})
}

// uncached is longer than a cache-bust takes to free a key: the age of caches, its own time and the clocks' difference.
const uncached = 2 * time.Minute

func TestCacheBustExecutesAgainWhereNothingElseWasWritten(t *testing.T) {
	eachKind(t, func(*idem.Policy) {}, func(w *world, orders *idem.Registered) {
		id := w.do(orders, request("{}"), w.alone(200)).OperationID
		w.want(w.do(orders, request("{}"), w.alone(200)), idem.OutcomeReplayed, 200, "1")
		if _, err := w.engine.CacheBust(w.Context(), "t", id, "", "the rate was wrong"); err != nil {
			w.Fatal(err)
		}
		if r := w.mem.Records()[0]; r.State != storage.StateFailedRetryable || r.LastError != "cache-bust: the rate was wrong" || r.Response.Status != 0 {
			w.Errorf("the record is %s, %q, with status %d", r.State, r.LastError, r.Response.Status)
		}
		time.Sleep(uncached)
		other := w.do(orders, request(`{"other":true}`), w.alone(200))
		if other.Outcome != idem.OutcomeMismatch {
			w.Errorf("another payload: %s, want a mismatch still", other.Outcome)
		}
		w.want(w.do(orders, request("{}"), w.alone(200)), idem.OutcomeExecuted, 200, "2")
		again := w.do(orders, request("{}"), w.alone(200))
		w.want(again, idem.OutcomeReplayed, 200, "2")
		if r := w.mem.Records()[0]; again.OperationID != id || r.Epoch != 2 {
			w.Errorf("operation %s epoch %d, want the same operation in epoch 2", again.OperationID, r.Epoch)
		}
	})
}

// semantics.md "What is never cached or trusted": refused where the commit wrote anything but the record.
func TestCacheBustIsRefusedWhereItCouldRepeatAnything(t *testing.T) {
	message := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Send("orders.ship", []byte("parcel"))
		return idem.Response{Status: 201}, nil
	}
	for name, c := range map[string]struct {
		op      idem.Operation
		handler func(*world) idem.Handler
	}{
		"a business write":     {idem.Operation{Kind: idem.KindAtomic}, func(w *world) idem.Handler { return w.handler(201) }},
		"the same, optimistic": {idem.Operation{Kind: idem.KindOptimistic}, func(w *world) idem.Handler { return w.handler(201) }},
		"a message":            {idem.Operation{Kind: idem.KindAtomic}, func(*world) idem.Handler { return message }},
		"a wrapped handler":    {idem.Operation{Kind: idem.KindWrapped}, func(w *world) idem.Handler { return w.effect(201, "made") }},
		"a live resource": {withPolicy(idem.Operation{Kind: idem.KindAtomic}, func(p *idem.Policy) { p.ResourceBacked = true }),
			func(w *world) idem.Handler { return w.alone(201) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(c.op)
				first := w.do(orders, request("{}"), c.handler(w))
				var refused *idem.CacheBustError
				if _, err := w.engine.CacheBust(t.Context(), "t", first.OperationID, "", "no"); !errors.As(err, &refused) || refused.OperationID != first.OperationID || refused.Reason == "" {
					t.Errorf("%v, want a CacheBustError", err)
				}
				w.want(w.do(orders, request("{}"), c.handler(w)), idem.OutcomeReplayed, first.Response.Status, string(first.Response.Body))
			})
		})
	}
}

// A settled operation had a message, and a release that knows no flag did not say: both keep their answer.
func TestCacheBustIsRefusedWhereNobodySaidThatNothingElseWasWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		id := w.do(w.register(idem.Operation{Kind: idem.KindDeferred}), request("{}"), w.handler(202)).OperationID
		w.settle(id)
		var refused *idem.CacheBustError
		if _, err := w.engine.CacheBust(t.Context(), "t", id, "", "no"); !errors.As(err, &refused) {
			t.Errorf("%v, want a CacheBustError", err)
		}
	})
}

func TestCacheBustOfARejectionAndOfWhatIsSafeToRunAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		rejected := w.register(idem.Operation{Name: "orders.reject", Kind: idem.KindAtomic})
		reject := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(count("business")) // thrown away with the rejection
			return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(402, "declined", "Declined", "No.")}
		}
		safe := w.register(idem.Operation{Name: "orders.safe", Kind: idem.KindWrapped, SafeToRunAgain: true})
		for _, id := range []idem.OperationID{
			w.do(rejected, request("{}"), reject).OperationID, w.do(safe, request("{}"), w.effect(201, "made")).OperationID,
		} {
			if _, err := w.engine.CacheBust(t.Context(), "t", id, "", "again"); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(uncached)
		w.want(w.do(rejected, request("{}"), w.alone(201)), idem.OutcomeExecuted, 201, "2")
		w.want(w.do(safe, request("{}"), w.effect(201, "anew")), idem.OutcomeExecuted, 201, "anew")
	})
}

// A lost reply is no licence to bust the answer that came after the one that was meant: the key is free only when no try of
// the cache-bust can land any more.
func TestCacheBustWithoutAReplyLeavesTheNextAnswerAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindOptimistic})
		id := w.do(orders, request("{}"), w.alone(200)).OperationID
		store.On(faulty.Update, 1, faulty.LoseReply())
		store.On(faulty.Update, 1, faulty.After(func(error) {
			if result := w.do(orders, request("{}"), w.alone(200)); result.Outcome != idem.OutcomeInProgress {
				t.Errorf("%s between the tries", result.Outcome)
			}
		}))
		if _, err := w.engine.CacheBust(t.Context(), "t", id, "", "wrong"); err != nil {
			t.Error(err)
		}
		time.Sleep(uncached)
		w.want(w.do(orders, request("{}"), w.alone(200)), idem.OutcomeExecuted, 200, "2")
		w.want(w.do(orders, request("{}"), w.alone(200)), idem.OutcomeReplayed, 200, "2")
	})
}
