package operator_test

import (
	"context"
	"errors"
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
		_, err := w.desk.Resolve(t.Context(), m.ID, outbox.Delivered{Reference: "ch_1"}, because(operator.SeenMessage(m, time.Time{})))
		w.ok(err)
	}}
	desk, err := operator.New(cfg)
	w.ok(err)
	story, err := desk.Inspect(t.Context(), string(m.OperationID))
	if err != nil || story.Record.State != storage.StateCompleted || strings.Join(story.Next, "") != "nothing: it has ended" {
		t.Errorf("%+v, %v", story, err)
	}
}

// docs/operator.md "UnknownTopic", "RecordUnreadable": this release knows nothing of a state that another one has written, and does not say
// that it has ended. Nothing is advised or done here, and its dead letter stays.
func TestAnotherReleasesRowsAreLeftToIt(t *testing.T) {
	w := newWorld(t)
	m, r := w.message("acme", dead), w.record(idem.KindWrapped, storage.StateUnknown)
	w.now = noon.Add(time.Hour)
	cfg := w.cfg
	cfg.Store = damaged{Store: w.store, message: m.ID, record: r.Key}
	desk, err := operator.New(cfg)
	w.ok(err)
	for _, id := range []idem.OperationID{m.OperationID, r.OperationID} {
		story, err := desk.Inspect(t.Context(), string(id))
		w.ok(err)
		if len(story.Steps) != 1 || story.Steps[0].Action != "look" || !strings.Contains(story.Next[0], "another release wrote it") || !strings.Contains(story.Next[0], `"paused"`) {
			t.Errorf("%s: %q", id, story.Next)
		}
		if id == m.OperationID && story.Messages[0].Unreadable == "" || id == r.OperationID && story.Record.Unreadable == "" {
			t.Errorf("%s: %+v", id, story)
		}
	}
	var unreadable *outbox.UnreadableError
	if err := desk.RedriveLetter(t.Context(), outbox.DeadLetter{Message: m.ID}, false, because("")); !errors.As(err, &unreadable) {
		t.Errorf("its letter: %v, want to keep it", err)
	}
}
