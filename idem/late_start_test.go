package idem_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// workMin is less than which a handler has no time to execute anything in.
const workMin = 400 * time.Millisecond

// replyAfter brings the reply of a call late.
func replyAfter(d time.Duration) faulty.Fault {
	return faulty.After(func(error) { time.Sleep(d) })
}

// timeLeft is what a handler has until its context ends.
func timeLeft(ctx context.Context) time.Duration {
	end, bounded := ctx.Deadline()
	if !bounded || ctx.Err() != nil {
		return 0
	}
	return time.Until(end)
}

// docs/semantics.md "Leases": a handler starts only where it has time. However long the reply takes that leads to it, a handler whose
// context ends soon does not start.
func TestAHandlerThatStartsHasTime(t *testing.T) {
	const deadline = 6 * time.Second
	for _, c := range []struct {
		op    idem.Operation
		reply faulty.Call
	}{
		{idem.Operation{Kind: idem.KindAtomic}, faulty.Insert}, {idem.Operation{Kind: idem.KindWrapped}, faulty.Insert},
		{idem.Operation{Kind: idem.KindAtomic, ReadFirst: true}, faulty.Get}, {idem.Operation{Kind: idem.KindOptimistic}, faulty.Get},
	} {
		t.Run(fmt.Sprintf("%s, %s", c.op.Kind, c.reply), func(t *testing.T) {
			started, late := 0, 0
			for reply := 50 * time.Millisecond; reply < deadline; reply += 50 * time.Millisecond {
				bubble(t, func(t *testing.T) {
					w, store := newFaultyWorld(t)
					op := w.register(c.op)
					store.On(c.reply, 1, replyAfter(reply))
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					ran := false
					_, err := op.Do(ctx, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
						ran = true
						if left := timeLeft(ctx); left < workMin {
							t.Errorf("a reply after %v: the handler starts with %v left", reply, left)
						}
						return idem.Response{Status: 201}, nil
					})
					switch {
					case ran:
						started++
					case errors.Is(err, idem.ErrNoTime):
						late++
					default:
						t.Errorf("a reply after %v: the handler did not run: %v", reply, err)
					}
				})
			}
			if started == 0 || late == 0 {
				t.Errorf("%d handlers started, %d were late: the test shows one side only", started, late)
			}
		})
	}
}

// The same clause for a handler that lost an optimistic lock: it starts again only where it has time, the pause before that not counted. One that
// is cut off fails, and under a policy that stores failures its 500 would stand though nothing had happened.
func TestAHandlerThatLostItsLockStartsAgainOnlyWithTime(t *testing.T) {
	const deadline = 6 * time.Second // of which a handler has 3 s
	for _, op := range kinds {
		op.Policy = idem.Stripe()
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			started, late := 0, 0
			for ran := 2 * time.Second; ran < 3*time.Second; ran += 10 * time.Millisecond {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, nil)
					orders := w.register(op)
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					again := false
					_, err := orders.Do(ctx, request("{}"), func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
						if tx.Attempt() == 1 {
							time.Sleep(ran)
							tx.Write(memstore.Write{Key: "version", Condition: func([]byte) bool { return false }, Failure: idem.Retry()})
							return idem.Response{Status: 201}, nil
						}
						again = true
						if left := timeLeft(ctx); left < workMin {
							t.Errorf("after %v the handler starts again with %v left", ran, left)
						}
						time.Sleep(200 * time.Millisecond)
						return idem.Response{Status: 201}, ctx.Err()
					})
					if again {
						started++
						if err != nil {
							t.Errorf("after %v the handler ran again: %v", ran, err)
						}
						return
					}
					late++
					if !errors.As(err, new(*idem.UnavailableError)) {
						t.Errorf("after %v: %v, want an UnavailableError", ran, err)
					}
					w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
				})
			}
			if started == 0 || late == 0 {
				t.Errorf("%d handlers started again, %d were late: the test shows one side only", started, late)
			}
		})
	}
}

