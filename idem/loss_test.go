package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// loses sets the row, as an operator does.
func (w *world) loses(at time.Time) {
	w.Helper()
	if kept, err := w.mem.SetRefuseBefore(w.Context(), at); err != nil || !kept.Equal(at) {
		w.Fatalf("set %v: kept %v, %v", at, kept, err)
	}
}

// barred demands that the request is refused because of what may have been lost before that instant.
func (w *world) barred(op *idem.Registered, req idem.Request, before time.Time) {
	w.Helper()
	var barred *idem.RefusedBeforeError
	var unavailable *idem.UnavailableError
	result, err := op.Do(w.Context(), req, w.effect(201, ""))
	if !errors.As(err, &barred) || !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 || !barred.Before.Equal(before) {
		w.Errorf("key %s: %+v, %v; want it refused before %v", req.Key, result, err, before)
	}
}

// One instance that was forgotten would execute a key twice whose record was lost: the row stops them all.
func TestTheRowStopsEveryEngineWithinAMinuteWithoutARestart(t *testing.T) {
	for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				var engines []*idem.Registered
				for n := range 2 {
					w.engineOf(store, idem.Config{})
					engines = append(engines, w.register(op))
					w.want(w.do(engines[n], keyed(fmt.Sprint("kept", n)), w.effect(201, "kept")), idem.OutcomeExecuted, 201, "kept")
				}
				time.Sleep(time.Hour)
				for n, orders := range engines { // both have just looked
					w.want(w.do(orders, keyed(fmt.Sprint("before", n)), w.effect(201, "")), idem.OutcomeExecuted, 201, "")
				}
				lost := time.Now()
				w.loses(lost)
				time.Sleep(time.Minute)
				for n, orders := range engines {
					w.barred(orders, keyed("no time"), lost)
					w.barred(orders, firstSent(keyed("older"), lost.Add(-time.Second)), lost)
					w.barred(orders, firstSent(keyed("a client's clock may be ahead"), lost.Add(time.Minute)), lost)
					w.want(w.do(orders, keyed(fmt.Sprint("kept", n)), w.effect(201, "")), idem.OutcomeReplayed, 201, "kept")
				}
				time.Sleep(time.Hour)
				for n, orders := range engines {
					w.want(w.do(orders, firstSent(keyed(fmt.Sprint("younger", n)), time.Now()), w.effect(201, "new")), idem.OutcomeExecuted, 201, "new")
				}
				w.ran(6)
			})
		})
	}
}

// What a restored table says of a key may be older than what became of it: a key that was free then, or whose holder was dead, may
// have been executed since.
func TestWhatWasFreeBeforeALossIsNotTakenOver(t *testing.T) {
	released := func(w *world, _ *faulty.Store, op *idem.Registered) {
		result, err := op.Do(w.Context(), request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
			idem.NothingHappened(ctx)
			return idem.Response{Status: 503}, nil
		})
		if err != nil || result.State != storage.StateFailedRetryable {
			w.Fatalf("%+v, %v; want the key free", result, err)
		}
	}
	abandoned := func(w *world, store *faulty.Store, op *idem.Registered) {
		store.Each(func(call faulty.Call) faulty.Fault {
			if call == faulty.Insert || call == faulty.Get {
				return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
			}
			return faulty.LoseRequest()
		})
		if _, err := op.Do(w.Context(), request("{}"), w.effect(201, "")); err == nil {
			w.Fatal("the commit arrived")
		}
		store.Clear()
		w.runs = 0
	}
	for name, c := range map[string]struct {
		op   idem.Operation
		left func(*world, *faulty.Store, *idem.Registered)
	}{
		"atomic, its key free":    {idem.Operation{Kind: idem.KindAtomic}, released},
		"wrapped, its key free":   {idem.Operation{Kind: idem.KindWrapped}, released},
		"atomic, its holder dead": {idem.Operation{Kind: idem.KindAtomic}, abandoned},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				op := w.register(c.op)
				c.left(w, store, op)
				time.Sleep(time.Hour)
				lost := time.Now()
				w.loses(lost)
				time.Sleep(time.Minute)
				w.barred(op, request("{}"), lost)
				w.ran(0)
				time.Sleep(time.Hour)
				w.want(w.do(op, firstSent(request("{}"), lost.Add(time.Minute+idem.FirstSentSkew)), w.effect(201, "new")), idem.OutcomeExecuted, 201, "new")
			})
		})
	}
}

func TestTheLaterOfConfigAndRowCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		early, late := time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		w.loses(early)
		w.engineOf(store, idem.Config{RefuseBefore: late})
		w.barred(w.register(idem.Operation{Kind: idem.KindAtomic}), keyed("by config"), late)
		w.loses(late)
		w.engineOf(store, idem.Config{RefuseBefore: early})
		w.barred(w.register(idem.Operation{Kind: idem.KindAtomic}), keyed("by row"), late)
	})
}

// Nobody knows what was lost while the row can't be read, the first time or again: nothing executes. What is final needs no
// row.
func TestNothingExecutesWhileTheRowCanNotBeRead(t *testing.T) {
	for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				unreadable := func() {
					w.Helper()
					store.On(faulty.RefuseBefore, 1, faulty.Refuse(errors.New("connection refused")))
				}
				unreadable()
				w.unavailable(orders, w.effect(201, "kept"))
				w.ran(0)
				w.want(w.do(orders, request("{}"), w.effect(201, "kept")), idem.OutcomeExecuted, 201, "kept")
				time.Sleep(time.Minute)
				unreadable()
				w.want(w.do(orders, request("{}"), w.effect(201, "")), idem.OutcomeReplayed, 201, "kept")
				unreadable()
				var barred *idem.RefusedBeforeError
				var unavailable *idem.UnavailableError
				_, err := orders.Do(t.Context(), firstSent(keyed("younger"), time.Now()), w.effect(201, ""))
				if !errors.As(err, &unavailable) || errors.As(err, &barred) || unavailable.RetryAfter <= 0 {
					t.Errorf("%v, want an UnavailableError of the store", err)
				}
				w.ran(1)
				w.want(w.do(orders, keyed("again"), w.effect(201, "again")), idem.OutcomeExecuted, 201, "again")
			})
		})
	}
}

// What does no harm when it runs twice is not refused, so that a provider's webhooks tell what became of what was lost.
func TestWhatIsSafeToRunAgainExecutesAfterALoss(t *testing.T) {
	for _, op := range []idem.Operation{{Kind: idem.KindOptimistic}, {Kind: idem.KindWrapped}} {
		bubble(t, func(t *testing.T) {
			w, _ := newFaultyWorld(t)
			w.loses(time.Now())
			op.SafeToRunAgain = true
			orders := w.register(op)
			w.want(w.do(orders, request("{}"), w.effect(201, "taken")), idem.OutcomeExecuted, 201, "taken")
			w.want(w.do(orders, request("{}"), w.effect(201, "")), idem.OutcomeReplayed, 201, "taken")
		})
	}
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindDeferred} {
		var broken *idem.ConfigError
		op := idem.Operation{Name: "orders.create", Kind: kind, Policy: idem.IETF(), SafeToRunAgain: true}
		if _, err := newWorld(t, nil).engine.Register(op); !errors.As(err, &broken) || broken.Field != "Operation.SafeToRunAgain" {
			t.Errorf("%s: %v, want it rejected", kind, err)
		}
	}
}

// It costs one read a minute, however many requests come, and however many come at once.
func TestTheRowIsReadOnceAMinute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		reads := func(want int) {
			t.Helper()
			if n := store.Count(faulty.RefuseBefore); n != want {
				t.Errorf("%d reads, want %d", n, want)
			}
		}
		crowd := func(name string) {
			gate := faulty.NewGate()
			store.On(faulty.RefuseBefore, 1, gate.Before())
			var group sync.WaitGroup
			for n := range 20 {
				group.Go(func() { w.do(orders, keyed(fmt.Sprint(name, n)), w.handler(201)) })
			}
			synctest.Wait()
			gate.Release()
			group.Wait()
		}
		crowd("first")
		reads(1)
		time.Sleep(time.Minute - time.Millisecond)
		for n := range 20 {
			w.do(orders, keyed(fmt.Sprint("later", n)), w.handler(201))
		}
		reads(1)
		time.Sleep(time.Millisecond)
		crowd("a minute later")
		reads(2)
		if _, err := orders.Lookup(t.Context(), keyed("nothing")); err != nil {
			t.Error(err)
		}
		reads(2)
		w.ran(60)
	})
}

