package idem_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// A handler that writes for itself ignores its context for minutes. It is alive, so its lease is: nobody may take its end
// for granted, or a probe finds nothing and the retry does it once more.
func TestALivingWrappedHandlerKeepsItsLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		over := make(chan struct{})
		go func() { // a sweep, and duplicates
			for {
				select {
				case <-over:
					return
				case <-time.After(7 * time.Second):
				}
				if state, err := w.engine.ParkDead(t.Context(), w.only().Key); state != "" || err != nil {
					t.Errorf("the sweep parked a living holder: %q, %v", state, err)
				}
				if result, err := orders.Do(t.Context(), request("{}"), w.effect(201, "twice")); err != nil || result.Outcome != idem.OutcomeInProgress {
					t.Errorf("a duplicate got %+v, %v, want in progress", result, err)
				}
			}
		}()
		w.want(w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
			time.Sleep(3 * time.Minute)
			close(over)
			w.runs++
			return idem.Response{Status: 201, Body: []byte("charged")}, nil
		}), idem.OutcomeExecuted, 201, "charged")
		w.want(w.do(orders, request("{}"), w.effect(201, "twice")), idem.OutcomeReplayed, 201, "charged")
		w.ran(1)
	})
}

// Who waited for its key begins late in a lease that counts from its own beginning, and asks for more of it before that is over.
func TestAWrappedHandlerThatBeganLateKeepsItsLease(t *testing.T) {
	for _, before := range []time.Duration{time.Second, 12 * time.Second, 19 * time.Second, 20 * time.Second} {
		t.Run(before.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, _ := newFaultyWorld(t)
				policy := idem.IETF()
				policy.InFlight, policy.WaitMax = idem.InFlightWait, 25*time.Second
				orders := w.register(idem.Operation{Kind: idem.KindWrapped, ReleaseOn: []int{503}, Policy: policy})
				go func() {
					_, _ = orders.Do(t.Context(), request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
						time.Sleep(before)
						return idem.Response{Status: 503}, nil
					})
				}()
				time.Sleep(time.Millisecond)
				w.want(w.do(orders, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
					for second := range 60 {
						time.Sleep(time.Second)
						if err := idem.Leased(ctx); err != nil || ctx.Err() != nil {
							t.Fatalf("after %d s: %v, context %v, though the store answers", second, err, context.Cause(ctx))
						}
						if state, err := w.engine.ParkDead(t.Context(), w.only().Key); state != "" || err != nil {
							t.Fatalf("after %d s the sweep parked a living holder: %q, %v", second, state, err)
						}
					}
					return idem.Response{Status: 201, Body: []byte("charged")}, nil
				}), idem.OutcomeExecuted, 201, "charged")
			})
		})
	}
}

// Where the platform kills at the deadline nobody renews: a lease that is over belongs to nobody.
func TestNoLeaseIsRenewedWhereThePlatformKills(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		w.engineOf(store, idem.Config{KillsAtDeadline: true})
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
			time.Sleep(30 * time.Second)
			if state, err := w.engine.ParkDead(t.Context(), w.only().Key); state != storage.StateUnknown || err != nil {
				t.Errorf("%q, %v, want it parked", state, err)
			}
			return idem.Response{Status: 201}, nil
		})
		if n := store.Count(faulty.Renew); n != 0 {
			t.Errorf("%d renewals", n)
		}
	})
}

// engineOf gives the world another engine on the store.
func (w *world) engineOf(store storage.Store, cfg idem.Config) {
	w.Helper()
	var err error
	if w.engine, err = idem.New(store, cfg); err != nil {
		w.Fatal(err)
	}
}

// A business condition that failed beside a lock that nobody judged was judged on old data: the handler reads again.
func TestARejectionBesideALockThatWasNotJudgedRunsAgain(t *testing.T) {
	reject := idem.Reject(idem.NewProblem(402, "insufficient_funds", "No", "No."))
	for name, cancelled := range map[string]error{
		"with a failed condition": &storage.WriteFailedError{Indexes: []int{0}, Unjudged: []int{1}},
		"without one":             &storage.ContentionError{Unjudged: []int{1}},
	} {
		for _, op := range kinds {
			t.Run(fmt.Sprintf("%s, %s", name, op.Kind), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, store := newFaultyWorld(t)
					orders := w.register(op)
					store.On(faulty.Commit, 1, faulty.Refuse(cancelled))
					always := func([]byte) bool { return true }
					w.want(w.do(orders, request("{}"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(memstore.Write{Key: "funds", Condition: always, Failure: reject},
							memstore.Write{Key: "version", Condition: always, Failure: idem.Retry()}, count("business"))
						return idem.JSON(201, tx.Attempt())
					}), idem.OutcomeExecuted, 201, "2")
					w.written(1)
				})
			})
		}
	}
}

