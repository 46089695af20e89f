package operator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

func delivered(m *storage.Message) {
	m.State, m.DoneAt, m.Reference = storage.MessageDelivered, noon, "ch_1"
}

// advice is what a story advises, in one text.
func (w *world) advice(id idem.OperationID) string {
	w.Helper()
	story, err := w.desk.Inspect(w.Context(), string(id))
	w.ok(err)
	return strings.Join(story.Next, "\n")
}

// recovery.md "Torn transactions": an operation that waits for a message that is not there waits for ever, and is nothing that has ended.
func TestWhatWaitsForAMessageThatIsNotThereHasNotEnded(t *testing.T) {
	w := newWorld(t)
	bare := w.record(idem.KindDeferred, storage.StatePending)
	ended := w.messages("acme", delivered, delivered)
	late := w.messages("acme", func(m *storage.Message) {
		m.State, m.DoneAt, m.KeptDelivered = storage.MessageCancelled, noon, &storage.Kept{}
	})
	w.now = noon.Add(time.Minute)
	for name, id := range map[string]idem.OperationID{"no message": bare.OperationID, "all have ended": ended[0].OperationID, "and one keeps evidence": late[0].OperationID} {
		if next := w.advice(id); !strings.Contains(next, "look: it waits for a message that is not there") || strings.Contains(next, "it has ended") {
			t.Errorf("%s: %q", name, next)
		}
	}
}

// ending ends a record between the read of it and the read of its messages.
type ending struct {
	*memstore.Store
	end func()
}

func (e *ending) Message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	m, err := e.Store.Message(ctx, id)
	if end := e.end; end != nil {
		e.end = nil
		end()
		m, err = e.Store.Message(ctx, id)
	}
	return m, err
}

// Its record may just have ended: it is read again before anybody is told that its message is lost.
func TestWhatEndsWhileItIsReadWaitsForNothing(t *testing.T) {
	w := newWorld(t)
	m := w.message("acme", unknown)
	w.now = noon.Add(time.Hour)
	cfg := w.cfg
	cfg.Store = &ending{w.store, func() {
		_, err := w.desk.Resolve(t.Context(), m.ID, outbox.Delivered{Reference: "ch_1"}, because(operator.SeenMessage(m)))
		w.ok(err)
	}}
	desk, err := operator.New(cfg)
	w.ok(err)
	story, err := desk.Inspect(t.Context(), string(m.OperationID))
	if err != nil || story.Record.State != storage.StateCompleted || strings.Join(story.Next, "") != "nothing: it has ended" {
		t.Errorf("%+v, %v", story, err)
	}
}
