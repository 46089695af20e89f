package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// docs/operator.md "OutboxDead": what was to be undone stands until a person says otherwise. Nothing else that an operator can do ends
// it, and nobody is told that nothing is held.
func TestAnUndoThatWasDeclinedEndsOnlyByAnOperatorsDelivered(t *testing.T) {
	w, operation := refusedSecond(t, true, "402")
	undo := operation.Message(3)
	w.deliver(undo)
	still := func(what string) {
		t.Helper()
		w.drain(time.Hour)
		w.want(undo, storage.MessageDead, storage.StatePending, 202, "", 0)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	still("declined")

	if _, err := w.operator.Redrive(t.Context(), undo, w.seen(undo)); err != nil {
		t.Error(err)
	}
	still("a redrive")
	w.clock.Add(48 * time.Hour)
	var refusal *outbox.RefusalError
	if err := w.operator.Close(t.Context(), undo, w.seen(undo)); !errors.As(err, &refusal) {
		t.Errorf("a close: %v, want it refused", err)
	}
	still("a close")
	if _, err := w.operator.Settle(t.Context(), undo, w.seen(undo), outbox.Declined{Reference: "no"}); err != nil && !errors.As(err, &refusal) {
		t.Error(err)
	}
	still("another decline")

	if decision, err := w.operator.Settle(t.Context(), undo, w.seen(undo), outbox.Delivered{Reference: "by hand"}); err != nil || decision != outbox.DecisionSettled {
		t.Errorf("%v, %v", decision, err)
	}
	w.want(undo, storage.MessageDelivered, storage.StateFailed, 409, "delivered", 0)
}
