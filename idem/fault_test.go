package idem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// newFaultyWorld is a world whose store can be told to fail.
func newFaultyWorld(t *testing.T) (*world, *faulty.Store) {
	t.Helper()
	var store *faulty.Store
	w := newWorld(t, func(inner storage.Store) storage.Store {
		store = faulty.New(inner.(*memstore.Store))
		return store
	})
	return w, store
}

func (w *world) unavailable(op *idem.Registered, h idem.Handler) {
	w.Helper()
	result, err := op.Do(w.Context(), request("{}"), h)
	var unavailable *idem.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 {
		w.Fatalf("%+v, %v; want an UnavailableError with a Retry-After", result, err)
	}
}

func (w *world) ran(times int) {
	w.Helper()
	if w.runs != times {
		w.Errorf("the handler ran %d times, want %d", w.runs, times)
	}
}

// lateCommit keeps the first commit on the wire and loses all others.
func lateCommit(store *faulty.Store) *faulty.Late {
	late := new(faulty.Late)
	store.On(faulty.Commit, 1, late.Fault())
	for n := 2; n <= 500; n++ {
		store.On(faulty.Commit, n, faulty.LoseRequest())
	}
	return late
}

func TestLostReplyOnReserve(t *testing.T) { // One's own record in the way is one's own
	for name, fault := range map[string]faulty.Fault{"reply lost": faulty.LoseReply(), "request lost": faulty.LoseRequest()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: idem.KindAtomic})
				store.On(faulty.Insert, 1, fault)
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
				w.ran(1)
				w.written(1)
			})
		})
	}
}

// A reserve that lands while all its replies are lost must not lock the key for the length of its lease.
func TestReserveWithoutReplyIsGivenBack(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		t.Run(string(kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: kind})
				for n := 1; n <= 500; n++ {
					store.On(faulty.Insert, n, faulty.LoseReply())
				}
				w.unavailable(orders, w.effect(201, ""))
				store.Clear()
				w.want(w.do(orders, request("{}"), w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
				w.ran(1)
			})
		})
	}
}

func TestLostReplyOnCommit(t *testing.T) {
	for _, op := range kinds {
		for name, fault := range map[string]faulty.Fault{"reply lost": faulty.LoseReply(), "request lost": faulty.LoseRequest()} {
			t.Run(fmt.Sprintf("%s, %s", op.Kind, name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, store := newFaultyWorld(t)
					orders := w.register(op)
					for n := 1; n <= 3; n++ {
						store.On(faulty.Commit, n, fault)
					}
					w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
					w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
					w.ran(1)
					w.written(1)
				})
			})
		}
	}
}

// The commit has no reply, the fence-off says that it can't land; it must not.
func TestCommitThatIsFencedOffNeverLands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		late := lateCommit(store)
		w.unavailable(orders, w.handler(201))
		store.Clear()
		var conflict *storage.RecordConflictError
		if err := late.Deliver(t.Context()); !errors.As(err, &conflict) {
			t.Fatalf("the late commit: %v, want a RecordConflictError", err)
		}
		w.written(0)
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
		w.written(1)
	})
}

// The other way round: the delayed commit lands just before the fence-off, whose failure tells.
func TestCommitThatLandsBeforeTheFenceOffIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		late := lateCommit(store)
		store.On(faulty.Update, 1, faulty.Before(func() {
			if err := late.Deliver(t.Context()); err != nil {
				t.Errorf("the late commit: %v, want it to land", err)
			}
		}))
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
		w.ran(1)
		w.written(1)
	})
}

// A commit that lands after its 503: the retry finds it, nothing is written twice.
func TestLateCommitWithoutALeaseIsFoundByTheRetry(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindOptimistic, idem.KindDeferred} {
		t.Run(string(kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: kind})
				late := lateCommit(store)
				w.unavailable(orders, w.handler(201))
				store.Clear()
				if err := late.Deliver(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
				w.ran(1)
				w.written(1)
			})
		})
	}
}