// The same clause for a process that is frozen in the pause before the handler runs again: its time may be over then.
func TestAHandlerThatIsFrozenBeforeItStartsAgainDoesNotStart(t *testing.T) {
	for _, op := range kinds {
		op.Policy = idem.Stripe()
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				w.engineOf(store, idem.Config{Pause: func(context.Context, time.Duration) error {
					time.Sleep(22 * time.Second) // of which a handler has 21.5
					return nil
				}})
				orders := w.register(op)
				_, err := orders.Do(t.Context(), request("{}"), func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
					if tx.Attempt() > 1 {
						t.Errorf("the handler starts again with %v left", timeLeft(ctx))
					}
					tx.Write(memstore.Write{Key: "version", Condition: func([]byte) bool { return false }, Failure: idem.Retry()})
					return idem.Response{Status: 201}, ctx.Err()
				})
				if !errors.Is(err, idem.ErrNoTime) {
					t.Errorf("%v, want ErrNoTime", err)
				}
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
			})
		})
	}
}

// The same clause for a process that is frozen with its lease at hand. Meanwhile others may have proven that nothing was there, and executed:
// a handler that started all the same would do it again.
func TestAHandlerThatIsFrozenBeforeItStartsDoesNotStart(t *testing.T) {
	ops := []idem.Operation{{Kind: idem.KindAtomic}, {Kind: idem.KindAtomic, ReadFirst: true}, {Kind: idem.KindWrapped}, {Kind: idem.KindWrapped, Policy: idem.Observe(idem.IETF())}}
	for _, op := range ops {
		t.Run(fmt.Sprintf("%s read first %v observed %v", op.Kind, op.ReadFirst, op.Policy.Observe), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				freezes := false
				w.engineOf(store, idem.Config{Now: func() time.Time {
					read := time.Now()
					if freezes {
						freezes = false
						time.Sleep(time.Hour)
					}
					return read
				}})
				store.On(faulty.Insert, 1, faulty.After(func(error) { freezes = true }))
				_, err := w.register(op).Do(t.Context(), request("{}"), w.effect(201, "an hour late"))
				if !errors.Is(err, idem.ErrNoTime) {
					t.Errorf("%v, want ErrNoTime", err)
				}
				w.ran(0)
				w.engineOf(store, idem.Config{})
				again := w.do(w.register(idem.Operation{Kind: op.Kind}), request("{}"), w.effect(201, "done"))
				if op.Policy.Observe { // package middleware has run it all the same
					w.want(again, idem.OutcomeUnknown, 0, "")
					return
				}
				w.want(again, idem.OutcomeExecuted, 201, "done")
			})
		})
	}
}

// The same clause where the freeze shows in one clock only: the monotonic one stands still while a virtual machine is paused, and the wall clock
// may be set back. Whichever reading of the clock the freeze comes after, the handler does not start.
func TestAHandlerDoesNotStartAfterAFreezeThatOneClockShows(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		for clock, freeze := range map[string]func(ahead *time.Duration){
			"wall": func(ahead *time.Duration) { *ahead = time.Hour },
			"monotonic": func(ahead *time.Duration) {
				*ahead = -time.Hour
				time.Sleep(time.Hour)
			},
		} {
			for n := 2; n <= 3; n++ { // the first is the machine's, which finds time enough
				t.Run(fmt.Sprintf("%s, %s, reading %d", kind, clock, n), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						w, store := newFaultyWorld(t)
						var ahead time.Duration
						readings := 0 // until the freeze; none at 0
						w.engineOf(store, idem.Config{Now: func() time.Time {
							read := time.Now().Add(ahead)
							if readings--; readings == 0 {
								freeze(&ahead)
							}
							return read
						}})
						store.On(faulty.Insert, 1, faulty.After(func(error) { readings = n }))
						orders := w.register(idem.Operation{Kind: kind})
						if _, err := orders.Do(t.Context(), request("{}"), w.effect(201, "an hour late")); !errors.Is(err, idem.ErrNoTime) {
							t.Errorf("%v, want ErrNoTime", err)
						}
						w.ran(0)
						w.want(w.do(orders, request("{}"), w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
					})
				})
			}
		}
	}
}