// A rejection beside any other item that was not judged proves nothing either: the same transaction is sent again.
func TestARejectionBesideAnythingThatWasNotJudgedIsSentAgain(t *testing.T) {
	reject := idem.Reject(idem.NewProblem(402, "insufficient_funds", "No", "No."))
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		store.On(faulty.Commit, 1, faulty.Refuse(&storage.WriteFailedError{Indexes: []int{0}, OwnUnjudged: true}))
		w.want(w.do(orders, request("{}"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(memstore.Write{Key: "funds", Condition: func([]byte) bool { return true }, Failure: reject}, count("business"))
			return idem.JSON(201, tx.Attempt())
		}), idem.OutcomeExecuted, 201, "1")
		w.written(1)
	})
}

// What an observing instance stores is no permission for an enforcing one to run again.
func TestObserveModeStoresNoPermission(t *testing.T) {
	for _, status := range []int{201, 500} {
		bubble(t, func(t *testing.T) {
			w, _ := newFaultyWorld(t)
			orders := w.register(idem.Operation{Kind: idem.KindWrapped, Policy: idem.Observe(idem.IETF())})
			w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
				if w.only().SafeToRunAgain {
					t.Error("a record in progress says that running again is safe")
				}
				return idem.Response{Status: status}, nil
			})
			if r := w.only(); r.SafeToRunAgain || status == 500 && r.State != storage.StateUnknown {
				t.Errorf("%d left a record that is %s, safe %v", status, r.State, r.SafeToRunAgain)
			}
		})
	}
}

// One's own reserve in the way of its resend is a key that is used.
func TestOnesOwnReserveKeepsTheQuotasRight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		quota := &counted{keys: 5}
		w.engineOf(store, idem.Config{Quota: quota})
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		store.On(faulty.Insert, 1, faulty.LoseReply())
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
		if quota.keys != 4 {
			t.Errorf("%d rights left of 5, want 4", quota.keys)
		}
	})
}

// So is one that an operator has fenced off before its resend: it was begun under this right, and its own execution takes it over.
func TestAReserveThatWasFencedOffKeepsTheQuotasRight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		quota := &counted{keys: 5}
		w.engineOf(store, idem.Config{Quota: quota})
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		lost := faulty.LoseReply()
		store.On(faulty.Insert, 1, func(ctx context.Context, run func(context.Context) error) error {
			err := lost(ctx, run)
			r := w.only()
			if _, free := w.engine.Free(t.Context(), r.Tenant, r.OperationID, r.Revision, "wanted it fenced off"); free != nil {
				t.Error(free)
			}
			return err
		})
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
		if quota.keys != 4 {
			t.Errorf("%d rights left of 5, want 4", quota.keys)
		}
	})
}

// An instance whose clock is ahead must not execute anew while another one's promise to replay stands.
func TestAnExpiredKeyIsFreeOnlyAfterTheSkew(t *testing.T) {
	for _, op := range kinds {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(op)
				w.do(orders, request("{}"), w.handler(201))
				time.Sleep(day + skew - time.Millisecond)
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
				time.Sleep(time.Millisecond)
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
			})
		})
	}
}

