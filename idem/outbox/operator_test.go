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

// seen is the message as an operator sees it.
func (w *world) seen(id idem.MessageID) outbox.Seen {
	w.Helper()
	lost, err := w.inner.RefuseBefore(w.Context())
	w.ok(err)
	return outbox.Seen{Revision: w.message(id).Revision, Lost: w.topics.Lost(lost)}
}

// refusedWith demands a refusal that gives the reason.
func refusedWith(t *testing.T, err error, reason string) {
	t.Helper()
	var refusal *outbox.RefusalError
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, reason) {
		t.Errorf("%v, want a refusal because of %q", err, reason)
	}
}

func stale(t *testing.T, err error) {
	t.Helper()
	var conflict *storage.MessageConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("%v, want what is there instead", err)
	}
}

// unsure demands that nothing is said about whether a change was made.
func unsure(t *testing.T, err error) {
	t.Helper()
	var conflict *storage.MessageConflictError
	var unheard *storage.OutcomeUnknownError
	if errors.As(err, &conflict) || !errors.As(err, &unheard) {
		t.Errorf("%v, want that it may have happened", err)
	}
}

// dead is a message that was given up with its call open.
func dead(m *storage.Message) {
	parked(m)
	m.State, m.Attempts = storage.MessageDead, 3
}

var charged = outbox.Delivered{Reference: "ch_1", Evidence: []byte(`{"id":"ch_1"}`)}

func TestOperatorSettlesWithEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*storage.Message)
		evidence outbox.Outcome
		state    storage.MessageState
		status   int
		row      string
	}{
		"unknown, delivered": {parked, charged, storage.MessageDelivered, 201, "delivered"},
		"unknown, declined":  {parked, outbox.Declined{Reference: "ch_no"}, storage.MessageDeclined, 402, "declined"},
		"dead, delivered":    {dead, charged, storage.MessageDelivered, 201, "delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept(c.change)
			fence := w.seen(id)
			if got, err := w.operator.Settle(t.Context(), id, fence, c.evidence); err != nil || got != outbox.DecisionSettled {
				t.Fatalf("%s, %v", got, err)
			}
			w.want(id, c.state, storage.StateCompleted, c.status, c.row, 0)
			_, err := w.operator.Settle(t.Context(), id, fence, c.evidence)
			stale(t, err)
		})
	}
}

// What an operator decides is about what they saw: anything else by now is refused, and nothing changes.
func TestOperatorIsFencedByWhatWasSeen(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(dead)
	before, fence := w.message(id), w.seen(id)
	w.rewrite(id, func(*storage.Message) {}) // it is the same, and somebody has written it
	_, err := w.operator.Settle(t.Context(), id, fence, charged)
	stale(t, err)
	stale(t, w.operator.Close(t.Context(), id, fence))
	_, err = w.operator.Redrive(t.Context(), id, fence)
	stale(t, err)
	if after := w.message(id); after.State != before.State || after.Epoch != before.Epoch {
		t.Errorf("%+v became %+v", before, after)
	}
	_, err = w.operator.Redrive(t.Context(), "op_nobody.1", w.seen(id))
	stale(t, err)
}

// Between the operator's look and their write a probe settles: the write meets the fence, not the other way round.
func TestOperatorLosesToWhoeverWasFaster(t *testing.T) {
	for name, decide := range map[string]func(*world, idem.MessageID, outbox.Seen) error{
		"settle": func(w *world, id idem.MessageID, seen outbox.Seen) error {
			_, err := w.operator.Settle(w.Context(), id, seen, outbox.Declined{})
			return err
		},
		"close": func(w *world, id idem.MessageID, seen outbox.Seen) error {
			return w.operator.Close(w.Context(), id, seen)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept(parked)
			w.provider.charge(id)
			w.clock.Add(lease + absentAfter)
			fence := w.seen(id)
			w.store.On(faulty.Settle, 1, faulty.Before(func() {
				got, err := w.worker.Settle(t.Context(), id, outbox.Delivered{})
				if err != nil || got != outbox.DecisionSettled {
					t.Errorf("%s, %v", got, err)
				}
			}))
			stale(t, decide(w, id, fence))
			w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
		})
	}
}