// docs/semantics.md "Leases": the key of a handler that was not started because its process was frozen is free, however long that took. Nobody
// else knows that nothing ran: the lease of a wrapped handler would become unknown, and where the platform kills, a lease lasts until then.
func TestTheKeyOfAHandlerThatWasFrozenBeforeItStartedIsFree(t *testing.T) {
	for _, c := range []struct {
		kind   idem.Kind
		freeze time.Duration
		kills  bool
	}{
		{idem.KindWrapped, time.Hour, false}, {idem.KindWrapped, 30 * time.Second, true},
		{idem.KindAtomic, time.Hour, false}, {idem.KindAtomic, 30 * time.Second, true},
	} {
		freezes := func() { time.Sleep(c.freeze) }
		for where, insert := range map[string]faulty.Fault{
			"and its reply arrives": replyAfter(c.freeze),
			"and its reply is lost": func(ctx context.Context, run func(context.Context) error) error {
				err := faulty.LoseReply()(ctx, run)
				freezes()
				return err
			},
			"and the clock is read": nil,
		} {
			t.Run(fmt.Sprintf("%s for %v, %s", c.kind, c.freeze, where), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, store := newFaultyWorld(t)
					readings := 0 // until the freeze; none at 0
					w.engineOf(store, idem.Config{KillsAtDeadline: c.kills, Now: func() time.Time {
						read := time.Now()
						if readings--; readings == 0 {
							freezes()
						}
						return read
					}})
					if insert == nil {
						insert = faulty.After(func(error) { readings = 1 })
					}
					store.On(faulty.Insert, 1, insert)
					ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
					if !c.kills {
						ctx, cancel = context.WithCancel(t.Context())
					}
					defer cancel()
					orders := w.register(idem.Operation{Kind: c.kind})
					var unavailable *idem.UnavailableError
					if _, err := orders.Do(ctx, request("{}"), w.effect(201, "late")); !errors.As(err, &unavailable) {
						t.Errorf("%v, want an UnavailableError", err)
					}
					w.ran(0)
					if sent := store.Count(faulty.Update); sent > 0 && c.freeze == time.Hour && c.kind == idem.KindAtomic {
						t.Errorf("%d writes give back a lease that has ended, and that the next request takes over", sent)
					}
					w.want(w.do(orders, request("{}"), w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
				})
			})
		}
	}
}

// A short time, too, has a pause before the handler runs again: what lost its lock loses it again where nobody waits.
func TestAHandlerThatLostItsLockWaitsInAShortTimeToo(t *testing.T) {
	const deadline = time.Second // of which a handler has half, and at least a quarter from its start on
	var waited time.Duration
	ranAgain := 0
	for ran := 120 * time.Millisecond; ran < 200*time.Millisecond; ran += 10 * time.Millisecond {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, nil)
			orders := w.register(idem.Operation{Kind: idem.KindAtomic, Policy: idem.Stripe()})
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			var lost time.Time
			_, _ = orders.Do(ctx, request("{}"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				if tx.Attempt() > 1 {
					waited += time.Since(lost)
					ranAgain++
					return idem.Response{Status: 201}, nil
				}
				time.Sleep(ran)
				lost = time.Now()
				tx.Write(memstore.Write{Key: "version", Condition: func([]byte) bool { return false }, Failure: idem.Retry()})
				return idem.Response{Status: 201}, nil
			})
		})
	}
	if ranAgain == 0 || waited == 0 {
		t.Errorf("%d handlers ran again, after %v in all", ranAgain, waited)
	}
}