func TestStoreDownFailsClosedSoonAndTheKeyWorksAfterwards(t *testing.T) {
	for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
		for name, fault := range map[string]faulty.Fault{"no reply": faulty.LoseRequest(), "throttled": faulty.Refuse(storage.ErrThrottled)} {
			t.Run(fmt.Sprintf("%s, %s", op.Kind, name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, store := newFaultyWorld(t)
					orders := w.register(op)
					store.All(fault)
					start := time.Now()
					w.unavailable(orders, w.handler(201))
					if took := time.Since(start); took > 6*time.Second {
						t.Errorf("the 503 took %v", took)
					}
					w.ran(0)
					store.Clear()
					result := w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
						return idem.Response{Status: 201}, nil
					})
					w.want(result, idem.OutcomeExecuted, 201, "")
				})
			})
		}
	}
}

func TestContentionIsTriedAgain(t *testing.T) {
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				store.On(faulty.Commit, 1, faulty.Refuse(storage.ErrContention))
				store.On(faulty.Commit, 2, faulty.Refuse(storage.ErrThrottled))
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
				w.ran(1)
				w.written(1)
			})
		})
	}
}

// No success is told before the commit is known.
func TestContentionForEverReleasesWith503(t *testing.T) {
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				for n := 1; n <= 20; n++ {
					store.On(faulty.Commit, n, faulty.Refuse(storage.ErrContention))
				}
				w.unavailable(orders, w.handler(201))
				store.Clear()
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
				w.written(1)
			})
		})
	}
}

func TestContentionOnReserveIsInProgress(t *testing.T) { // design.md "One request, step by step": bounded, then 409 + Retry-After: 1
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		for n := range 10 {
			store.On(faulty.Insert, n+1, faulty.Refuse(storage.ErrContention))
		}
		result := w.do(orders, request("{}"), w.handler(201))
		if result.Outcome != idem.OutcomeInProgress || result.RetryAfter != time.Second {
			t.Errorf("%+v, want in progress with a Retry-After of 1 s", result)
		}
		w.ran(0)
	})
}

// freeze stops the process before the call until its lease is long over; the request then still goes out.
func freeze(d time.Duration, meanwhile func()) faulty.Fault {
	return func(ctx context.Context, run func(context.Context) error) error {
		time.Sleep(d)
		meanwhile()
		return run(context.WithoutCancel(ctx))
	}
}

// The first holder is paused past its lease; its late commit is rejected, and it answers with the winner's
// result.
func TestTwoHoldersTheLateCommitIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		store.On(faulty.Commit, 1, freeze(time.Minute, func() {
			w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
		}))
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "2")
		w.ran(2)
		w.written(1)
	})
}

// A first holder that only notices after its lease sends nothing more, and still gives the true answer.
func TestTwoHoldersAHandlerThatOverstaysAnswersWithTheWinnersResult(t *testing.T) {
	for name, late := range map[string]error{"late result": nil, "late failure": errors.New("too late")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, _ := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: idem.KindAtomic})
				slow := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					time.Sleep(time.Minute)
					w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
					tx.Write(count("business"))
					return idem.Response{Status: 201, Body: []byte("slow")}, late
				}
				result, err := orders.Do(t.Context(), request("{}"), slow)
				if late == nil {
					if err != nil {
						t.Fatal(err)
					}
					w.want(result, idem.OutcomeReplayed, 201, "1")
				} else if err == nil {
					t.Errorf("%+v, want the handler's error", result)
				}
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
				w.written(1)
			})
		})
	}
}

// A duplicate that is turned away neither unlocks nor completes what the running original holds.
func TestDuplicateThatIsTurnedAwayFreesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		holder := func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
			for range 3 {
				if result := w.do(orders, request("{}"), w.handler(201)); result.Outcome != idem.OutcomeInProgress || result.RetryAfter <= 0 {
					t.Errorf("%+v, want in progress with a Retry-After", result)
				}
			}
			return w.handler(201)(ctx, tx)
		}
		w.want(w.do(orders, request("{}"), holder), idem.OutcomeExecuted, 201, "1")
		w.ran(1)
	})
}

// A client that disconnects neither cancels the save nor releases the lease: its retry would execute again.
func TestClientThatHangsUpChangesNothing(t *testing.T) {
	for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, _ := newFaultyWorld(t)
				orders := w.register(op)
				ctx, hangUp := context.WithCancel(t.Context())
				handler := func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
					hangUp()
					time.Sleep(time.Second)
					return idem.Response{Status: 201}, ctx.Err()
				}
				if result, err := orders.Do(ctx, request("{}"), handler); err != nil || result.Outcome != idem.OutcomeExecuted {
					t.Fatalf("%+v, %v; want it executed all the same", result, err)
				}
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "")
			})
		})
	}
}

