package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// whileCalled has the topic's Call run then once, before the provider has the call.
func whileCalled(topic *outbox.Topic, then *func(idem.MessageID)) {
	call := topic.Call
	topic.Call = func(ctx context.Context, m storage.Message) outbox.Outcome {
		if run := *then; run != nil {
			*then = nil
			run(m.ID)
		}
		return call(ctx, m)
	}
}

// frozen is a world whose first call is answered by what script says, once then has run.
func frozen(t *testing.T, changed func(*outbox.Topic), script string, then func(*world, idem.MessageID)) (w *world) {
	t.Helper()
	run := func(id idem.MessageID) { then(w, id) }
	w = newWorld(t, options{topic: func(topic *outbox.Topic) { changed(topic); whileCalled(topic, &run) }})
	w.provider.script = []string{script}
	return w
}

// executed is what another worker has done before the loss, while this one was frozen: its row is this one's claim again.
func executed(w *world, id idem.MessageID) {
	w.provider.charge(id)
	w.clock.Add(10 * time.Minute)
	w.loses(w.clock.Now())
}

// A worker that wakes to an answer by which nothing was executed, or to a decline, knows only of its own attempt. Data was lost meanwhile: the
// restored row is its claim, and another attempt may have followed it.
func TestACallThatWasFrozenThroughALossEndsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		tries  int
		alarms int
		now    storage.MessageState
	}{
		"refused":                         {"400", 0, 0, storage.MessageUnknown},
		"not executed, on the last try":   {"429", 2, 0, storage.MessageUnknown},
		"declined by a provider, keyless": {"402", 0, 1, storage.MessageClaimed},
	} {
		for _, unreadable := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and what was lost can't be read"}[unreadable], func(t *testing.T) {
				w := frozen(t, keyless, c.script, func(w *world, id idem.MessageID) {
					executed(w, id)
					if unreadable {
						w.unreadable()
					}
				})
				id := w.accept(func(m *storage.Message) { m.Attempts = c.tries })
				_ = w.worker.Deliver(t.Context(), id)
				w.store.Clear()
				if !unreadable {
					w.want(id, c.now, storage.StatePending, 202, "", 1)
				}
				w.clock.Add(5 * time.Minute)
				_ = w.worker.Deliver(t.Context(), id)
				if n := w.logged("outbox.evidence_weak"); n != c.alarms {
					t.Errorf("%d alarms of evidence, want %d", n, c.alarms)
				}
				w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
				w.clock.Add(time.Hour)
				w.decided(id, outbox.DecisionSettled)
				w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
			})
		}
	}
}

// A decline is settled by what the topic's Settle makes of it. A worker that was frozen in there, or in the store's call, knows no more of what
// happened meanwhile than one that was frozen in the provider's call. Nor does a webhook whose message was claimed once, when it looked.
func TestADeclineThatWasFrozenThroughALossIsKept(t *testing.T) {
	chain := func(topic *outbox.Topic) { twoPhases(true)(topic); keyless(topic) }
	for name, c := range map[string]struct {
		topic func(*outbox.Topic)
		index uint8
	}{"a message": {keyless, 1}, "the second of a chain": {chain, 2}} {
		t.Run(name, func(t *testing.T) {
			var then func()
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { c.topic(topic); whileAsked(topic, &then) }})
			id := w.accept()
			if c.index == 2 {
				w.deliver(id)
				id = w.message(id).OperationID.Message(2)
			}
			w.provider.script = []string{"402"}
			then = func() { executed(w, id) }
			w.deliver(id)
			if n := w.logged("outbox.evidence_weak"); n != 1 {
				t.Errorf("%d alarms of evidence, want 1", n)
			}
			w.want(id, storage.MessageClaimed, storage.StatePending, 202, "", 1)
		})
	}
	t.Run("in the store's call", func(t *testing.T) {
		w := newWorld(t, options{topic: keyless})
		id := w.accept()
		w.provider.script = []string{"402"}
		w.store.On(faulty.Settle, 1, func(context.Context, func(context.Context) error) error {
			executed(w, id)
			return &storage.OutcomeUnknownError{Cause: errDown}
		})
		_ = w.worker.Deliver(t.Context(), id)
		w.clock.Add(5 * time.Minute)
		_ = w.worker.Deliver(t.Context(), id)
		w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
		if log := w.log.String(); w.logged("outbox.evidence_weak") != 1 || strings.Contains(log, `"outcome":"delivered"`) {
			t.Errorf("it is told of a decline once:\n%s", log)
		}
	})
	for _, unreadable := range []bool{false, true} {
		t.Run("a webhook"+map[bool]string{true: ", and what was lost can't be read"}[unreadable], func(t *testing.T) {
			var then func()
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); whileAsked(topic, &then) }})
			id := w.accept(parked)
			then = func() {
				executed(w, id)
				if unreadable {
					w.unreadable()
				}
			}
			_, err := w.worker.Settle(t.Context(), id, outbox.Declined{Reference: "ch_no"})
			if (err != nil) != unreadable || err != nil && !errors.Is(err, errUnreadable) {
				t.Errorf("%v", err)
			}
			w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
		})
	}
}

