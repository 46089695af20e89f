package operator_test

import (
	"errors"
	"strings"
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
			if _, err := w.desk.RefuseBefore(t.Context(), noon.Add(time.Minute), because("")); err != nil {
				t.Fatal(err)
			}
		}
		if result, err := w.desk.Redrive(t.Context(), m.ID, because(operator.SeenMessage(m))); err != nil || result.Outcome != string(want) {
			t.Errorf("lost %v: %+v, %v; want %s", lost, result, err, want)
		}
	}
}

// A lost reply is no reason to doubt: the same is set again. An earlier instant is refused.
func TestRefuseBeforeMovesToALaterInstantOnly(t *testing.T) {
	w := newWorld(t)
	at := noon.Add(-time.Hour)
	for range 2 {
		if result, err := w.desk.RefuseBefore(t.Context(), at, because("")); err != nil || result.State != operator.EntryDone {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	result, err := w.desk.RefuseBefore(t.Context(), at.Add(-time.Second), because(""))
	if !errors.Is(err, operator.ErrNotLater) || !operator.Refused(err) || result.State != operator.EntryRefused {
		t.Errorf("earlier: %+v, %v", result, err)
	}
	if loss, err := w.desk.Loss(t.Context()); err != nil || !loss.RefuseBefore.Equal(at) {
		t.Errorf("%+v, %v", loss, err)
	}
	if n := len(w.audit.entries); n != 3 {
		t.Errorf("%d entries in the log, want 3", n)
	}
}

// What the story advises after a loss is what the machine admits: a call of the lost side may be under way for a claim's lease.
func TestTheStoryOfARestoredMessageHeedsTheRow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*storage.Message)
		want   []string
	}{
		"unknown": {unknown, []string{"has nothing at 2026-11-21T12:02:12Z or later, nothing happened", "if nothing happened; possible from 2026-11-21T12:02:12Z on"}},
		"waiting": {func(*storage.Message) {}, []string{"wait: a worker takes it"}},
	} {
		w := newWorld(t)
		m := w.message("acme", c.change)
		w.now = noon.Add(time.Minute)
		if _, err := w.desk.RefuseBefore(t.Context(), w.now, because("")); err != nil {
			t.Fatal(err)
		}
		story, err := w.desk.Inspect(t.Context(), string(m.OperationID))
		next := strings.Join(story.Next, "\n")
		for _, want := range c.want {
			if err != nil || !strings.Contains(next, want) || strings.Contains(next, "nobody has begun it") {
				t.Errorf("%s: %q, %v, want %q", name, next, err, want)
			}
		}
	}
}