// The same clause for a duplicate that waits for its key: what it gets too late it gives back, so that nothing of it is unknown.
func TestADuplicateThatGetsItsKeyLateGivesItBack(t *testing.T) {
	const deadline = 10 * time.Second // of which a handler has 6.5 s
	started, late := 0, 0
	for freed := 5500 * time.Millisecond; freed < 6500*time.Millisecond; freed += 10 * time.Millisecond {
		bubble(t, func(t *testing.T) {
			w, store := newFaultyWorld(t)
			w.engineOf(store, idem.Config{KillsAtDeadline: true})
			policy := idem.IETF()
			policy.InFlight, policy.WaitMax = idem.InFlightWait, 20*time.Second
			orders := w.register(idem.Operation{Kind: idem.KindWrapped, ReleaseOn: []int{503}, Policy: policy})
			var first sync.WaitGroup
			first.Go(func() {
				w.want(w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
					time.Sleep(freed)
					return idem.Response{Status: 503}, nil
				}), idem.OutcomeExecuted, 503, "")
			})
			synctest.Wait() // the first one is in its handler
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			ran := false
			result, err := orders.Do(ctx, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
				ran = true
				if left := timeLeft(ctx); left < workMin {
					t.Errorf("freed after %v: the handler starts with %v left", freed, left)
				}
				return idem.Response{Status: 503}, nil
			})
			first.Wait()
			switch {
			case ran:
				started++
			case errors.Is(err, idem.ErrNoTime):
				late++
			case err != nil || result.Outcome != idem.OutcomeInProgress: // its wait was over first
				t.Errorf("freed after %v: %+v, %v", freed, result, err)
			}
			w.want(w.do(orders, request("{}"), w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
		})
	}
	if started == 0 || late == 0 {
		t.Errorf("%d duplicates started, %d were late: the test shows one side only", started, late)
	}
}

// The same clause where the store throttles what gives the key back: it is sent again while there is time. Left in progress, the key of a
// handler that never started would be unknown once its lease was over.
func TestAKeyThatWasGotLateIsGivenBackDespiteThrottles(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		t.Run(string(kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: kind})
				store.On(faulty.Insert, 1, replyAfter(2800*time.Millisecond))
				for n := 1; n <= 7; n++ { // one more than any other write is throttled for
					store.On(faulty.Update, n, faulty.Refuse(storage.ErrThrottled))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second) // of which a handler has 3 s
				defer cancel()
				if _, err := orders.Do(ctx, request("{}"), w.effect(201, "too late")); !errors.Is(err, idem.ErrNoTime) {
					t.Fatalf("%v, want ErrNoTime", err)
				}
				w.want(w.do(orders, request("{}"), w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
			})
		})
	}
}

// Where a key could not be given back the log says so, once and with what the store said, though the last try was not sent: its time was over.
func TestAKeyThatCouldNotBeGivenBackIsTold(t *testing.T) {
	throttled := faulty.Refuse(storage.ErrThrottled)
	nothing := func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
		idem.NothingHappened(ctx)
		return idem.Response{Status: 503}, nil
	}
	fails := func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{}, errors.New("no") }
	for name, c := range map[string]struct {
		insert, update faulty.Fault
		handler        idem.Handler
		says           string // "" is nothing
	}{
		"too late to start":                      {replyAfter(2800 * time.Millisecond), throttled, nil, "throttled"},
		"a reserve without a reply":              {faulty.LoseReply(), throttled, nil, "throttled"},
		"nothing happened":                       {nil, throttled, nothing, "throttled"},
		"a handler that failed":                  {nil, throttled, fails, "throttled"},
		"nothing happened, and the key is taken": {nil, faulty.Refuse(&storage.RecordConflictError{}), nothing, ""},
		"given back at last":                     {replyAfter(2800 * time.Millisecond), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				var log strings.Builder
				w.engineOf(store, idem.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				for n := 1; n <= 500; n++ {
					if c.insert != nil {
						store.On(faulty.Insert, n, c.insert)
					}
					if c.update != nil {
						store.On(faulty.Update, n, c.update)
					} else if n <= 3 {
						store.On(faulty.Update, n, throttled)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second) // of which a handler has 3 s
				defer cancel()
				handler := c.handler
				if handler == nil {
					handler = w.effect(201, "not here")
				}
				_, _ = w.register(idem.Operation{Kind: idem.KindWrapped}).Do(ctx, request("{}"), handler)
				w.ran(0)
				told := strings.Count(log.String(), "the record keeps its lease")
				if want := min(1, len(c.says)); told != want || !strings.Contains(log.String(), c.says) {
					t.Errorf("told %d times, want %d with %q:\n%s", told, want, c.says, &log)
				}
			})
		})
	}
}