// Without a lease: the first commit is on its way, its resend loses an optimistic lock, and the handler then fails. Its
// client is told so, and the lock goes back to what the first commit was made for: it must not land any more.
func TestWhatWasToldToHaveFailedNeverCommitsLater(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindOptimistic, idem.KindDeferred} {
		t.Run(string(kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: kind})
				late := new(faulty.Late)
				store.On(faulty.Commit, 1, late.Fault())
				store.On(faulty.Commit, 2, faulty.Before(func() { w.mem.PutRow("version", []byte("theirs")) }))
				down := errors.New("down")
				_, err := orders.Do(t.Context(), request("{}"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					if tx.Attempt() > 1 {
						return idem.Response{}, down
					}
					tx.Write(memstore.Write{Key: "version", Condition: func(row []byte) bool { return row == nil }, Failure: idem.Retry()}, count("business"))
					return idem.Response{Status: 201}, nil
				})
				if !errors.Is(err, down) {
					t.Fatalf("%v, want the handler's error", err)
				}
				w.mem.PutRow("version", nil)
				var conflict *storage.RecordConflictError
				if err := late.Deliver(t.Context()); !errors.As(err, &conflict) {
					t.Errorf("the late commit: %v, want a RecordConflictError", err)
				}
				w.written(0)
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
			})
		})
	}
}

// A process is frozen before a try leaves, and thawed when its time is over: the winner may be gone by then.
func TestATryThatWasFrozenNeverLeaves(t *testing.T) {
	for _, op := range kinds {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				store.On(faulty.Commit, 1, faulty.Before(func() { time.Sleep(time.Hour) }))
				w.unavailable(orders, w.handler(201))
				w.written(0)
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
				w.written(1)
			})
		})
	}
}

// A clock that stands still is no reason to go on for ever: what was waited for counts.
func TestAClockThatStandsStillEndsARequestAllTheSame(t *testing.T) {
	for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				noon := time.Now()
				w.engineOf(store, idem.Config{Now: func() time.Time { return noon }})
				orders := w.register(op)
				calls := 0
				store.All(func(ctx context.Context, run func(context.Context) error) error {
					if calls++; calls > 500 {
						panic("it never ends")
					}
					if calls == 1 {
						return run(ctx)
					}
					return &storage.OutcomeUnknownError{Cause: errors.New("lost")}
				})
				w.unavailable(orders, w.effect(201, ""))
			})
		})
	}
}

// RunMax ends the renewal of a lease, with one alarm; the handler's context ends with the lease that it has.
func TestAHandlerThatReachesRunMaxRaisesOneAlarm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		start := time.Now()
		result, err := w.do(orders, secret(), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
			<-ctx.Done()
			if took := time.Since(start); took < 15*time.Minute || took > 16*time.Minute || !errors.Is(context.Cause(ctx), idem.ErrLeaseOver) {
				t.Errorf("the context ended after %v: %v", took, context.Cause(ctx))
			}
			return idem.Response{Status: 201}, nil
		})
		if err != nil || result.Outcome != idem.OutcomeExecuted {
			t.Errorf("%+v, %v", result, err)
		}
		if n := strings.Count(w.log.String(), `"msg":"idempotency.run_max"`); n != 1 || !strings.Contains(w.log.String(), `"alarm":true`) {
			t.Errorf("%d alarms, want 1: %s", n, w.log)
		}
	})
}

// docs/operator.md "RunMax": a handler that ignores its context answers after RunMax, when its operation is unknown, or was released and
// nobody has come since. Its answer is stored and completes the operation, so an operator stops its process before they decide.
func TestAnAnswerAfterRunMaxCompletesTheOperation(t *testing.T) {
	manual, err := os.ReadFile("../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	const says = "If the handler ends with an answer after that, it is stored and completes the operation: stop its process before you decide."
	if !strings.Contains(strings.Join(strings.Fields(string(manual)), " "), says) {
		t.Errorf("docs/operator.md does not say: %s", says)
	}
	for _, released := range []bool{false, true} {
		t.Run(fmt.Sprintf("released %t", released), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, _ := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: idem.KindWrapped})
				w.want(w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
					time.Sleep(20 * time.Minute)
					w.runs++
					if state, err := w.engine.ParkDead(t.Context(), w.only().Key); state != storage.StateUnknown || err != nil {
						t.Errorf("the sweep: %q, %v", state, err)
					}
					if parked := w.only(); released {
						if freed, err := w.engine.Free(t.Context(), parked.Tenant, parked.OperationID, parked.Revision, "nothing is there yet"); freed.State != storage.StateFailedRetryable || err != nil {
							t.Errorf("the operator: %s, %v", freed.State, err)
						}
					}
					return idem.Response{Status: 201, Body: []byte("charged")}, nil
				}), idem.OutcomeExecuted, 201, "charged")
				if state := w.only().State; state != storage.StateCompleted {
					t.Errorf("the record is %s", state)
				}
				w.want(w.do(orders, request("{}"), w.effect(201, "twice")), idem.OutcomeReplayed, 201, "charged")
				w.ran(1)
			})
		})
	}
}