// Within its own claim's time nobody else can have called: a decline settles, be it that what was lost can't be read.
func TestADeclineInTimeSettlesWhateverCanBeRead(t *testing.T) {
	var then func(idem.MessageID)
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); whileCalled(topic, &then) }})
	w.deliver(w.accept()) // which reads the row
	w.clock.Add(59 * time.Second)
	id := w.accept()
	then = func(idem.MessageID) {
		w.clock.Add(2 * time.Second)
		w.unreadable()
	}
	w.provider.script = []string{"402"}
	w.deliver(id)
	w.want(id, storage.MessageDeclined, storage.StateCompleted, 402, "declined", 0)
	if n := w.store.Count(faulty.RefuseBefore); n != 1 {
		t.Errorf("it is read %d times, want once", n)
	}
}

// A decline of what undoes a phase, or that the topic has no answer to, goes to a person at once. Where nobody can read what was lost they are
// not told that it is certain: a probe decides, or they do.
func TestALateDeclineThatGoesToAPersonIsDoubted(t *testing.T) {
	failing := func(topic *outbox.Topic) {
		settle := topic.Settle
		topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			if _, declined := o.(outbox.Declined); declined {
				return outbox.Settlement{}, errors.New("no answer")
			}
			return settle(m, o)
		}
	}
	for name, c := range map[string]struct {
		topic  func(*outbox.Topic)
		undoes bool
	}{"an undoing": {keyless, true}, "no answer": {func(topic *outbox.Topic) { keyless(topic); failing(topic) }, false}} {
		for _, unreadable := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", unreadable"}[unreadable], func(t *testing.T) {
				w := frozen(t, c.topic, "402", func(w *world, id idem.MessageID) {
					executed(w, id)
					if unreadable {
						w.unreadable()
					}
				})
				id := w.accept(func(m *storage.Message) { m.Undoes = c.undoes })
				_ = w.worker.Deliver(t.Context(), id)
				if letters := w.queue.Letters(); len(letters) != 0 || w.logged("outbox.settle_failed") != 0 {
					t.Errorf("dead letters %+v, of what nobody knows", letters)
				}
				w.store.Clear()
				w.clock.Add(5 * time.Minute)
				w.deliver(id)
				w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
				if n := w.logged("outbox.evidence_weak"); n != 1 {
					t.Errorf("%d alarms of evidence, want 1", n)
				}
				w.clock.Add(time.Hour)
				w.decided(id, outbox.DecisionSettled)
				if m := w.message(id); m.State != storage.MessageDelivered {
					t.Errorf("it is %s, want delivered", m.State)
				}
			})
		}
	}
}

