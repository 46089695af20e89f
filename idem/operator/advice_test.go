package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// actions are what the desk advises for a message.
func (w *world) actions(m storage.Message) (actions []string) {
	w.Helper()
	s, err := w.desk.Inspect(w.Context(), string(m.ID))
	w.ok(err)
	for _, step := range s.Steps {
		actions = append(actions, step.Action)
	}
	return actions
}

// An undoing that was declined ends by one thing only. A redrive, or a close, would be in vain.
func TestADeclinedUndoingIsResolvedByHand(t *testing.T) {
	w := newWorld(t)
	m := w.messages("acme",
		func(m *storage.Message) {
			m.State, m.DoneAt, m.FirstClaimedAt, m.LastOutcome = storage.MessageDelivered, noon, noon, "delivered"
		},
		func(m *storage.Message) {
			dead(m)
			m.Undoes, m.KeptDeclined, m.LastOutcome = true, &storage.Kept{Reference: "no"}, "declined"
		})[1]
	if got := w.actions(m); len(got) != 1 || got[0] != "resolve" {
		t.Errorf("advised %v, want resolve", got)
	}
}

// A message beside a complete operation that keeps a delivery is settled, be its record gone or not. It is not taken from the queue.
func TestADetachedMessageThatKeepsADeliveryIsRedriven(t *testing.T) {
	w := newWorld(t)
	m := w.messages("acme", func(m *storage.Message) {
		dead(m)
		m.Detached, m.KeptDelivered, m.LastOutcome = true, &storage.Kept{Reference: "ch"}, "delivered"
	})[0]
	for _, later := range []time.Duration{0, 72 * time.Hour} {
		if w.now = noon.Add(later); later > 0 {
			w.store.Expire(w.now)
		}
		if got := w.actions(m); len(got) != 1 || got[0] != "redrive" {
			t.Errorf("after %s advised %v, want redrive", later, got)
		}
	}
	var refusal *outbox.RefusalError
	if _, err := w.desk.Close(t.Context(), m.ID, because(operator.SeenMessage(m, time.Time{}))); !errors.As(err, &refusal) {
		t.Errorf("a close: %v, want it refused", err)
	}
}

// docs/operator.md "EvidenceLate": what was delivered after its client was told that nothing happened is undone at the provider before it is
// taken from the queue.
func TestADeliveryAfterTheOperationFailedIsNotJustClosed(t *testing.T) {
	failed := func(r *storage.Record) {
		r.State, r.Response.Status, r.DoneAt, r.ExpiresAt = storage.StateFailed, 502, noon, noon.Add(r.Retention)
		r.FreeAt = r.ExpiresAt
	}
	for name, c := range map[string]struct {
		change  func(*storage.Message)
		want    string
		expired string // once its record has expired
	}{
		"delivered": {func(m *storage.Message) { dead(m); m.KeptDelivered = &storage.Kept{} },
			"look: the provider delivered it after the operation had failed", "look: the provider delivered it, and its record has expired. If the application has it as failed"},
		"both": {func(m *storage.Message) {
			dead(m)
			m.KeptDelivered, m.KeptDeclined = &storage.Kept{}, &storage.Kept{}
		}, "look: the provider has said both delivered and declined after the operation had failed", "look: the provider has said both delivered and declined, and its record has expired"},
		"declined":      {func(m *storage.Message) { dead(m); m.KeptDeclined = &storage.Kept{} }, "close: its operation has its final answer", "close: its operation has its final answer"},
		"nothing known": {dead, "close: its operation has its final answer", "close: its operation has its final answer"},
	} {
		w := newWorld(t)
		m := w.operation("acme", failed, c.change)[0]
		for _, at := range []struct {
			later time.Duration
			want  string
		}{{time.Hour, c.want}, {25 * time.Hour, c.expired}} {
			w.now = noon.Add(at.later)
			w.store.Expire(w.now)
			next := w.advice(m.OperationID)
			undoes := strings.HasPrefix(at.want, "look")
			if !strings.HasPrefix(next, at.want) || strings.Contains(next, "only takes it from the queue") == undoes || strings.Contains(next, "resolve") {
				t.Errorf("%s, %s later: %q", name, at.later, next)
			}
			if undoes && (!strings.Contains(next, "at the provider") || !strings.Contains(next, "\nclose: once it was undone there")) {
				t.Errorf("%s, %s later: %q", name, at.later, next)
			}
		}
	}
}

// A key whose answer was busted answers 409 until no cache can hold that answer.
func TestABustedKeyExecutesLater(t *testing.T) {
	w := newWorld(t)
	r := w.record(idem.KindAtomic, storage.StateFailedRetryable, func(r *storage.Record) {
		r.LeaseUntil, r.LastError = noon.Add(16*time.Minute), "cache-bust: ticket 17"
	})
	w.now = noon.Add(time.Minute)
	if next := w.advice(r.OperationID); !strings.HasPrefix(next, "wait: its key answers 409 until 2026-11-21T12:16:00Z") || !strings.Contains(next, "\ncache-bust: ") {
		t.Error(next)
	}
	w.now = noon.Add(17 * time.Minute)
	if next := w.advice(r.OperationID); next != "nothing: the next request with its key executes" {
		t.Error(next)
	}
}

// An answer that is not given any more is not taken out of use, and the log does not say that it was.
func TestACacheBustThatFindsNoAnswerIsToldAsUnchanged(t *testing.T) {
	for name, prepare := range map[string]func(*world) storage.Record{
		"expired":         func(w *world) storage.Record { return w.record(idem.KindAtomic, storage.StateCompleted) },
		"freed otherwise": func(w *world) storage.Record { return w.record(idem.KindAtomic, storage.StateFailedRetryable) },
	} {
		w := newWorld(t)
		r := prepare(w)
		w.now = noon.Add(24*time.Hour + time.Second)
		result, err := w.desk.CacheBust(t.Context(), r.OperationID, because(operator.SeenRecord(r, time.Time{})))
		if err != nil || result.Outcome != "unchanged" || w.audit.entries[0].Outcome != "unchanged" {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
}