// A caller that gives up while it reads for all takes nobody else with it.
func TestACallerThatGivesUpFailsNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		gate := faulty.NewGate()
		store.On(faulty.RefuseBefore, 1, gate.Before())
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			if result, err := orders.Do(ctx, keyed("gives up"), w.handler(201)); err == nil {
				t.Errorf("it was answered: %+v", result)
			}
		})
		<-gate.Reached()
		for n := range 5 {
			group.Go(func() { w.do(orders, keyed(fmt.Sprint("waits", n)), w.handler(201)) })
		}
		synctest.Wait()
		cancel()
		group.Wait()
		w.ran(5)
	})
}

// A row that answers nothing holds up nobody for long: the 503 is soon, and final answers come all the same.
func TestARowThatHangsIsNotWaitedForLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		w.do(orders, keyed("kept"), w.handler(201))
		time.Sleep(time.Minute)
		for range 2 {
			store.On(faulty.RefuseBefore, 1, faulty.NewGate().Before())
			began := time.Now()
			w.want(w.do(orders, keyed("kept"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		}
	})
}

// Whoever operates an engine is told once that it refuses older keys, and from where.
func TestTheRowIsSaidOnceUnlessItMoves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		logged := func(want int, says string) {
			t.Helper()
			if n := strings.Count(w.log.String(), says); n != want {
				t.Errorf("%q is said %d times, want %d: %s", says, n, want, w.log)
			}
		}
		do := func(orders *idem.Registered) {
			for n := range 3 {
				_, _ = w.do(orders, keyed(fmt.Sprint(n)), w.handler(201))
				time.Sleep(time.Minute)
			}
		}
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		const refusing = "Idempotency-First-Sent"
		do(orders)
		logged(0, refusing)
		w.loses(time.Now())
		do(orders)
		logged(1, refusing)
		logged(1, `"source":"the table"`)
		w.loses(time.Now())
		do(orders)
		logged(2, refusing)
	})
}

// A restored table may say in progress of what others took for dead since, and executed: a holder that was frozen meanwhile must not act
// on by what that row says. It goes on where nothing was lost, and once what was lost can be read.
func TestAFrozenHolderDoesNotActUnderARowFromBeforeALoss(t *testing.T) {
	lost := func(w *world, now time.Time, _ *faulty.Store) { w.loses(now) }
	unread := func(_ *world, _ time.Time, store *faulty.Store) {
		store.On(faulty.RefuseBefore, 1, faulty.Refuse(errors.New("connection refused")))
	}
	nothing := func(*world, time.Time, *faulty.Store) {}
	for name, c := range map[string]struct {
		observed bool
		meets    func(*world, time.Time, *faulty.Store)
		// after one renewal and after the next
		soon, later error
	}{
		"nothing was lost":                 {false, nothing, nil, nil},
		"it was lost":                      {false, lost, idem.ErrLeaseOver, idem.ErrLeaseOver},
		"it was lost, and is observed":     {true, lost, nil, nil},
		"what was lost can't be read once": {false, unread, idem.ErrLeaseOver, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				var ahead atomic.Int64
				now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
				w.engineOf(store, idem.Config{Now: now})
				policy := idem.IETF()
				if c.observed {
					policy = idem.Observe(policy)
				}
				op := w.register(idem.Operation{Kind: idem.KindWrapped, Policy: policy})
				_, _ = op.Do(t.Context(), request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
					leased := func(when string, want error) {
						t.Helper()
						if err := idem.Leased(ctx); !errors.Is(err, want) {
							t.Errorf("%s: %v, want %v", when, err, want)
						}
					}
					leased("at first", nil)
					ahead.Store(int64(5 * time.Minute)) // the wall clock alone: its timers stood still
					c.meets(w, now(), store)
					leased("when it wakes up", idem.ErrLeaseOver)
					for _, want := range []error{c.soon, c.later} {
						renewed := store.Count(faulty.Renew)
						for range 20 { // a renewal is due every third of a lease
							if time.Sleep(time.Second); store.Count(faulty.Renew) > renewed {
								break
							}
						}
						synctest.Wait()
						leased("renewed", want)
					}
					if c.later != nil {
						select {
						case <-ctx.Done():
						case <-time.After(time.Minute):
							t.Error("the handler's context goes on")
						}
					}
					return idem.Response{Status: 201}, nil
				})
			})
		})
	}
}