// One that comes late settles, too, where nothing was lost: while nobody can read that, it is kept.
func TestALateDeclineIsSettledByOneThatCanRead(t *testing.T) {
	keyed := frozen(t, func(*outbox.Topic) {}, "402", func(w *world, _ idem.MessageID) {
		w.clock.Add(10 * time.Minute)
		w.unreadable()
	})
	known := keyed.accept() // its key says which attempt it is about
	keyed.deliver(known)
	keyed.want(known, storage.MessageDeclined, storage.StateCompleted, 402, "declined", 0)
	w := frozen(t, func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }, "402", func(w *world, _ idem.MessageID) {
		w.clock.Add(10 * time.Minute)
		w.unreadable()
	})
	id := w.accept()
	w.deliver(id)
	w.want(id, storage.MessageEvidenced, storage.StatePending, 202, "", 0)
	w.store.Clear()
	w.clock.Add(time.Minute)
	w.deliver(id)
	w.want(id, storage.MessageDeclined, storage.StateCompleted, 402, "declined", 0)
	if n := w.logged("outbox.evidence_weak"); n != 0 {
		t.Errorf("%d alarms of evidence, want none", n)
	}
}

// What could not be read once holds nothing back that is judged by a later reading.
func TestWhatWasReadAtLastHoldsNothingBack(t *testing.T) {
	w := frozen(t, func(topic *outbox.Topic) { topic.Probe = nil }, "429", func(w *world, id idem.MessageID) {
		w.clock.Add(10 * time.Minute)
		w.store.On(faulty.RefuseBefore, 1, faulty.Refuse(errUnreadable))
		m := w.message(id) // another one has taken it over, and asks nobody any more
		over := m
		over.Epoch, over.Owner, over.Attempts, over.Revision = m.Epoch+1, "another", 3, "another"
		over.LeaseUntil = w.clock.Now()
		w.ok(w.inner.UpdateMessage(w.Context(), over, storage.FenceOfMessage(m)))
	})
	id := w.accept()
	w.ok(w.worker.Deliver(t.Context(), id))
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0)
}

// What undoes a phase is never said to have done nothing, where another has executed it before the loss: a person would do it again.
func TestAnUndoingThatWasFrozenThroughALossDiesWithItsCallOpen(t *testing.T) {
	for _, unreadable := range []bool{false, true} {
		w := frozen(t, func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }, "400", func(w *world, id idem.MessageID) {
			executed(w, id)
			if unreadable {
				w.unreadable()
			}
		})
		id := w.accept(func(m *storage.Message) { m.Undoes = true })
		_ = w.worker.Deliver(t.Context(), id)
		if unreadable {
			if letters := w.queue.Letters(); len(letters) != 0 {
				t.Errorf("dead letters %+v, of what nobody knows", letters)
			}
			w.store.Clear()
			w.clock.Add(5 * time.Minute)
			w.deliver(id)
		}
		if m := w.message(id); !m.OpenSince.Equal(m.CreatedAt) {
			t.Errorf("open since %v, want since it was created", m.OpenSince)
		}
		if unreadable { // found by the next one, who leaves it to an operator
			w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
			continue
		}
		w.want(id, storage.MessageDead, storage.StatePending, 202, "", 1)
		if letters := w.queue.Letters(); len(letters) != 1 || !letters[0].Open {
			t.Errorf("dead letters %+v", letters)
		}
	}
}

// Where nothing was lost the same answers end the message as ever, and once what was lost can be read.
func TestACallThatWasFrozenEndsItsMessageWhereNothingWasLost(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		tries  int
		status int
		is     storage.MessageState
		record storage.State
		ending string
	}{
		"refused":      {"400", 0, 502, storage.MessageDead, storage.StateFailed, "not_executed"},
		"not executed": {"429", 2, 502, storage.MessageDead, storage.StateFailed, "not_executed"},
	} {
		for _, unreadable := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", unreadable"}[unreadable], func(t *testing.T) {
				w := frozen(t, keyless, c.script, func(w *world, _ idem.MessageID) {
					w.clock.Add(10 * time.Minute)
					if unreadable {
						w.unreadable()
					}
				})
				id := w.accept(func(m *storage.Message) { m.Attempts = c.tries })
				if err := w.worker.Deliver(t.Context(), id); (err != nil) != unreadable || err != nil && !errors.Is(err, errUnreadable) {
					t.Errorf("%v", err)
				}
				if unreadable {
					w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
					w.store.Clear()
					w.clock.Add(time.Minute)
					w.deliver(id)
				}
				w.want(id, c.is, c.record, c.status, c.ending, 0)
			})
		}
	}
}