// Two operators look at one dead message. One starts it anew while the other closes it: the close meets the fence, and what is called
// is not answered with "nothing was executed".
func TestClosingLosesToARedrive(t *testing.T) {
	w := newWorld(t, options{topic: unsettlingOnce()})
	w.provider.script = []string{"429", "429", "429"}
	id := w.accept()
	w.deliver(id)
	w.drain(time.Hour)
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0)
	seen := w.seen(id)
	w.store.On(faulty.Settle, w.store.Count(faulty.Settle)+1, faulty.Before(func() { // the close's
		if got, err := w.operator.Redrive(t.Context(), id, seen); err != nil || got != storage.MessagePending {
			t.Errorf("redriven it is %s, %v", got, err)
		}
	}))
	stale(t, w.operator.Close(t.Context(), id, seen))
	w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
	w.drain(time.Second)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// A settlement lands, its reply is lost, and so is everything that is sent again, until the evidence is to be kept instead: what is in the
// way of that is the operator's own settlement, and no other's.
func TestOperatorWhoseSettlementIsFoundLateHasSettled(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	seen := w.seen(id)
	w.store.Each(func(call faulty.Call) faulty.Fault {
		switch {
		case call == faulty.RefuseBefore && w.store.Count(faulty.PatchMessage) > 0: // of what has ended nobody has to know what was lost
			return faulty.Refuse(errUnreadable)
		case call == faulty.PatchMessage: // what was read of losses is old by then
			w.clock.Add(2 * time.Minute)
			return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
		case call != faulty.Settle:
			return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
		case w.store.Count(faulty.Settle) == 1:
			return faulty.LoseReply()
		}
		return faulty.LoseRequest()
	})
	if got, err := w.operator.Settle(t.Context(), id, seen, charged); err != nil || got != outbox.DecisionSettled {
		t.Errorf("%s, %v", got, err)
	}
	if w.store.Count(faulty.Settle) < 2 || w.store.Count(faulty.PatchMessage) == 0 {
		t.Error("nothing was kept in the place of a settlement: the test proves nothing")
	}
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
	_, err := w.operator.Settle(t.Context(), id, seen, charged)
	stale(t, err)
}

// A redrive lands without a reply, and a worker takes the message up before it is sent again: nobody may tell the operator that nothing was
// changed, because the worker calls by their word.
func TestOperatorWhoseRedriveIsTakenUpBeforeItsReply(t *testing.T) {
	w := newWorld(t, options{})
	w.provider.script = []string{"429"}
	id := w.accept(func(m *storage.Message) { m.State, m.Attempts = storage.MessageDead, 3 })
	seen := w.seen(id)
	w.store.On(faulty.Settle, 1, faulty.LoseReply())
	w.store.On(faulty.Settle, 2, faulty.Before(func() {
		w.deliver(id)
		w.clock.Add(10 * time.Minute) // the store forgets the transaction's token
	}))
	_, err := w.operator.Redrive(t.Context(), id, seen)
	unsure(t, err)
	_, err = w.operator.Redrive(t.Context(), id, seen)
	stale(t, err)
	w.drain(time.Hour)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// The evidence that an operator has is kept without a reply, and a webhook settles the message before it is sent again: what was kept is
// theirs, and nobody may tell them that nothing was changed.
func TestOperatorWhoseEvidenceIsKeptAndSettledBeforeItsReply(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	seen, posted := w.seen(id), false
	w.store.Each(func(call faulty.Call) faulty.Fault {
		switch {
		case call == faulty.Settle && !posted:
			return faulty.Refuse(storage.ErrContention)
		case call == faulty.PatchMessage && w.store.Count(faulty.PatchMessage) == 1:
			return faulty.LoseReply()
		case call == faulty.PatchMessage && !posted:
			return faulty.Before(func() {
				posted = true
				if got, err := w.worker.Settle(t.Context(), id, charged); err != nil || got != outbox.DecisionSettled {
					t.Errorf("%s, %v", got, err)
				}
			})
		}
		return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
	})
	_, err := w.operator.Settle(t.Context(), id, seen, charged)
	unsure(t, err)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
}

func TestOperatorSettleRefuses(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	_, err := w.operator.Settle(t.Context(), id, w.seen(id), charged)
	refusedWith(t, err, "pending")
	_, err = w.operator.Settle(t.Context(), id, w.seen(id), outbox.Ambiguous{})
	refusedWith(t, err, "no evidence")
	w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
}

// Closed: nothing happened and nobody shall execute it. It waits as long as proof of absence does (docs/design.md
// "Messages"), and gives no final answer without its business writes.
func TestOperatorCloses(t *testing.T) {
	for name, change := range map[string]func(*storage.Message){"unknown": parked, "dead": dead} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept(change)
			w.clock.Add(lease + absentAfter - time.Millisecond)
			refusedWith(t, w.operator.Close(t.Context(), id, w.seen(id)), "under way until 2026-11-21T12:02:12Z")
			w.clock.Add(time.Millisecond)
			w.ok(w.operator.Close(t.Context(), id, w.seen(id)))
			w.want(id, storage.MessageCancelled, storage.StateFailed, 502, "not_executed", 0)
			if code := w.record(id).LastError; code != "operation_closed" {
				t.Errorf("record failed with %q", code)
			}
			refusedWith(t, w.operator.Close(t.Context(), id, w.seen(id)), "cancelled")
		})
	}
	t.Run("never claimed", func(t *testing.T) {
		w := newWorld(t, options{})
		id := w.accept()
		w.ok(w.operator.Close(t.Context(), id, w.seen(id)))
		w.want(id, storage.MessageCancelled, storage.StateFailed, 502, "not_executed", 0)
		w.deliver(id)
		w.want(id, storage.MessageCancelled, storage.StateFailed, 502, "not_executed", 0)
		if got := w.logged("outbox.closed"); got != 1 {
			t.Errorf("outbox.closed is logged %d times", got)
		}
	})
	t.Run("claimed", func(t *testing.T) {
		w := newWorld(t, options{})
		id := w.accept(claimed(time.Hour))
		refusedWith(t, w.operator.Close(t.Context(), id, w.seen(id)), "claimed")
	})
}

