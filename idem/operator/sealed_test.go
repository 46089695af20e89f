package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What this desk can't open it must not give up: a worker with the keys can.
func TestWhatIsSealedIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	sealed := func(m *storage.Message) { m.Sealed = true }
	both := func(a, b func(*storage.Message)) func(*storage.Message) {
		return func(m *storage.Message) { a(m); b(m) }
	}
	waiting, parked, buried := w.message("acme", sealed), w.message("acme", both(unknown, sealed)), w.message("acme", both(dead, sealed))
	w.now = noon.Add(time.Hour)
	before := w.everything()
	for name, try := range map[string]func() (operator.Result, error){
		"resolve": func() (operator.Result, error) {
			return w.desk.Resolve(t.Context(), parked.ID, outbox.Delivered{}, because(operator.SeenMessage(parked)))
		},
		"redrive": func() (operator.Result, error) {
			return w.desk.Redrive(t.Context(), buried.ID, because(operator.SeenMessage(buried)))
		},
		"reconcile": func() (operator.Result, error) {
			return w.desk.ReconcileMessage(t.Context(), parked.ID, because(""))
		},
	} {
		if got, err := try(); !errors.Is(err, operator.ErrSealed) || got.State != operator.EntryRefused {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	var refusal *outbox.RefusalError
	if _, err := w.desk.Close(t.Context(), parked.ID, because(operator.SeenMessage(parked))); !errors.As(err, &refusal) {
		t.Errorf("close: %v, want a refusal", err)
	}
	if got, err := w.desk.Sweep(t.Context(), because("")); err != nil || !strings.Contains(got.Outcome, `"errors":2`) {
		t.Errorf("sweep: %+v, %v", got, err)
	}
	if after := w.everything(); after != before || w.stateOf(waiting.ID) != storage.MessagePending {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
}