// whileAsked has the topic's Settle run then once.
func whileAsked(topic *outbox.Topic, then *func()) {
	settle := topic.Settle
	topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
		if run := *then; run != nil {
			*then = nil
			run()
		}
		return settle(m, o)
	}
}

// An operator whose evidence the topic is asked about is frozen meanwhile: the message was started anew, executed, and lost. Where nobody knows
// whether it was, they say it again.
func TestAPersonsEvidenceThatWasFrozenThroughALossIsNotTaken(t *testing.T) {
	chain := func(topic *outbox.Topic) { twoPhases(false)(topic); keyless(topic) }
	for name, evidence := range map[string]outbox.Outcome{"declined": outbox.Declined{Reference: "ch_no"}, "delivered": charged} {
		for _, unreadable := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and what was lost can't be read"}[unreadable], func(t *testing.T) {
				var then func()
				w := newWorld(t, options{topic: func(topic *outbox.Topic) { chain(topic); whileAsked(topic, &then) }})
				id := w.accept(parked)
				seen := w.seen(id)
				then = func() {
					executed(w, id)
					if unreadable {
						w.unreadable()
					}
				}
				decision, err := w.operator.Settle(t.Context(), id, seen, evidence)
				if unreadable && !errors.Is(err, errUnreadable) {
					t.Errorf("%s, %v, want that it can't be read", decision, err)
				} else if !unreadable {
					refusedWith(t, err, "since you looked at it")
				}
				if m := w.message(id); m.Revision != seen.Revision {
					t.Errorf("it was written: %+v", m)
				}
			})
		}
	}
}

// A worker is frozen while the topic is asked what it means that nothing was executed: the message was started anew, executed, and lost.
func TestAnEndAsNotExecutedThatWasFrozenThroughALossIsNone(t *testing.T) {
	for _, unreadable := range []bool{false, true} {
		t.Run(map[bool]string{false: "lost", true: "unreadable"}[unreadable], func(t *testing.T) {
			var then func()
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); whileAsked(topic, &then) }})
			w.provider.script = []string{"400"}
			id := w.accept()
			then = func() {
				executed(w, id)
				if unreadable {
					w.unreadable()
				}
			}
			_ = w.worker.Deliver(t.Context(), id)
			w.store.Clear()
			want := map[bool]storage.MessageState{false: storage.MessageUnknown, true: storage.MessagePending}[unreadable]
			w.want(id, want, storage.StatePending, 202, "", 1)
			w.clock.Add(5 * time.Minute)
			_ = w.worker.Deliver(t.Context(), id)
			w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
		})
	}
}

// An operator who closes what was never executed is frozen while the topic is asked what that means: it was redriven, called, and lost.
func TestACloseThatWasFrozenThroughALossClosesNothing(t *testing.T) {
	for name, c := range map[string]struct{ lost, unreadable bool }{"lost": {lost: true}, "unreadable": {unreadable: true}, "neither": {}} {
		t.Run(name, func(t *testing.T) {
			var then func()
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); whileAsked(topic, &then) }})
			id := w.accept(parked)
			w.clock.Add(time.Hour)
			then = func() {
				w.clock.Add(10 * time.Minute)
				if c.lost {
					w.provider.charge(id)
					w.loses(w.clock.Now())
				}
				if c.unreadable {
					w.unreadable()
				}
			}
			err := w.operator.Close(t.Context(), id, w.seen(id))
			switch {
			case c.lost:
				refusedWith(t, err, "since you looked at it")
				w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
			case c.unreadable:
				if !errors.Is(err, errUnreadable) {
					t.Errorf("%v, want that it can't be read", err)
				}
				w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
			default:
				w.ok(err)
				w.want(id, storage.MessageCancelled, storage.StateFailed, 502, "not_executed", 0)
			}
		})
	}
}