// A message whose record has failed already only leaves the operator's queue: what giving it up means was written then.
func TestOperatorClosesWhatHasFailed(t *testing.T) {
	w := newWorld(t, options{})
	w.provider.script = []string{"400"}
	id := w.accept()
	w.deliver(id)
	w.want(id, storage.MessageDead, storage.StateFailed, 502, "not_executed", 0)
	w.inner.PutRow("payment "+string(id), []byte("mended by hand"))
	w.clock.Add(time.Hour)
	_, err := w.operator.Redrive(t.Context(), id, w.seen(id))
	refusedWith(t, err, "final answer")
	w.ok(w.operator.Close(t.Context(), id, w.seen(id)))
	w.want(id, storage.MessageCancelled, storage.StateFailed, 502, "mended by hand", 0)
}

// Evidence is never discarded: what could not be settled is redriven, which settles it once the reason is gone.
func TestOperatorRedrivesKeptEvidence(t *testing.T) {
	for name, o := range map[string]outbox.Outcome{"delivered": charged, "declined": outbox.Declined{Reference: "ch_no"}} {
		t.Run(name, func(t *testing.T) {
			broken := true
			w := newWorld(t, options{topic: func(topic *outbox.Topic) {
				topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
					if broken {
						return outbox.Settlement{}, errors.New("a bug")
					}
					return settle(m, o)
				}
			}})
			id := w.accept(parked)
			if got, err := w.worker.Settle(t.Context(), id, o); err != nil || got != outbox.DecisionDead {
				t.Fatalf("%s, %v", got, err)
			}
			w.clock.Add(time.Hour)
			refusedWith(t, w.operator.Close(t.Context(), id, w.seen(id)), "evidence")
			if got, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil || got != storage.MessageDead {
				t.Errorf("still broken: %s, %v", got, err)
			}
			broken = false
			if got, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil || string(got) != o.Name() {
				t.Fatalf("%s, %v", got, err)
			}
			if r := w.record(id); r.State != storage.StateCompleted || w.provider.called() != 0 {
				t.Errorf("record %s, %d calls", r.State, w.provider.called())
			}
		})
	}
}

// What is open is asked about when it is redriven, and not sent.
func TestRedrivenByAnOperatorIsAskedAbout(t *testing.T) {
	for name, happened := range map[string]bool{"charged then": true, "never charged": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: keyless})
			id := w.accept(dead)
			if happened {
				w.provider.charge(id)
			}
			w.clock.Add(3 * 24 * time.Hour)
			if got, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil || got != storage.MessageUnknown {
				t.Fatalf("%s, %v", got, err)
			}
			w.deliver(id)
			if w.provider.called() != 0 {
				t.Fatal("what is open was sent again")
			}
			_, err := w.reconcile(t.Context())
			w.ok(err)
			w.drain(time.Second)
			w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
		})
	}
}