// A renewal whose reply is lost ends with the handler: its answer is more.
func TestAHandlersAnswerDoesNotWaitForARenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		for n := 1; n <= 500; n++ {
			store.On(faulty.Renew, n, faulty.LoseRequest())
		}
		start := time.Now()
		w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
			time.Sleep(12 * time.Second)
			return idem.Response{Status: 201}, nil
		})
		if took := time.Since(start); took > 12*time.Second+100*time.Millisecond {
			t.Errorf("the answer took %v", took)
		}
	})
}

func TestTheContextNamesItsExecutionAndItsLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		var kept context.Context
		result := w.do(orders, request("{}"), func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
			kept = ctx
			want := idem.Execution{OperationID: tx.OperationID(), Tenant: "t", Operation: "orders.create", Attempt: 1}
			if x, ok := idem.ExecutionFrom(ctx); !ok || x != want {
				t.Errorf("%+v, %v, want %+v", x, ok, want)
			}
			time.Sleep(2 * time.Minute)
			if err := idem.Leased(ctx); err != nil {
				t.Errorf("a renewed lease: %v", err)
			}
			return idem.Response{Status: 201}, nil
		})
		if x, ok := idem.ExecutionFrom(t.Context()); ok {
			t.Errorf("%+v in a context without one", x)
		}
		if err := idem.Leased(kept); !errors.Is(err, idem.ErrLeaseOver) || result.OperationID == "" {
			t.Errorf("after the handler's end: %v, want ErrLeaseOver", err)
		}
	})
}

// A renewal landed, and its reply was lost: the repetition finds it in its way. That confirms the lease that it made.
func TestARenewalThatIsInTheWayOfItsRepetitionIsConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		store.On(faulty.Renew, 1, faulty.LoseReply())
		for n := 3; n <= 200; n++ {
			store.On(faulty.Renew, n, faulty.LoseRequest())
		}
		w.do(orders, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
			time.Sleep(28 * time.Second) // the lease of the reserve ended at 27 s
			if err := idem.Leased(ctx); err != nil || ctx.Err() != nil {
				t.Errorf("%v, context %v, though the store has a longer lease", err, ctx.Err())
			}
			return idem.Response{Status: 201}, nil
		})
	})
}

// Only what is confirmed counts: a holder whose renewals have no reply may have lost its lease.
func TestALeaseThatIsNotConfirmedIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		for n := 1; n <= 200; n++ {
			store.On(faulty.Renew, n, faulty.LoseReply())
		}
		w.do(orders, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
			time.Sleep(26 * time.Second)
			if err := idem.Leased(ctx); err != nil {
				t.Errorf("before the end of the first lease: %v", err)
			}
			time.Sleep(2 * time.Second)
			if err := idem.Leased(ctx); !errors.Is(err, idem.ErrLeaseOver) || ctx.Err() == nil {
				t.Errorf("after it: %v, context %v", err, ctx.Err())
			}
			return idem.Response{Status: 201}, nil
		})
	})
}

func TestRefuseBeforeExecutesOnlyWhatIsProvenYounger(t *testing.T) {
	for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				w.want(w.do(orders, request("{}"), w.effect(201, "kept")), idem.OutcomeExecuted, 201, "kept")
				time.Sleep(time.Hour)
				w.engineOf(store, idem.Config{RefuseBefore: time.Now()})
				orders = w.register(op)
				time.Sleep(time.Hour)
				w.want(w.do(orders, request("{}"), w.effect(201, "")), idem.OutcomeReplayed, 201, "kept")
				for name, at := range map[string]time.Time{
					"no time": {}, "before": time.Now().Add(-2 * time.Hour), "a client's clock may be ahead": time.Now().Add(-time.Hour + time.Minute),
				} {
					req := firstSent(keyed(name), at)
					var barred *idem.RefusedBeforeError
					var unavailable *idem.UnavailableError
					if _, err := orders.Do(t.Context(), req, w.effect(201, "")); !errors.As(err, &barred) || !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 {
						t.Errorf("%s: %v, want a RefusedBeforeError", name, err)
					}
				}
				w.want(w.do(orders, firstSent(keyed("new"), time.Now().Add(-time.Minute)), w.effect(201, "new")), idem.OutcomeExecuted, 201, "new")
				oneOff := keyed("one-off")
				oneOff.OneOff = true
				w.want(w.do(orders, oneOff, w.effect(201, "once")), idem.OutcomeExecuted, 201, "once")
				w.ran(3)
			})
		})
	}
}

