package operator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What an operator starts anew may have been called before a loss: their desk reads the row too.
func TestAnOperatorsRedriveHeedsTheRow(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		m := w.message("acme", func(m *storage.Message) { m.State, m.Unfailed = storage.MessageDead, true })
		w.now = noon.Add(time.Hour)
		want := storage.MessagePending
		if lost {
			want = storage.MessageUnknown
			if _, err := w.console.RefuseBefore(t.Context(), noon.Add(time.Minute), because("")); err != nil {
				t.Fatal(err)
			}
		}
		if result, err := w.console.Redrive(t.Context(), m.ID, because(operator.SeenMessage(m))); err != nil || result.Outcome != string(want) {
			t.Errorf("lost %v: %+v, %v; want %s", lost, result, err, want)
		}
	}
}

// A lost reply is no reason to doubt: the same is set again. An earlier instant is refused.
func TestRefuseBeforeMovesToALaterInstantOnly(t *testing.T) {
	w := newWorld(t)
	at := noon.Add(-time.Hour)
	for range 2 {
		if result, err := w.console.RefuseBefore(t.Context(), at, because("")); err != nil || result.State != operator.EntryDone {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	result, err := w.console.RefuseBefore(t.Context(), at.Add(-time.Second), because(""))
	if !errors.Is(err, operator.ErrNotLater) || !operator.Refused(err) || result.State != operator.EntryRefused {
		t.Errorf("earlier: %+v, %v", result, err)
	}
	if loss, err := w.console.Loss(t.Context()); err != nil || !loss.RefuseBefore.Equal(at) {
		t.Errorf("%+v, %v", loss, err)
	}
	if n := len(w.audit.entries); n != 3 {
		t.Errorf("%d entries in the log, want 3", n)
	}
}
