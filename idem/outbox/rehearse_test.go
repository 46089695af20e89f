package outbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// rehearsal is an operator who writes nothing.
func (w *world) rehearsal(id idem.MessageID) *outbox.Operator {
	return w.operator.Rehearsal(func(context.Context, idem.OperationID) (*storage.Record, error) {
		r := w.record(id)
		return &r, nil
	})
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
			got, err := w.rehearsal(id).Settle(t.Context(), id, seen, charged)
			if err != nil || got != c.want {
				t.Errorf("rehearsed: %s, %v, want %s", got, err, c.want)
			}
			if after := w.message(id); after.Revision != before.Revision || w.log.String() != lines || len(w.queue.Take())+len(w.queue.Letters()) != 0 {
				t.Errorf("%+v became %+v\n%s", before, after, w.log.String()[len(lines):])
			}
			if got, err := w.operator.Settle(t.Context(), id, seen, charged); err != nil || got != c.want {
				t.Errorf("made: %s, %v, want %s", got, err, c.want)
			}
		})
	}
}

// Where it can't be read what the write would meet, a rehearsal says so.
func TestARehearsalThatCannotLookSaysSo(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	down := errors.New("down")
	blind := w.operator.Rehearsal(func(context.Context, idem.OperationID) (*storage.Record, error) { return nil, down })
	if got, err := blind.Settle(t.Context(), id, w.seen(id), charged); !errors.Is(err, down) {
		t.Errorf("%s, %v", got, err)
	}
	seen := w.seen(id)
	w.store.All(faulty.Refuse(down))
	if err := w.rehearsal(id).Close(t.Context(), id, seen); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}