// A cache in front of the store may hold the old answer: until it can't, the key answers 409. That counts from when the change is known to
// be stored, by its reply or by its own revision in the way of its resend, and costs one more write.
func TestACacheBustFreesTheKeyAfterTheCachesAge(t *testing.T) {
	for name, c := range map[string]struct {
		fault  faulty.Fault
		writes int
	}{
		"told at once":               {nil, 2},
		"told by what is in the way": {faulty.LoseReply(), 3},
	} {
		t.Run(name, func(t *testing.T) {
			busting(t, func(w *world, store *faulty.Store, orders *idem.Registered, id idem.OperationID) {
				if c.fault != nil {
					store.On(faulty.Update, 1, c.fault)
				}
				if _, err := w.engine.CacheBust(w.Context(), "t", id, "", "wrong"); err != nil {
					w.Fatal(err)
				}
				if n := store.Count(faulty.Update); n != c.writes {
					w.Errorf("%d writes, want %d", n, c.writes)
				}
				w.freeAfter(orders, time.Minute+skew)
			})
		})
	}
}

// Nobody may have heard of a cache-bust that has landed: whose sender died, whose replies were all lost, or who could not tell a second
// time. Its key is free when no cache can hold the answer, however late the bytes were. The operator is told that it may be held for so
// long, and what is known of the answer.
func TestACacheBustThatNobodyHeardOfFreesTheKeyAsLateAsItCanLand(t *testing.T) {
	const held = 10*time.Second + storage.WireMax + time.Minute + skew
	for name, c := range map[string]struct {
		faults func(store *faulty.Store, late *faulty.Late)
		busted bool
	}{
		"on its way as its process dies": {func(store *faulty.Store, late *faulty.Late) {
			store.On(faulty.Update, 1, late.Fault())
			for n := 2; n <= 500; n++ {
				store.On(faulty.Update, n, faulty.LoseRequest())
			}
		}, false},
		"heard, and not told": {func(store *faulty.Store, _ *faulty.Late) {
			for n := 2; n <= 500; n++ {
				store.On(faulty.Update, n, faulty.LoseRequest())
			}
		}, true},
		"heard, and the store is full": {func(store *faulty.Store, _ *faulty.Late) {
			for n := 2; n <= 500; n++ {
				store.On(faulty.Update, n, faulty.Refuse(storage.ErrThrottled))
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			busting(t, func(w *world, store *faulty.Store, orders *idem.Registered, id idem.OperationID) {
				began, late := time.Now(), new(faulty.Late)
				c.faults(store, late)
				busted, err := w.engine.CacheBust(w.Context(), "t", id, "", "wrong")
				var unavailable *idem.UnavailableError
				if busted != c.busted || !errors.As(err, &unavailable) {
					w.Fatalf("busted %v, %v; want busted %v, and an UnavailableError", busted, err, c.busted)
				}
				if !c.busted {
					time.Sleep(14 * time.Minute)
					if err := late.Deliver(w.Context()); err != nil {
						w.Fatal(err)
					}
				}
				store.Clear()
				w.freeAfter(orders, held-time.Since(began))
			})
		})
	}
}

// The one who repeats a cache-bust of which nobody heard has heard of it: the caches' age counts from then.
func TestACacheBustThatIsRepeatedFreesTheKeySooner(t *testing.T) {
	busting(t, func(w *world, store *faulty.Store, orders *idem.Registered, id idem.OperationID) {
		for n := range 40 {
			store.On(faulty.Update, n+1, faulty.LoseReply())
		}
		for n := range 40 { // nor is it seen
			store.On(faulty.Get, n+2, faulty.LoseRequest())
		}
		seen := w.mem.Records()[0].Revision
		_, _ = w.engine.CacheBust(w.Context(), "t", id, seen, "wrong")
		store.Clear()
		var changed *storage.RecordConflictError
		if _, err := w.engine.CacheBust(w.Context(), "t", id, seen, "wrong"); !errors.As(err, &changed) {
			w.Errorf("repeated with what was seen before it: %v", err)
		}
		r := w.mem.Records()[0]
		if r.State != storage.StateFailedRetryable || !strings.HasPrefix(r.LastError, storage.CacheBustReason) {
			w.Errorf("%s, %q", r.State, r.LastError)
		}
		for _, again := range []storage.Revision{r.Revision, ""} { // another repetition changes nothing
			if _, err := w.engine.CacheBust(w.Context(), "t", id, again, "wrong"); err != nil {
				w.Fatal(err)
			}
		}
		w.freeAfter(orders, time.Minute+skew)
	})
}

// The same where it was heard of, and its second write is not known to stand: who repeats it makes that write only. One that is told as
// done has freed its key.
func TestACacheBustThatIsToldAsDoneHoldsItsKeyForTheCachesAge(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{"throttled": faulty.Refuse(storage.ErrThrottled), "no reply": faulty.LoseRequest(), "refused": faulty.Refuse(errors.New("AccessDeniedException"))} {
		t.Run(name, func(t *testing.T) {
			busting(t, func(w *world, store *faulty.Store, orders *idem.Registered, id idem.OperationID) {
				for n := 2; n <= 500; n++ {
					store.On(faulty.Update, n, fault)
				}
				busted, err := w.engine.CacheBust(w.Context(), "t", id, "", "wrong")
				if held := w.mem.Records()[0].LeaseUntil; err == nil && held.After(time.Now().Add(time.Minute+skew)) {
					t.Errorf("busted %v, and its key is held for %v", busted, time.Until(held))
				}
				store.Clear()
				before := store.Count(faulty.Update)
				if busted, err = w.engine.CacheBust(w.Context(), "t", id, "", "wrong"); err != nil || !busted {
					t.Errorf("repeated: busted %v, %v", busted, err)
				}
				if n := store.Count(faulty.Update) - before; n != 1 {
					t.Errorf("repeated, it makes %d writes, want the second one", n)
				}
				w.freeAfter(orders, time.Minute+skew)
			})
		})
	}
}

// Whose caller gives up in between is told what is known, too.
func TestACacheBustThatIsCutOffIsToldAsMade(t *testing.T) {
	busting(t, func(w *world, store *faulty.Store, _ *idem.Registered, id idem.OperationID) {
		ctx, cancel := context.WithCancel(w.Context())
		store.On(faulty.Update, 2, func(context.Context, func(context.Context) error) error {
			cancel()
			return storage.ErrThrottled
		})
		if busted, err := w.engine.CacheBust(ctx, "t", id, "", "wrong"); !busted || err == nil {
			w.Errorf("busted %v, %v", busted, err)
		}
	})
}

// A process that was frozen before the second write may find the row gone, by its expiry: the cache-bust has been made all the same.
func TestACacheBustWhoseRowIsGoneIsMade(t *testing.T) {
	busting(t, func(w *world, store *faulty.Store, orders *idem.Registered, id idem.OperationID) {
		store.On(faulty.Update, 2, freeze(0, func() { w.mem.Expire(time.Now().Add(72 * time.Hour)) }))
		if _, err := w.engine.CacheBust(w.Context(), "t", id, "", "wrong"); err != nil {
			w.Fatal(err)
		}
		if n := len(w.mem.Records()); n != 0 {
			w.Errorf("%d records are there", n)
		}
	})
}

// A copy of the completion that made an answer may land after the answer was taken out of use: it does not bring it back.
func TestALateCompletionDoesNotUndoACacheBust(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped, SafeToRunAgain: true})
		late := new(faulty.Late)
		store.On(faulty.Update, 1, late.Fault())
		id := w.do(orders, request("{}"), w.effect(201, "made")).OperationID
		if _, err := w.engine.CacheBust(w.Context(), "t", id, "", "wrong"); err != nil {
			t.Fatal(err)
		}
		if err := late.Deliver(w.Context()); err == nil {
			t.Error("the late completion landed")
		}
		if r := w.mem.Records()[0]; r.State != storage.StateFailedRetryable {
			t.Errorf("the record is %s", r.State)
		}
		time.Sleep(uncached)
		if again := w.do(orders, request("{}"), w.effect(201, "made anew")); again.Outcome != idem.OutcomeExecuted {
			t.Errorf("%+v", again)
		}
	})
}