// The epoch grows with a redrive: what a worker has to say from before the death is fenced off, whatever state it meets.
func TestRedriveFencesOffWhatWasUnderWay(t *testing.T) {
	w := newWorld(t, options{topic: unsettlingOnce()})
	w.provider.script = []string{"429", "429", "429"}
	id := w.accept()
	w.deliver(id)
	w.drain(time.Hour)
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0) // failing it could not be written
	died, before := w.message(id), w.seen(id)
	if got, err := w.operator.Redrive(t.Context(), id, before); err != nil || got != storage.MessagePending {
		t.Fatalf("%s, %v", got, err)
	}
	if m := w.message(id); m.Epoch != died.Epoch+1 || m.Attempts != 0 || m.RedrivenAt.IsZero() {
		t.Errorf("%+v", m)
	}
	_, err := w.operator.Redrive(t.Context(), id, before)
	stale(t, err)
	w.drain(time.Second)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

func unsettlingOnce() func(*outbox.Topic) {
	failed := false
	return func(topic *outbox.Topic) {
		topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			if !failed {
				failed = true
				return outbox.Settlement{}, errors.New("a bug")
			}
			return settle(m, o)
		}
	}
}

// A message beside a complete operation is sent anew, unless the application wrote down that it never will be.
func TestOperatorRedrivesADetachedMessage(t *testing.T) {
	quiet := func(topic *outbox.Topic) {
		topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			if _, ok := o.(outbox.NotExecuted); ok {
				return outbox.Settlement{}, nil
			}
			return settle(m, o)
		}
	}
	for name, c := range map[string]struct {
		topic func(*outbox.Topic)
		want  storage.MessageState
	}{"nothing was written": {quiet, storage.MessageDelivered}, "it was written": {nil, storage.MessageDead}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: c.topic})
			w.provider.script = []string{"429", "429", "429"}
			id := w.accept(func(m *storage.Message) { m.Detached = true })
			w.deliver(id)
			w.drain(48 * time.Hour)
			if m := w.message(id); m.State != storage.MessageDead {
				t.Fatalf("message is %s", m.State)
			}
			got, err := w.operator.Redrive(t.Context(), id, w.seen(id))
			if c.want == storage.MessageDead {
				refusedWith(t, err, "given up")
			} else if err != nil || got != storage.MessagePending {
				t.Fatalf("%s, %v", got, err)
			}
			w.drain(time.Second)
			if m := w.message(id); m.State != c.want {
				t.Errorf("message is %s (%s), want %s", m.State, m.LastOutcome, c.want)
			}
		})
	}
}

// Whatever call to the store gets no reply, a change is made once or not at all, and says which.
func TestOperatorAndLostReplies(t *testing.T) {
	for _, call := range []faulty.Call{faulty.Message, faulty.Get, faulty.Settle, faulty.UpdateMessage} {
		for name, lost := range map[string]faulty.Fault{"reply": faulty.LoseReply(), "request": faulty.LoseRequest()} {
			w := newWorld(t, options{})
			closed, redriven := w.accept(dead), w.accept(dead)
			w.clock.Add(time.Hour)
			w.store.On(call, 1, lost)
			if err := w.operator.Close(t.Context(), closed, w.seen(closed)); err != nil {
				w.ok(w.operator.Close(t.Context(), closed, w.seen(closed)))
			}
			w.want(closed, storage.MessageCancelled, storage.StateFailed, 502, "not_executed", 0)
			w.store.On(call, 1, lost)
			if _, err := w.operator.Redrive(t.Context(), redriven, w.seen(redriven)); err != nil {
				_, err := w.operator.Redrive(t.Context(), redriven, w.seen(redriven))
				w.ok(err)
			}
			if m := w.message(redriven); m.State != storage.MessageUnknown || m.Epoch != 2 {
				t.Errorf("%s of %s lost: %s, epoch %d", name, call, m.State, m.Epoch)
			}
		}
	}
}

