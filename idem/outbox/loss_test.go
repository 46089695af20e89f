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

// A process that is frozen between its reading of the row and its reading of the message heeds what was set meanwhile: another one may have
// called the message before the loss, of which the restored row does not tell.
func TestTheRowIsHeededAfterAFreezeBeforeTheMessageIsRead(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	w.deliver(w.accept()) // which reads the row
	id := w.accept()
	w.store.On(faulty.Message, 1, faulty.Before(func() {
		w.provider.charge(id)
		w.clock.Add(10 * time.Minute)
		w.loses(w.clock.Now())
	}))
	w.deliver(id)
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
}

// The same of a reconciler that is frozen while it asks: that nothing was there before the loss proves nothing of what was called until then.
func TestAbsenceBeforeTheLossProvesNothing(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked)
	w.provider.probing = func() {
		w.provider.probing = nil
		w.provider.charge(id)
		w.clock.Add(10 * time.Minute)
		w.loses(w.clock.Now())
	}
	w.clock.Add(time.Hour)
	w.decided(id, outbox.DecisionEarly)
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
	w.clock.Add(time.Hour)
	w.decided(id, outbox.DecisionSettled)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// And of one that is frozen once it has its answer: absence was proven when it asked, not when it writes so.
func TestAbsenceIsDatedByItsQuestion(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked)
	w.clock.Add(time.Hour)
	asked := w.clock.Now()
	w.provider.probing = func() { w.clock.Add(20 * time.Second) }
	w.decided(id, outbox.DecisionOffered)
	if m := w.message(id); !m.ClearedAt.Equal(asked) {
		t.Errorf("absence is proven at %v, want %v, when it was asked for", m.ClearedAt, asked)
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
	w.unreadable()
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

// A restored row knows of no lease: a call of the lost side may be under way as long as one that was claimed on the last instant
// before the loss. Until then a provider that has nothing proves nothing, and nothing is closed.
func TestAbsenceOfARestoredMessageIsNoProofWhileALostCallMayBeUnderWay(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	late, gone := w.accept(), w.accept()
	w.clock.Add(time.Second)
	w.loses(w.clock.Now())
	proof := w.clock.Now().Add(lease + absentAfter)
	for _, id := range []idem.MessageID{late, gone} {
		w.deliver(id)
		w.decided(id, outbox.DecisionEarly)
	}
	w.provider.charge(late) // the call that was lost arrives
	w.clock.Add(proof.Sub(w.clock.Now()) - time.Millisecond)
	w.decided(gone, outbox.DecisionEarly)
	refusedWith(t, w.operator.Close(t.Context(), gone, w.seen(gone)), "under way until "+proof.Format(time.RFC3339))
	w.clock.Add(time.Millisecond)
	w.decided(gone, outbox.DecisionOffered)
	w.decided(late, outbox.DecisionSettled)
	w.want(late, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// The alarm and the dead letter say that a call may have happened, and the row says so when RefuseBefore is gone.
func TestARestoredMessageDiesWithItsCallOpen(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { topic.Probe = nil }})
	id := w.accept(func(m *storage.Message) { m.Attempts = 3 })
	w.clock.Add(time.Second)
	w.loses(w.clock.Now())
	w.deliver(id)
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0)
	if m := w.message(id); !m.OpenSince.Equal(m.CreatedAt) {
		t.Errorf("open since %v, want since it was created", m.OpenSince)
	}
	if letters := w.queue.Letters(); len(letters) != 1 || !letters[0].Open || !strings.Contains(w.log.String(), `"open":true`) {
		t.Errorf("dead letters %+v, log %s", letters, w.log)
	}
}

// A webhook's decline may be about an attempt that a lost one followed. It waits for the row, and is kept for a person; where
// the provider honours keys it settles.
func TestADeclineOfARestoredMessageIsKeptForAPerson(t *testing.T) {
	declined := outbox.Declined{Reference: "ch_no"}
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked)
	w.clock.Add(time.Second)
	w.loses(w.clock.Now())
	for n := range 5 {
		w.store.On(faulty.RefuseBefore, n+1, faulty.Refuse(errors.New("connection refused")))
	}
	if _, err := w.worker.Settle(t.Context(), id, declined); err == nil {
		t.Error("a decline was taken while the row can't be read")
	}
	w.store.Clear()
	w.tidings(id, declined)
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
	if _, kept := w.kept(id); !kept || w.logged("outbox.evidence_weak") != 1 {
		t.Errorf("kept %v, %d alarms", kept, w.logged("outbox.evidence_weak"))
	}
	w = newWorld(t, options{})
	id = w.accept(parked)
	w.clock.Add(time.Second)
	w.loses(w.clock.Now())
	w.tidings(id, declined)
	w.want(id, storage.MessageDeclined, storage.StateCompleted, 402, "declined", 0)
}