// A process that is frozen after it has read its clock sends nothing later than it would have: the freeze takes from the try.
func TestAFreezeAfterTheClockWasReadEndsTheTry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		var read time.Time
		const freeze = time.Second
		w.engineOf(store, idem.Config{CallTimeout: 3 * time.Second, Now: func() time.Time {
			read = time.Now()
			time.Sleep(freeze)
			return read
		}})
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		seen := 0
		store.Each(func(call faulty.Call) faulty.Fault {
			return func(ctx context.Context, run func(context.Context) error) error {
				if end, bounded := ctx.Deadline(); call == faulty.Insert || call == faulty.Commit {
					if seen++; !bounded || end.Sub(read) > 3*time.Second {
						t.Errorf("%s may be sent until %v after the clock was read, want 3 s at most", call, end.Sub(read))
					}
				}
				return run(ctx)
			}
		})
		w.do(orders, request("{}"), w.handler(201))
		if seen < 2 {
			t.Errorf("%d writes were seen", seen)
		}
	})
}

// The same of a handler: a process that is frozen after it has read its clock gives its handler no more time. A handler whose lease is
// renewed, and whose caller has no deadline, has until the end of the last lease that the store has confirmed.
func TestAFreezeAfterTheClockWasReadGivesAHandlerNoTime(t *testing.T) {
	const freeze = time.Second
	frozenWorld := func(t *testing.T, frozen *atomic.Bool) (*world, *faulty.Store) {
		w, store := newFaultyWorld(t)
		w.engineOf(store, idem.Config{Now: func() time.Time {
			read := time.Now()
			if frozen.Load() {
				time.Sleep(freeze)
			}
			return read
		}})
		return w, store
	}
	for _, op := range kinds {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var frozen atomic.Bool
				w, store := frozenWorld(t, &frozen)
				orders, began := w.register(op), time.Now()
				freezing := faulty.After(func(error) { frozen.Store(true) })
				store.On(faulty.Insert, 1, freezing)
				store.On(faulty.Get, 1, freezing)
				w.do(orders, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
					frozen.Store(false)
					if end, bounded := ctx.Deadline(); !bounded || end.Sub(began) > 21500*time.Millisecond {
						t.Errorf("the handler has until %v after its request began, want 21.5 s", end.Sub(began))
					}
					return idem.Response{Status: 409}, nil
				})
			})
		})
	}
	for renewals := range 2 {
		t.Run(fmt.Sprintf("a lease that was renewed %d times", renewals), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var frozen atomic.Bool
				w, store := frozenWorld(t, &frozen)
				orders := w.register(idem.Operation{Kind: idem.KindWrapped})
				freezing := faulty.After(func(error) { frozen.Store(true) })
				if renewals == 0 {
					store.On(faulty.Insert, 1, freezing)
				} else {
					store.On(faulty.Renew, 1, freezing)
				}
				for n := renewals + 1; n < 100; n++ {
					store.On(faulty.Renew, n, faulty.LoseRequest())
				}
				w.do(orders, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
					<-ctx.Done()
					if late := time.Since(w.only().LeaseUntil); late > 0 {
						t.Errorf("the handler's context ended %v after its lease", late)
					}
					return idem.Response{Status: 201}, nil
				})
			})
		})
	}
}

