package idem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// hang is a call of a store that answers nothing.
func hang(ctx context.Context, _ func(context.Context) error) error {
	<-ctx.Done()
	return &storage.OutcomeUnknownError{Cause: ctx.Err()}
}

// docs/design.md "What the system promises", 3: every request gets an answer. Where the platform ends the process at the caller's deadline,
// the answer comes before that, whatever befalls the store while the handler runs.
func TestAStoreInTroubleIsAnsweredBeforeTheDeadline(t *testing.T) {
	for name, trouble := range map[string]faulty.Fault{
		"hangs": hang, "throttles": faulty.Refuse(storage.ErrThrottled), "refuses": faulty.Refuse(errors.New("AccessDeniedException")),
	} {
		for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}, idem.Operation{Kind: idem.KindWrapped, ReleaseOn: []int{503}}) {
			for _, deadline := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, time.Minute} {
				for _, ran := range []time.Duration{100 * time.Millisecond, deadline - 100*time.Millisecond} {
					for _, status := range []int{201, 503} {
						t.Run(fmt.Sprintf("%s, %s %v, %v of %v, %d", name, op.Kind, op.ReleaseOn, ran, deadline, status), func(t *testing.T) {
							bubble(t, func(t *testing.T) {
								w, store := newFaultyWorld(t)
								w.engineOf(store, idem.Config{KillsAtDeadline: true})
								orders := w.register(op)
								ctx, cancel := context.WithTimeout(t.Context(), deadline)
								defer cancel()
								began := time.Now()
								_, _ = orders.Do(ctx, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
									time.Sleep(ran)
									store.Each(func(faulty.Call) faulty.Fault { return trouble })
									return idem.Response{Status: status}, nil
								})
								if took := time.Since(began); took >= deadline {
									t.Errorf("answered after %v", took)
								}
							})
						})
					}
				}
			}
		}
	}
}

// The same of a process that has asked the store nothing yet, such as which secret its records are named with, and of the status.
func TestAStoreThatHangsFromTheStartIsAnsweredBeforeTheDeadline(t *testing.T) {
	answered := func(t *testing.T, what string, deadline time.Duration, asked func(ctx context.Context, w *world, id idem.OperationID) error) {
		t.Run(fmt.Sprintf("%s, %v", what, deadline), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				id := w.do(w.register(kinds[0]), request("{}"), w.handler(201)).OperationID
				w.engineOf(store, idem.Config{KillsAtDeadline: true})
				store.Each(func(faulty.Call) faulty.Fault { return hang })
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				began := time.Now()
				err := asked(ctx, w, id)
				if took := time.Since(began); took >= deadline || !errors.As(err, new(*idem.UnavailableError)) {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
	for _, deadline := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second} {
		for _, op := range kinds {
			answered(t, fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), deadline, func(ctx context.Context, w *world, _ idem.OperationID) error {
				_, err := w.register(op).Do(ctx, request("{}"), w.handler(201))
				return err
			})
		}
		answered(t, "status", deadline, func(ctx context.Context, w *world, id idem.OperationID) error {
			_, err := w.engine.Status(ctx, "t", id)
			return err
		})
	}
}

// Whatever of it hangs, the store is waited for until the same instant, and once: half of the margin of the answer is left.
func TestWhateverHangsIsWaitedForUntilTheSameInstant(t *testing.T) {
	for _, c := range []struct{ deadline, until time.Duration }{
		{time.Second, 964 * time.Millisecond}, {3 * time.Second, 2893 * time.Millisecond}, {8 * time.Second, 5 * time.Second}, // by Config.CallTimeout
	} {
		for name, hangs := range map[string][]faulty.Call{
			"the mark of the secret": {faulty.ScopeMark}, "the record": {faulty.Get}, "the loss and the mark": {faulty.RefuseBefore, faulty.ScopeMark},
		} {
			if len(hangs) == 2 && c.deadline == 8*time.Second {
				continue // one after the other they are waited for by their own time-outs
			}
			t.Run(fmt.Sprintf("%s, %v", name, c.deadline), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, store := newFaultyWorld(t)
					orders := w.register(idem.Operation{Kind: idem.KindAtomic, ReadFirst: true})
					store.Each(func(made faulty.Call) faulty.Fault {
						if slices.Contains(hangs, made) {
							return hang
						}
						return faulty.Before(func() {})
					})
					ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
					defer cancel()
					began := time.Now()
					_, err := orders.Do(ctx, request("{}"), w.handler(201))
					if took := time.Since(began); took != c.until || !errors.As(err, new(*idem.UnavailableError)) {
						t.Errorf("%v after %v, want it after %v", err, took, c.until)
					}
				})
			})
		}
	}
}