// A person has looked at all attempts: their decline settles. Where the store does not take it, it is not left to a sweep, which would doubt
// it: they are told so, and say it again. So they do where nobody knows what was lost since they looked.
func TestAPersonsDeclineOfARestoredMessageSettlesOrIsSaidAgain(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked)
	w.clock.Add(time.Hour)
	w.loses(w.clock.Now())
	declined := outbox.Declined{Reference: "ch_no"}
	for n := range 1000 {
		w.store.On(faulty.Settle, n+1, faulty.Refuse(storage.ErrThrottled))
	}
	if decision, err := w.operator.Settle(t.Context(), id, w.seen(id), declined); !errors.Is(err, storage.ErrThrottled) {
		t.Errorf("%s, %v, want that it is throttled", decision, err)
	}
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
	w.store.Clear()
	w.clock.Add(2 * time.Minute)
	w.unreadable()
	if decision, err := w.operator.Settle(t.Context(), id, w.seen(id), declined); !errors.Is(err, errUnreadable) {
		t.Errorf("%s, %v, want that it can't be read", decision, err)
	}
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
	w.store.Clear()
	if decision, err := w.operator.Settle(t.Context(), id, w.seen(id), declined); err != nil || decision != outbox.DecisionSettled {
		t.Errorf("%s, %v", decision, err)
	}
	w.want(id, storage.MessageDeclined, storage.StateCompleted, 402, "declined", 0)
}

// Of one whose reply was lost they hear that it may have landed, whatever its other tries met.
func TestAPersonsDeclineWhoseReplyWasLostMayHaveLanded(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked)
	w.store.On(faulty.Settle, 1, faulty.LoseReply())
	for n := range 1000 {
		w.store.On(faulty.Settle, n+2, faulty.Refuse(storage.ErrThrottled))
	}
	_, err := w.operator.Settle(t.Context(), id, w.seen(id), outbox.Declined{Reference: "ch_no"})
	if unknown := new(storage.OutcomeUnknownError); !errors.As(err, &unknown) || errors.Is(err, storage.ErrThrottled) {
		t.Errorf("%v, want that nobody knows", err)
	}
	w.want(id, storage.MessageDeclined, storage.StateCompleted, 402, "declined", 0)
}

// A person may decide while a worker puts what is doubted before them: then nothing is doubted any more.
func TestADoubtThatSomebodyHasEndedIsNotTold(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(func(m *storage.Message) {
		m.State, m.KeptDeclined = storage.MessageEvidenced, &storage.Kept{Reference: "ch_no"}
	})
	w.clock.Add(time.Hour)
	w.loses(w.clock.Now())
	w.store.On(faulty.UpdateMessage, 1, faulty.Before(func() { w.ok(w.judged(id)) }))
	w.deliver(id)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
	if n := w.logged("outbox.evidence_weak"); n != 0 {
		t.Errorf("%d alarms of evidence, want none", n)
	}
}

// A decline that a restored message keeps is settled by nobody but a person who has looked at the books.
func TestAKeptDeclineOfARestoredMessageIsNotRedriven(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(func(m *storage.Message) {
		m.State, m.KeptDeclined = storage.MessageEvidenced, &storage.Kept{Reference: "ch_no"}
	})
	w.clock.Add(time.Hour)
	w.loses(w.clock.Now())
	_, err := w.operator.Redrive(t.Context(), id, w.seen(id))
	refusedWith(t, err, "resolve it")
	w.deliver(id)
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
	w.ok(w.judged(id))
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
}