// leaving is an inline delivery that leaves each message to a worker, and is told until when it may go on.
type leaving struct {
	idem.InlineDelivery
	left func(context.Context)
}

func (leaving) Leaves(storage.Message) bool                   { return true }
func (l leaving) Left(ctx context.Context, _ storage.Message) { l.left(ctx) }

// The same of an inline delivery: it ends when nothing may be written for the request any more.
func TestAFreezeAfterTheClockWasReadGivesAnInlineDeliveryNoTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		frozen, told, began := false, false, time.Now()
		w.engineOf(store, idem.Config{Now: func() time.Time {
			read := time.Now()
			if frozen {
				time.Sleep(time.Second)
			}
			return read
		}})
		orders := w.register(idem.Operation{Kind: idem.KindDeferred, Inline: leaving{left: func(ctx context.Context) {
			told = true
			if end, bounded := ctx.Deadline(); !bounded || end.Sub(began) > 24500*time.Millisecond {
				t.Errorf("it may go on until %v after its request began, want 24.5 s", end.Sub(began))
			}
		}}})
		store.On(faulty.Commit, 1, faulty.After(func(error) { frozen = true }))
		w.want(w.do(orders, request("{}"), w.handler(202)), idem.OutcomeExecuted, 202, "1")
		if !told {
			t.Error("no delivery was told")
		}
	})
}