// Not so of a request that is only observed: package middleware runs its handler after this, in the time that is left.
func TestAnObservedRequestThatIsLateLeavesItsHandlerTheTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped, Policy: idem.Observe(idem.IETF())})
		store.On(faulty.Insert, 1, replyAfter(2800*time.Millisecond))
		for n := 1; n <= 500; n++ {
			store.On(faulty.Update, n, faulty.Refuse(storage.ErrThrottled))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		if _, err := orders.Do(ctx, request("{}"), w.effect(201, "not here")); !errors.Is(err, idem.ErrNoTime) {
			t.Fatalf("%v, want ErrNoTime", err)
		}
		if left := timeLeft(ctx); left < 2*time.Second {
			t.Errorf("its handler has %v left", left)
		}
		w.ran(0)
	})
}

// Of a short time the handler has half at least, however much of it the reserve took until then.
func TestAHandlerWithAShortTimeStartsAfterASlowReserve(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		bubble(t, func(t *testing.T) {
			w, store := newFaultyWorld(t)
			orders := w.register(idem.Operation{Kind: kind})
			store.On(faulty.Insert, 1, replyAfter(200*time.Millisecond))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // of which a handler has 500 ms
			defer cancel()
			result, err := orders.Do(ctx, request("{}"), w.effect(201, "done"))
			if err != nil {
				t.Fatal(err)
			}
			w.want(result, idem.OutcomeExecuted, 201, "done")
		})
	}
}

// docs/semantics.md "Observe mode": a wrapped handler that is only observed runs all the same, so that its key is recorded while anything may
// be written, however little time is left: without a record the release that enforces would execute its retry. Nothing is wrong with the
// store, and no alarm says so.
func TestAnObservedRequestWithoutTimeIsRecorded(t *testing.T) {
	for _, deadline := range []time.Duration{700 * time.Millisecond, 6 * time.Second} {
		late := 0
		for reply := 50 * time.Millisecond; reply < deadline*9/10; reply += 50 * time.Millisecond {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				var log strings.Builder
				w.engineOf(store, idem.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				observed := w.register(idem.Operation{Kind: idem.KindWrapped, ReadFirst: true, Policy: idem.Observe(idem.IETF())})
				store.On(faulty.Get, 1, replyAfter(reply))
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				if _, err := observed.Do(ctx, request("{}"), w.effect(201, "done")); err == nil {
					return
				} else if !errors.Is(err, idem.ErrNoTime) || strings.Contains(log.String(), "store.error") {
					t.Errorf("%v of %v: %v\n%s", reply, deadline, err, &log)
				}
				late++
				w.engineOf(store, idem.Config{})
				w.want(w.do(w.register(idem.Operation{Kind: idem.KindWrapped}), request("{}"), w.effect(201, "again")), idem.OutcomeUnknown, 0, "")
			})
		}
		if late == 0 {
			t.Errorf("no request with %v was late: the test shows nothing", deadline)
		}
	}
}

// What is not wrapped is answered 503 where there is no time, in observe mode too: nothing ran, and nothing is written that would keep the key.
func TestAnObservedTransactionWithoutTimeLeavesItsKey(t *testing.T) {
	const deadline = 6 * time.Second
	for _, op := range []idem.Operation{{Kind: idem.KindAtomic, ReadFirst: true}, {Kind: idem.KindOptimistic}, {Kind: idem.KindDeferred}} {
		late := 0
		for reply := 50 * time.Millisecond; reply < deadline; reply += 50 * time.Millisecond {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				observing := op
				observing.Policy = idem.Observe(idem.IETF())
				observed := w.register(observing)
				store.On(faulty.Get, 1, replyAfter(reply))
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				_, err := observed.Do(ctx, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
					if left := timeLeft(ctx); left < workMin {
						t.Errorf("%s: a reply after %v: the handler starts with %v left", op.Kind, reply, left)
					}
					return idem.Response{Status: 201}, nil
				})
				if !errors.Is(err, idem.ErrNoTime) {
					return
				}
				late++
				w.engineOf(store, idem.Config{})
				w.want(w.do(w.register(op), request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
			})
		}
		if late == 0 {
			t.Errorf("%s: no request was late: the test shows nothing", op.Kind)
		}
	}
}