// The next message of a restored chain has the id that it had before the loss, and may have been called under it: a provider that
// honours no keys would do it twice, and one that does once it has forgotten the key.
func TestWhatFollowsARestoredMessageCountsAsCalled(t *testing.T) {
	for name, late := range map[string]func(*outbox.Topic){
		"keyless":           keyless,
		"a key's retention": func(topic *outbox.Topic) { topic.Keys.Retention = time.Hour },
	} {
		for by, evidence := range settlers {
			t.Run(name+", "+by, func(t *testing.T) {
				w := newWorld(t, options{topic: func(topic *outbox.Topic) { twoPhases(false)(topic); late(topic) }})
				first := w.accept(evidence.about)
				second := w.message(first).OperationID.Message(2)
				w.provider.charge(first) // both, before the loss
				w.provider.charge(second)
				w.clock.Add(2 * time.Hour) // the provider has forgotten their keys
				w.loses(w.clock.Now())
				w.ok(evidence.settle(w, first))
				w.deliver(second)
				w.want(second, storage.MessageUnknown, storage.StatePending, 202, "", 1)
				w.clock.Add(time.Hour)
				w.decided(second, outbox.DecisionSettled)
				w.want(second, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
			})
		}
	}
}

// The same of a worker that is frozen in its call: another one has settled it, and called what follows, before the loss. Where the row can't be
// read its evidence is kept, and the chain goes on once that can be.
func TestWhatFollowsACallThatWasFrozenThroughALossCountsAsCalled(t *testing.T) {
	for name, c := range map[string]struct{ lost, unreadable bool }{
		"the row is read":                            {lost: true},
		"the row can't be read":                      {lost: true, unreadable: true},
		"the row can't be read, and nothing is lost": {unreadable: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { twoPhases(false)(topic); keyless(topic) }})
			first := w.accept()
			second, answered := w.message(first).OperationID.Message(2), time.Time{}
			w.provider.during = func() {
				w.provider.during = nil
				w.clock.Add(10 * time.Minute)
				if c.lost {
					w.provider.charge(second)
					w.loses(w.clock.Now())
				}
				if c.unreadable {
					w.unreadable()
				}
				answered = w.clock.Now()
			}
			w.clock.Add(23*time.Hour + 45*time.Minute) // what follows is young all the same
			w.deliver(first)
			w.store.Clear()
			if took := w.clock.Now().Sub(answered); took > time.Second {
				t.Errorf("its answer is settled, or kept, after %v", took)
			}
			if c.unreadable {
				w.want(first, storage.MessageEvidenced, storage.StatePending, 202, "", 1)
				w.drain(time.Minute)
			}
			w.want(first, storage.MessageDelivered, storage.StatePending, 202, "delivered", 1)
			w.deliver(second)
			if !c.lost {
				w.want(second, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
				return
			}
			w.want(second, storage.MessageUnknown, storage.StatePending, 202, "", 1)
		})
	}
}

// An operator who starts a message anew that keeps its answer comes again where nobody can know what was lost: nothing is told for nothing.
func TestARedriveWaitsUntilWhatWasLostCanBeRead(t *testing.T) {
	var asked func()
	w := newWorld(t, options{topic: func(topic *outbox.Topic) {
		twoPhases(false)(topic)
		settle := topic.Settle
		topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			if asked != nil {
				asked()
			}
			return settle(m, o)
		}
	}})
	id := w.accept(func(m *storage.Message) {
		m.State, m.KeptDelivered = storage.MessageDead, &storage.Kept{Reference: "ch_1"}
	})
	asked = func() {
		asked = nil
		w.clock.Add(61 * time.Second)
		w.unreadable()
	}
	if _, err := w.operator.Redrive(t.Context(), id, w.seen(id)); !errors.Is(err, errUnreadable) {
		t.Errorf("%v, want that it can't be read", err)
	}
	if n := w.logged("outbox.dead"); n != 0 {
		t.Errorf("it is told %d times that the message is dead", n)
	}
	w.store.Clear()
	if state, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil || state != storage.MessageDelivered {
		t.Errorf("%s, %v, want delivered", state, err)
	}
}

// That reading takes a quarter of the time that a delivery has left: its answer may have to be kept in the rest.
func TestReadingWhatWasLostLeavesTimeToKeepAnAnswer(t *testing.T) {
	const within = 10 * time.Second
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { twoPhases(false)(topic); keyless(topic) }})
	w.deliver(w.accept()) // which reads the row
	w.clock.Add(59 * time.Second)
	id := w.accept()
	var given time.Duration
	w.provider.during = func() {
		w.provider.during = nil
		w.clock.Add(2 * time.Second)
		w.store.On(faulty.RefuseBefore, 1, func(ctx context.Context, run func(context.Context) error) error {
			if end, bounded := ctx.Deadline(); bounded {
				given = time.Until(end)
			}
			return run(ctx)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	w.ok(w.worker.Deliver(ctx, id))
	if given <= 0 || given > within/4 {
		t.Errorf("it is given %v, want a quarter of %v at most", given, within)
	}
	w.want(id, storage.MessageDelivered, storage.StatePending, 202, "delivered", 1)
}

// A claim whose reply was lost goes on to its call: it was judged before it was written. What was lost is not asked for again in between,
// of a store that is in trouble: the claim would die uncalled, and of a provider without keys nobody could say so.
func TestAnUnheardClaimIsCalledWhileTheRowCanNotBeRead(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }})
	w.deliver(w.accept()) // which reads the row
	w.clock.Add(59 * time.Second)
	id := w.accept()
	w.store.On(faulty.UpdateMessage, 1, func(ctx context.Context, run func(context.Context) error) error {
		err := faulty.LoseReply()(ctx, run)
		w.clock.Add(2 * time.Second)
		w.unreadable()
		return err
	})
	w.deliver(id)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// settlers bring evidence by which a chain may go on. A person settles only what is in doubt.