// The same of a replay: neither the record nor its response is waited for beyond the deadline.
func TestAReplayThatHangsIsAnsweredBeforeTheDeadline(t *testing.T) {
	for _, call := range []faulty.Call{faulty.Get, faulty.Insert, faulty.LoadResponse} {
		for _, op := range kinds {
			t.Run(fmt.Sprintf("%s, %s read first %v", call, op.Kind, op.ReadFirst), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, store := newFaultyWorld(t)
					w.engineOf(store, idem.Config{KillsAtDeadline: true})
					orders := w.register(op)
					large := func(context.Context, *idem.Tx) (idem.Response, error) {
						return idem.Response{Status: 201, Body: make([]byte, 64<<10)}, nil
					}
					w.do(orders, request("{}"), large)
					store.Each(func(made faulty.Call) faulty.Fault {
						if made == call {
							return hang
						}
						return faulty.Before(func() {})
					})
					const deadline = 3 * time.Second
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					began := time.Now()
					result, err := orders.Do(ctx, request("{}"), large)
					if took := time.Since(began); took >= deadline {
						t.Errorf("%+v, %v after %v", result, err, took)
					}
				})
			})
		}
	}
}

// The answer of a wrapped handler is evidence: also one that ends in the very last moments is stored, where the store takes it.
func TestAWrappedAnswerIsStoredUpToTheDeadline(t *testing.T) {
	const deadline = 10 * time.Second
	for _, left := range []time.Duration{2 * time.Second, 600 * time.Millisecond, 500 * time.Millisecond, 100 * time.Millisecond, 5 * time.Millisecond, -time.Second} {
		t.Run(left.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				w.engineOf(store, idem.Config{KillsAtDeadline: true})
				orders := w.register(idem.Operation{Kind: idem.KindWrapped})
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				result, err := orders.Do(ctx, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
					time.Sleep(deadline - left)
					return idem.Response{Status: 201, Body: []byte("charged")}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				w.want(result, idem.OutcomeExecuted, 201, "charged")
			})
		})
	}
}

// Of what nobody kills the evidence is tried for the rest of its lease, whatever deadline its caller has.
func TestAWrappedAnswerOutlivesTheDeadlineOfAProcessThatLives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		result, err := orders.Do(ctx, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
			time.Sleep(9 * time.Second)
			store.All(faulty.Refuse(storage.ErrThrottled))
			time.AfterFunc(9*time.Second, store.Clear)
			return idem.Response{Status: 201, Body: []byte("charged")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.want(result, idem.OutcomeExecuted, 201, "charged")
	})
}

// payments-api.md "Prefer: wait": who waits keeps a second to answer in. A poll that hangs takes a quarter of it at most.
func TestAwaitEndsWithTheWaitThoughAPollHangs(t *testing.T) {
	for _, hangs := range []time.Duration{0, time.Second, 5 * time.Second, 8 * time.Second, 9 * time.Second} {
		for _, wait := range []time.Duration{2 * time.Second, 9 * time.Second} {
			t.Run(fmt.Sprintf("from %v on, wait of %v", hangs, wait), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, store := newFaultyWorld(t)
					id := w.do(w.register(idem.Operation{Kind: idem.KindDeferred}), request("{}"), w.handler(202)).OperationID
					ctx, cancel := context.WithTimeout(t.Context(), wait+time.Second)
					defer cancel()
					trouble := time.AfterFunc(hangs, func() { store.Each(func(faulty.Call) faulty.Fault { return hang }) })
					defer trouble.Stop()
					time.Sleep(time.Millisecond) // whatever was to hang from now on does
					began := time.Now()
					r, err := w.engine.Await(ctx, "t", id, wait)
					if took := time.Since(began); took > wait+300*time.Millisecond {
						t.Errorf("%+v, %v after %v", r, err, took)
					}
				})
			})
		}
	}
}