func TestNewOperatorNeedsItsParts(t *testing.T) {
	w := newWorld(t, options{})
	for _, err := range []error{
		second(outbox.NewOperator(nil, w.topics, w.queue, w.queue)),
		second(outbox.NewOperator(w.store, w.topics, w.queue, nil)),
	} {
		var config *idem.ConfigError
		if !errors.As(err, &config) {
			t.Errorf("%v, want a ConfigError", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A webhook's evidence settles from any state that is not final, and is no news after that.
func TestSettleFromElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*storage.Message)
		want   outbox.Decision
		state  storage.MessageState
		alarms string
	}{
		"never claimed":     {func(*storage.Message) {}, outbox.DecisionSettled, storage.MessageDelivered, ""},
		"claimed, alive":    {claimed(time.Hour), outbox.DecisionSettled, storage.MessageDelivered, ""},
		"claimed, dead":     {claimed(time.Second), outbox.DecisionSettled, storage.MessageDelivered, ""},
		"unknown":           {parked, outbox.DecisionSettled, storage.MessageDelivered, ""},
		"dead":              {dead, outbox.DecisionSettled, storage.MessageDelivered, ""},
		"delivered already": {func(m *storage.Message) { m.State, m.Reference = storage.MessageDelivered, "ch_1" }, outbox.DecisionNone, storage.MessageDelivered, ""},
		"declined already":  {func(m *storage.Message) { m.State = storage.MessageDeclined }, outbox.DecisionNone, storage.MessageDeclined, "outbox.evidence_differs"},
		"cancelled":         {func(m *storage.Message) { m.State = storage.MessageCancelled }, outbox.DecisionNone, storage.MessageCancelled, "outbox.evidence_late"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept(c.change)
			if got, err := w.worker.Settle(t.Context(), id, charged); err != nil || got != c.want {
				t.Errorf("%s, %v, want %s", got, err, c.want)
			}
			if m := w.message(id); m.State != c.state {
				t.Errorf("message is %s, want %s", m.State, c.state)
			}
			for _, alarm := range []string{"outbox.evidence_differs", "outbox.evidence_late"} {
				want := 0
				if alarm == c.alarms {
					want = 1
				}
				if got := w.logged(alarm); got != want {
					t.Errorf("%d of %s, want %d", got, alarm, want)
				}
			}
		})
	}
	w := newWorld(t, options{})
	if got, err := w.worker.Settle(t.Context(), "op_nobody.1", charged); err != nil || got != outbox.DecisionOrphan {
		t.Errorf("unknown id: %s, %v", got, err)
	}
}

// What is known to have happened settles whatever is not final, in one write, also where a worker claims the message meanwhile.
func TestDeliveredSettlesOverAClaimInOneWrite(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	w.store.On(faulty.Settle, 1, faulty.Before(func() {
		w.provider.script = []string{"500 before"}
		w.deliver(id) // backs off under another revision
	}))
	if got, err := w.worker.Settle(t.Context(), id, charged); err != nil || got != outbox.DecisionSettled {
		t.Errorf("%s, %v, want it settled", got, err)
	}
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
	if n := w.store.Count(faulty.Settle); n != 1 {
		t.Errorf("%d settlements were sent, want 1", n)
	}
}

// Evidence is what the provider has, or has declined. A refusal, a time-out and a nil prove nothing of an earlier call.
func TestWhatIsNoEvidenceSettlesNothing(t *testing.T) {
	for _, no := range []outbox.Outcome{outbox.NotExecuted{}, outbox.Ambiguous{}, outbox.Refused{}, outbox.Refused{Unproven: true}, nil} {
		w := newWorld(t, options{})
		id := w.accept()
		if decision, err := w.worker.Settle(t.Context(), id, no); err == nil || decision != outbox.DecisionNone {
			t.Errorf("a webhook's %T: %s, %v", no, decision, err)
		}
		if m := w.message(id); m.State != storage.MessagePending {
			t.Errorf("after a webhook's %T the message is %s", no, m.State)
		}
		w = newWorld(t, options{topic: keyless})
		id = w.accept()
		w.provider.script = []string{"lost"}
		w.deliver(id)
		seen := w.message(id)
		var refused *outbox.RefusalError
		if decision, err := w.operator.Settle(t.Context(), id, outbox.Seen{Revision: seen.Revision}, no); !errors.As(err, &refused) || decision != outbox.DecisionNone {
			t.Errorf("a person's %T: %s, %v", no, decision, err)
		}
		if m := w.message(id); m.Revision != seen.Revision {
			t.Errorf("after a person's %T the message is %s", no, m.State)
		}
	}
}