var settlers = map[string]struct {
	about  func(*storage.Message)
	settle func(*world, idem.MessageID) error
}{
	"by a webhook":             {parked, (*world).posted},
	"by a webhook, not called": {func(*storage.Message) {}, (*world).posted},
	"by a person":              {parked, (*world).judged},
}

func (w *world) posted(id idem.MessageID) error {
	_, err := w.worker.Settle(w.Context(), id, charged)
	return err
}

func (w *world) judged(id idem.MessageID) error {
	_, err := w.operator.Settle(w.Context(), id, w.seen(id), charged)
	return err
}

// While the row can't be read nobody knows that: evidence by which a chain goes on is not taken, and its sender sends it again.
func TestAChainDoesNotGoOnWhileTheRowCanNotBeRead(t *testing.T) {
	for by, evidence := range settlers {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t, options{topic: twoPhases(false)})
			first := w.accept(evidence.about)
			found := w.message(first).State
			w.unreadable()
			if err := evidence.settle(w, first); !errors.Is(err, errUnreadable) {
				t.Errorf("it was taken, or refused for another reason: %v", err)
			}
			w.want(first, found, storage.StatePending, 202, "", 0)
			w.store.Clear()
			w.ok(evidence.settle(w, first))
			if m := w.message(w.message(first).OperationID.Message(2)); m.State != storage.MessagePending {
				t.Errorf("the next message is %s", m.State)
			}
		})
	}
}

var errUnreadable = errors.New("connection refused")

// unreadable has the next readings of the row fail.
func (w *world) unreadable() {
	for n := range 5 {
		w.store.On(faulty.RefuseBefore, n+1, faulty.Refuse(errUnreadable))
	}
}

// A person looks, and decides. Then the message is started anew, called and lost, and is restored as it was when they looked: their decision
// is about what they do not know. Who looks again may decide.
func TestADecisionFromBeforeALossIsNotCarriedOut(t *testing.T) {
	as := func(*storage.Message) {}
	for name, c := range map[string]struct {
		decide func(*world, idem.MessageID, outbox.Seen) error
		change func(*storage.Message)
		now    storage.MessageState
	}{
		"close": {func(w *world, id idem.MessageID, seen outbox.Seen) error {
			return w.operator.Close(w.Context(), id, seen)
		}, as, storage.MessageCancelled},
		"redrive": {func(w *world, id idem.MessageID, seen outbox.Seen) error {
			_, err := w.operator.Redrive(w.Context(), id, seen)
			return err
		}, as, storage.MessageUnknown},
		"settle as declined": {func(w *world, id idem.MessageID, seen outbox.Seen) error {
			_, err := w.operator.Settle(w.Context(), id, seen, outbox.Declined{Reference: "ch_no"})
			return err
		}, as, storage.MessageDeclined},
		"settle what undoes as declined": {func(w *world, id idem.MessageID, seen outbox.Seen) error {
			_, err := w.operator.Settle(w.Context(), id, seen, outbox.Declined{Reference: "ch_no"})
			return err
		}, func(m *storage.Message) { m.Undoes = true }, storage.MessageDead},
		"settle as delivered": {func(w *world, id idem.MessageID, seen outbox.Seen) error {
			_, err := w.operator.Settle(w.Context(), id, seen, charged)
			return err
		}, as, storage.MessageDelivered},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: keyless})
			id := w.accept(func(m *storage.Message) { m.State, m.Epoch = storage.MessageDead, 1 }, c.change)
			seen := w.seen(id)
			w.clock.Add(time.Hour)
			w.loses(w.clock.Now())
			w.clock.Add(time.Hour)
			refusedWith(t, c.decide(w, id, seen), "since you looked at it")
			w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0)
			if m := w.message(id); m.Revision != seen.Revision || m.KeptDeclined != nil {
				t.Errorf("it was written: %+v", m)
			}
			lost, err := w.operator.Lost(t.Context())
			w.ok(err)
			w.ok(c.decide(w, id, outbox.Seen{Revision: seen.Revision, Lost: lost}))
			if got := w.message(id).State; got != c.now {
				t.Errorf("it is %s, want %s", got, c.now)
			}
		})
	}
}