// busting runs f with an operation whose record is completed, and nothing else came of it.
func busting(t *testing.T, f func(*world, *faulty.Store, *idem.Registered, idem.OperationID)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		w.engineOf(store, idem.Config{CacheAge: time.Minute})
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		f(w, store, orders, w.do(orders, request("{}"), w.alone(200)).OperationID)
	})
}

// freeAfter is when a key executes again, to the millisecond, and not before.
func (w *world) freeAfter(orders *idem.Registered, held time.Duration) {
	w.Helper()
	time.Sleep(held - time.Millisecond)
	if result := w.do(orders, request("{}"), w.alone(200)); result.Outcome != idem.OutcomeInProgress {
		w.Errorf("%+v, want in progress", result)
	}
	time.Sleep(time.Millisecond)
	w.want(w.do(orders, request("{}"), w.alone(200)), idem.OutcomeExecuted, 200, "2")
}

// Margins scale down: a deadline of a second, or the default of a function's platform, leaves time to execute.
func TestAShortDeadlineStillExecutes(t *testing.T) {
	for _, left := range []time.Duration{time.Second, 3 * time.Second} {
		for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
			bubble(t, func(t *testing.T) {
				w, _ := newFaultyWorld(t)
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				result, err := w.register(op).Do(ctx, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
					time.Sleep(left / 4)
					return idem.Response{Status: 201}, ctx.Err()
				})
				if err != nil || result.Outcome != idem.OutcomeExecuted {
					t.Errorf("%s with %v: %+v, %v", op.Kind, left, result, err)
				}
			})
		}
	}
}

// Whoever starts an engine that refuses older keys is told what becomes of clients that send no time.
func TestRefuseBeforeIsSaidAtStart(t *testing.T) {
	w := newTold(t, nil)
	w.engineOf(w.store, idem.Config{Logger: slog.New(slog.NewJSONHandler(w.log, nil))})
	if w.log.Len() != 0 {
		t.Errorf("without it: %s", w.log)
	}
	w.engineOf(w.store, idem.Config{RefuseBefore: time.Now(), Logger: slog.New(slog.NewJSONHandler(w.log, nil))})
	if line := w.log.String(); !strings.Contains(line, "WARN") || !strings.Contains(line, "Idempotency-First-Sent") {
		t.Errorf("it says %q", line)
	}
}

func TestRegisterRejectsAWrappedOperationThatDeclaresNothing(t *testing.T) {
	w := newWorld(t, nil)
	for field, op := range map[string]idem.Operation{
		"Operation.Kind":              {Kind: idem.KindWrapped},
		"Operation.ReleaseOn":         {Kind: idem.KindWrapped, ReleaseOn: []int{429, 504}},
		"Operation.ReleaseOn, atomic": {Kind: idem.KindAtomic, ReleaseOn: []int{429}},
		"Operation.ReleaseOn, 2xx":    {Kind: idem.KindWrapped, ReleaseOn: []int{202}},
		"Operation.Probed":            {Kind: idem.KindOptimistic, Probed: true},
		"Operation.UnknownToOperator": {Kind: idem.KindDeferred, UnknownToOperator: true},
	} {
		op.Name, op.Policy = "orders.create", idem.IETF()
		field, _, _ = strings.Cut(field, ",")
		var broken *idem.ConfigError
		if _, err := w.engine.Register(op); !errors.As(err, &broken) || broken.Field != field {
			t.Errorf("%+v: %v, want %s rejected", op, err, field)
		}
	}
	for i, op := range []idem.Operation{{ReleaseOn: []int{429, 503}}, {Probed: true}, {SafeToRunAgain: true}, {UnknownToOperator: true}} {
		op.Name, op.Kind, op.Policy = fmt.Sprintf("orders.create_%d", i), idem.KindWrapped, idem.IETF()
		if _, err := w.engine.Register(op); err != nil {
			t.Error(err)
		}
	}
}
