package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// loses sets the row, as an operator does.
func (w *world) loses(at time.Time) {
	w.Helper()
	_, err := w.inner.SetRefuseBefore(w.Context(), at)
	w.ok(err)
}

// The row that an operator sets stops workers and sweeps that run already, without a restart.
func TestTheRowIsHeededWithinAMinuteByWhoRunsAlready(t *testing.T) {
	for name, look := range map[string]func(*world, idem.MessageID){
		"worker": (*world).deliver,
		"sweep":  func(w *world, _ idem.MessageID) { w.swept(outbox.Counts{Parked: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: keyless})
			before := w.accept()
			w.deliver(before)
			w.want(before, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
			w.swept(outbox.Counts{}) // everybody has looked
			id := w.accept()
			w.provider.charge(id) // what the restored row does not tell
			w.clock.Add(time.Minute)
			w.loses(w.clock.Now())
			look(w, id)
			w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
			if n := w.logged("outbox.refuse_before"); n != 1 {
				t.Errorf("it is said %d times, want once", n)
			}
		})
	}
}

// An operation whose first message nobody claimed is cancelled as never executed: not where a claim may have been lost.
func TestARestoredMessageIsNotAbandoned(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.AbandonAfter = time.Hour }})
		id := w.accept()
		w.clock.Add(2 * time.Hour)
		if !lost {
			w.swept(outbox.Counts{Abandoned: 1})
			continue
		}
		w.loses(w.clock.Now())
		w.swept(outbox.Counts{Parked: 1})
		w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
	}
}

// What died before the loss may have been redriven and called since: it is asked about, not called again.
func TestARestoredMessageIsProbedWhenItIsRedriven(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(func(m *storage.Message) { m.State, m.Unfailed = storage.MessageDead, true })
	w.provider.charge(id)
	w.clock.Add(time.Hour)
	w.loses(w.clock.Now())
	state, err := w.operator.Redrive(t.Context(), id, w.seen(id))
	if err != nil || state != storage.MessageUnknown {
		t.Errorf("redriven: %s, %v; want unknown", state, err)
	}
}

// A request that goes on with what another one left, inline, calls nothing that may have been called before a loss.
func TestInlineDeliveryOfARestoredMessageCallsNothing(t *testing.T) {
	c := newChain(t, keyless)
	c.lostAt.Store(4) // the commit
	if _, err := c.request(c.operation(true), "k"); err == nil {
		t.Fatal("a killed request answered")
	}
	c.clock.Add(time.Hour)
	messages := c.inner.Messages()
	if len(messages) != 1 {
		t.Fatalf("%d messages, want 1", len(messages))
	}
	restored := messages[0].ID // as it was before its claim
	c.rewrite(restored, func(m *storage.Message) {
		m.State, m.Owner, m.Epoch, m.LeaseUntil, m.OpenSince, m.FirstClaimedAt = storage.MessagePending, "", 0, time.Time{}, time.Time{}, time.Time{}
	})
	c.provider.charge(restored)
	c.loses(c.clock.Now())
	c.payout(c.operation(false), idem.OutcomeReplayed, 202)
	if m := c.message(restored); m.State != storage.MessageUnknown {
		t.Errorf("the message is %s, want unknown", m.State)
	}
	if n := c.provider.charges[restored]; n != 1 {
		t.Errorf("%d charges, want 1", n)
	}
}

// While the row can't be read nothing is called. Evidence is taken all the same: it settles whatever was lost.
func TestNothingIsCalledWhileTheRowCanNotBeRead(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept()
	unreadable := func() {
		for n := range 5 {
			w.store.On(faulty.RefuseBefore, n+1, faulty.Refuse(errors.New("connection refused")))
		}
	}
	unreadable()
	if err := w.worker.Deliver(t.Context(), id); err == nil {
		t.Error("the worker had no trouble")
	}
	w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
	w.tidings(id, charged)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
	w.store.Clear()
	other := w.accept()
	w.deliver(other)
	w.want(other, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}