// What a process is configured to count as lost is lost to its operators, whatever the table says.
func TestWhatIsLostIsTheLaterOfTableAndConfiguration(t *testing.T) {
	w := newWorld(t, options{config: func(c *outbox.Config) { c.RefuseBefore = c.Now().Add(time.Minute) }})
	configured := w.clock.Now().Add(time.Minute)
	for _, c := range []struct{ table, want time.Time }{{time.Time{}, configured}, {configured.Add(-time.Second), configured}, {configured.Add(time.Second), configured.Add(time.Second)}} {
		if got := w.topics.Lost(c.table); !got.Equal(c.want) {
			t.Errorf("the table says %v: %v, want %v", c.table, got, c.want)
		}
	}
	if got, err := w.operator.Lost(t.Context()); err != nil || !got.Equal(configured) {
		t.Errorf("%v, %v, want %v", got, err, configured)
	}
	w.unreadable()
	w.clock.Add(2 * time.Minute)
	if _, err := w.operator.Lost(t.Context()); !errors.Is(err, errUnreadable) {
		t.Errorf("%v, want that it can't be read", err)
	}
}

// What a process has read of losses may be a minute old. A person's decision is judged by no less than what they knew themselves.
func TestADecisionIsJudgedByWhatThePersonKnew(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked)
	w.clock.Add(time.Hour)
	if lost, err := w.operator.Lost(t.Context()); err != nil || !lost.IsZero() {
		t.Fatal(lost, err)
	}
	w.clock.Add(time.Second)
	w.loses(w.clock.Now())
	refusedWith(t, w.operator.Close(t.Context(), id, w.seen(id)), "under way until")
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
}

// A person's evidence that the store has not taken is kept for longer than it is settled for. Where their process was frozen meanwhile, and data
// was lost, it is not kept either: it may be of an attempt that another one has followed.
func TestAPersonsEvidenceIsNotKeptThroughALoss(t *testing.T) {
	for _, unreadable := range []bool{false, true} {
		w := newWorld(t, options{})
		id := w.accept(parked)
		seen := w.seen(id)
		w.store.On(faulty.Settle, 1, func(context.Context, func(context.Context) error) error {
			executed(w, id)
			if unreadable {
				w.unreadable()
			}
			return &storage.OutcomeUnknownError{Cause: errDown}
		})
		_, err := w.operator.Settle(t.Context(), id, seen, outbox.Declined{Reference: "ch_no"})
		if unknown := new(storage.OutcomeUnknownError); !errors.As(err, &unknown) {
			t.Errorf("unreadable %t: %v, want that it may have landed", unreadable, err)
		}
		if m := w.message(id); m.Revision != seen.Revision || m.KeptDeclined != nil {
			t.Errorf("unreadable %t: it was written: %+v", unreadable, m)
		}
	}
}

// A person whose settlement landed without a reply, and whose evidence the store does not take, is told that it may have landed.
func TestAPersonsSettlementThatLandedIsNotToldAsThrottled(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	w.store.On(faulty.Settle, 1, faulty.LoseReply())
	for n := range 1000 {
		w.store.On(faulty.Settle, n+2, faulty.Refuse(storage.ErrThrottled))
		w.store.On(faulty.PatchMessage, n+1, faulty.Refuse(storage.ErrThrottled))
	}
	_, err := w.operator.Settle(t.Context(), id, w.seen(id), charged)
	if unknown := new(storage.OutcomeUnknownError); !errors.As(err, &unknown) || errors.Is(err, storage.ErrThrottled) {
		t.Errorf("%v, want that nobody knows", err)
	}
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
}

// What an operator was told of stands, whatever somebody else writes before the message's next alert is dated: nothing is to be decided any
// more, and nobody has to know what was lost.
func TestWhatWasKeptAndToldIsNotToldAsUnread(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) {
		topic.Settle = func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			return outbox.Settlement{}, errors.New("a bug")
		}
	}})
	id := w.accept(parked)
	w.store.On(faulty.PostponeMessage, 1, func(ctx context.Context, run func(context.Context) error) error {
		_, err := w.worker.Settle(ctx, id, outbox.Declined{Reference: "ch_no"})
		w.ok(err)
		w.clock.Add(2 * time.Minute)
		w.unreadable()
		return run(ctx)
	})
	if decision, err := w.operator.Settle(t.Context(), id, w.seen(id), charged); err != nil || decision != outbox.DecisionDead {
		t.Errorf("%s, %v", decision, err)
	}
	if m := w.message(id); m.State != storage.MessageDead || m.KeptDelivered == nil || m.KeptDeclined == nil {
		t.Errorf("%+v", m)
	}
}
