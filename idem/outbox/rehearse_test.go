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

// rehearsal is an operator who writes nothing.
func (w *world) rehearsal(id idem.MessageID, made func(outbox.Rehearsed)) *outbox.Operator {
	return w.operator.Rehearsal(func(context.Context, idem.OperationID) (*storage.Record, error) {
		r := w.record(id)
		return &r, nil
	}, made)
}

// A rehearsal judges what else the write would meet: a record that has its answer, and a message behind it that is there already.
func TestARehearsalMeetsWhatTheWriteWouldMeet(t *testing.T) {
	unfinished := func(m *storage.Message) { parked(m); m.Revision += "x" }
	for name, c := range map[string]struct {
		leave func(*world) idem.MessageID
		want  outbox.Decision
	}{
		"nothing in its way": {func(w *world) idem.MessageID { return w.accept(parked) }, outbox.DecisionSettled},
		"the next message is there": {func(w *world) idem.MessageID {
			id := w.accept()
			w.deliver(id)
			w.rewrite(id, unfinished)
			return id
		}, outbox.DecisionDead},
		"the record has its answer": {func(w *world) idem.MessageID {
			id := w.accept()
			w.deliver(id)
			operation := w.message(id).OperationID
			w.deliver(operation.Message(2))
			w.rewrite(operation.Message(2), unfinished)
			return operation.Message(2)
		}, outbox.DecisionDead},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: twoPhases(true)})
			id := c.leave(w)
			before, seen := w.message(id), w.seen(id)
			w.queue.Take()
			lines := w.log.String()
			var did outbox.Rehearsed
			got, err := w.rehearsal(id, func(made outbox.Rehearsed) { did = made }).Settle(t.Context(), id, seen, charged)
			if err != nil || got != c.want {
				t.Errorf("rehearsed: %s, %v, want %s", got, err, c.want)
			}
			if after := w.message(id); after.Revision != before.Revision || w.log.String() != lines || len(w.queue.Take())+len(w.queue.Letters()) != 0 {
				t.Errorf("%+v became %+v\n%s", before, after, w.log.String()[len(lines):])
			}
			if got, err := w.operator.Settle(t.Context(), id, seen, charged); err != nil || got != c.want {
				t.Errorf("made: %s, %v, want %s", got, err, c.want)
			}
			sent := c.want == outbox.DecisionSettled
			if did.State != w.message(id).State || (did.Next == before.OperationID.Message(2)) != sent || did.Ends || (did.Unsettled == nil) != sent {
				t.Errorf("it would make %+v, and made %+v", did, w.message(id))
			}
		})
	}
}

// A rehearsal says why evidence would be kept, and not be settled: the change itself says it in the log alone.
func TestARehearsalSaysWhyEvidenceIsKept(t *testing.T) {
	keeps := func(m *storage.Message) { dead(m); m.KeptDelivered = &storage.Kept{Reference: "ch_1"} }
	for name, c := range map[string]struct {
		topic    func(*outbox.Topic)
		leave    func(*storage.Message)
		evidence outbox.Outcome
		state    storage.MessageState
		why      string
	}{
		"its topic can't":      {unsettling, parked, charged, storage.MessageDead, "no such payment"},
		"it keeps another":     {nil, keeps, outbox.Declined{Reference: "no"}, storage.MessageDead, "contradicts what the message keeps"},
		"it undoes":            {nil, func(m *storage.Message) { parked(m); m.Undoes = true }, outbox.Declined{Reference: "no"}, storage.MessageDead, "a decline leaves that step standing"},
		"what it means stands": {nil, func(m *storage.Message) { dead(m); m.Detached, m.OpenSince = true, time.Time{} }, outbox.Declined{Reference: "no"}, storage.MessageDead, "what that means was written"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: c.topic})
			id := w.accept(c.leave)
			w.clock.Add(time.Hour)
			var did outbox.Rehearsed
			rehearsed, err := w.rehearsal(id, func(made outbox.Rehearsed) { did = made }).Settle(t.Context(), id, w.seen(id), c.evidence)
			if err != nil || did.State != c.state || did.Next != "" || did.Unsettled == nil || !strings.Contains(did.Unsettled.Error(), c.why) {
				t.Errorf("%s, %v: it would make %+v, want %s because %q", rehearsed, err, did, c.state, c.why)
			}
			if made, err := w.operator.Settle(t.Context(), id, w.seen(id), c.evidence); made != rehearsed || err != nil || w.message(id).State != c.state {
				t.Errorf("made: %s, %v: %+v; rehearsed: %s", made, err, w.message(id), rehearsed)
			}
		})
	}
}

// Where it can't be read what the write would meet, a rehearsal says so.
func TestARehearsalThatCannotLookSaysSo(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	down := errors.New("down")
	nothing := func(did outbox.Rehearsed) { t.Errorf("it would make %+v", did) }
	blind := w.operator.Rehearsal(func(context.Context, idem.OperationID) (*storage.Record, error) { return nil, down }, nothing)
	if got, err := blind.Settle(t.Context(), id, w.seen(id), charged); !errors.Is(err, down) {
		t.Errorf("%s, %v", got, err)
	}
	seen := w.seen(id)
	w.store.All(faulty.Refuse(down))
	if err := w.rehearsal(id, nothing).Close(t.Context(), id, seen); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}