func TestRecordOfAnotherReleaseIs503(t *testing.T) {
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				id := w.do(orders, request("{}"), w.handler(201)).OperationID
				key, err := id.RecordKey()
				if err != nil {
					t.Fatal(err)
				}
				r, err := store.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				next := *r
				next.SchemaVersion++
				if err := store.Update(t.Context(), next, storage.FenceOf(*r)); err != nil {
					t.Fatal(err)
				}
				w.unavailable(orders, w.handler(201))
				w.ran(1)
			})
		})
	}
}

func TestFingerprintIsComparedUnderTheSecretItWasStoredWith(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		w.do(orders, request(`{"a":1}`), w.handler(201))
		keyed, err := canonical.New(canonical.Config{Secrets: []canonical.Secret{{ID: "k1", Key: make([]byte, 32)}}})
		if err != nil {
			t.Fatal(err)
		}
		if w.engine, err = idem.New(w.mem, idem.Config{Fingerprinter: keyed}); err != nil {
			t.Fatal(err)
		}
		orders = w.register(idem.Operation{Kind: idem.KindAtomic})
		w.want(w.do(orders, request(`{"a":1}`), w.handler(201)), idem.OutcomeReplayed, 201, "1")
		if result := w.do(orders, request(`{"a":2}`), w.handler(201)); result.Outcome != idem.OutcomeMismatch {
			t.Errorf("%+v, want a mismatch", result)
		}
	})
}

// A reserve is on its way while the key's old record still holds it. Its client is answered 503. The store must not remove the
// record before the reserve has arrived: it would find nothing in its way, and leave a lease that nobody holds.
func TestARecordOutlivesAReserveThatIsLateOnTheWire(t *testing.T) {
	for name, status := range map[string]int{"completed": 201, "failed_retryable": 503} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: idem.KindAtomic})
				w.do(orders, request("{}"), w.handler(status))
				free := w.mem.Records()[0].FreeAt
				time.Sleep(time.Until(free) - time.Millisecond)
				reserve := new(faulty.Late)
				store.On(faulty.Insert, 1, reserve.Fault())
				for n := 2; n <= 500; n++ {
					store.On(faulty.Insert, n, faulty.LoseRequest())
				}
				w.unavailable(orders, w.handler(201))
				store.Clear()
				w.mem.Expire(free.Add(late - time.Millisecond))
				if err := reserve.Deliver(t.Context()); err == nil {
					t.Error("the late reserve found nothing in its way")
				}
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
			})
		})
	}
}

// A reserve that is late on the wire finds no row where native TTL has just removed an abandoned one (docs/semantics.md
// "States"). What it leaves is a lease like any other, whose end was set when its request began.
func TestAReserveThatArrivesAfterTTLHoldsTheKeyForOneLeaseAtMost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		abandoned := w.crashed(store, orders)
		removed, _ := abandoned.RemoveAfter()
		time.Sleep(time.Until(removed) - time.Second)
		late, began := new(faulty.Late), time.Now()
		store.On(faulty.Insert, 1, late.Fault())
		w.want(w.do(orders, request(`{"another":1}`), w.handler(201)), idem.OutcomeMismatch, 0, "")
		time.Sleep(2 * time.Second)
		if records, _ := w.mem.Expire(time.Now()); records != 1 {
			t.Fatalf("TTL removed %d records", records)
		}
		if err := late.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease := abandoned.LeaseUntil.Sub(abandoned.CreatedAt)
		if left := w.only().LeaseUntil; left.After(began.Add(lease)) {
			t.Errorf("the key is held until %v, a lease from the request's begin ends at %v", left, began.Add(lease))
		}
		if result := w.do(orders, request(`{"another":1}`), w.handler(201)); result.Outcome != idem.OutcomeInProgress {
			t.Errorf("%s under a lease that nobody holds", result.Outcome)
		}
		runs := w.runs
		time.Sleep(time.Until(began.Add(lease)))
		if result := w.do(orders, request(`{"another":1}`), w.handler(201)); result.Outcome != idem.OutcomeExecuted || w.runs != runs+1 {
			t.Errorf("%s once the lease was over", result.Outcome)
		}
	})
}