// A settlement that meets a message that has died meanwhile asks again before the chain goes on: its reply may have been late by as much as it
// takes to start the message anew, to call what follows, and to lose both.
func TestASettlementThatMeetsADeadMessageReadsAgainWhatWasLost(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { twoPhases(false)(topic); keyless(topic) }})
	first := w.accept()
	second := w.message(first).OperationID.Message(2)
	w.store.On(faulty.Settle, 1, func(ctx context.Context, run func(context.Context) error) error {
		m := w.message(first)
		dead := m
		dead.State, dead.Unfailed, dead.Revision = storage.MessageDead, true, "another"
		w.ok(w.inner.UpdateMessage(ctx, dead, storage.FenceOfMessage(m)))
		err := run(ctx) // which meets it
		w.provider.charge(second)
		w.clock.Add(10 * time.Minute)
		w.loses(w.clock.Now())
		return err
	})
	w.deliver(first)
	w.want(first, storage.MessageDelivered, storage.StatePending, 202, "delivered", 1)
	w.deliver(second)
	w.want(second, storage.MessageUnknown, storage.StatePending, 202, "", 1)
}

// While what was lost can't be read, nobody goes on with a chain: neither with what undoes a phase, nor by a reconciler, nor by a sweep.
func TestNobodyGoesOnWhileWhatWasLostCanNotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		makes func(*storage.Message)
		tries func(*world, idem.MessageID)
		is    storage.MessageState
	}{
		"a reconciler": {parked, func(w *world, id idem.MessageID) {
			w.provider.charge(id)
			w.clock.Add(time.Hour)
			_, _ = w.runner.ReconcileMessage(w.Context(), id)
		}, storage.MessageEvidenced},
		"a sweep": {func(m *storage.Message) {
			m.State, m.KeptDelivered = storage.MessageEvidenced, &storage.Kept{Reference: "ch_1"}
		}, func(w *world, _ idem.MessageID) {
			w.clock.Add(time.Hour)
			_, _ = w.runner.Sweep(w.Context())
		}, storage.MessageEvidenced},
	} {
		t.Run(name, func(t *testing.T) {
			var then func()
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { twoPhases(false)(topic); whileAsked(topic, &then) }})
			id := w.accept(c.makes)
			then = func() { w.clock.Add(2 * time.Minute); w.unreadable() }
			c.tries(w, id)
			w.store.Clear()
			next := w.message(id).OperationID.Message(2)
			if m := w.message(id); m.State != c.is {
				t.Errorf("it is %s, want %s", m.State, c.is)
			}
			if n := len(w.inner.Messages()); n != 1 {
				t.Errorf("%d messages, want 1", n)
			}
			w.drain(time.Minute)
			w.deliver(next)
			w.want(next, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
		})
	}
}

// The same of what undoes a phase after the next one was refused.
func TestNothingIsUndoneWhileWhatWasLostCanNotBeRead(t *testing.T) {
	var then func()
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { twoPhases(true)(topic); topic.Probe = nil; whileAsked(topic, &then) }})
	first := w.accept()
	w.deliver(first)
	operation := w.message(first).OperationID
	w.provider.script = []string{"400"}
	then = func() { w.clock.Add(2 * time.Minute); w.unreadable() }
	if err := w.worker.Deliver(t.Context(), operation.Message(2)); !errors.Is(err, errUnreadable) {
		t.Errorf("%v, want that it can't be read", err)
	}
	if n := len(w.inner.Messages()); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
	w.store.Clear()
	w.deliver(operation.Message(2))
	firstIsUndone(t, w, operation)
}
