package memqueue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

func TestQueueWakesInTime(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	q := memqueue.New(func() time.Time { return now })
	if _, ok := q.Next(); ok || len(q.Take()) != 0 {
		t.Error("an empty queue has something")
	}
	for id, delay := range map[idem.MessageID]time.Duration{"late": time.Minute, "soon": time.Second, "now": 0} {
		if err := q.Schedule(t.Context(), "tenant-a", id, delay); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		after time.Duration
		want  []idem.MessageID
	}{{0, []idem.MessageID{"now"}}, {999 * time.Millisecond, nil}, {time.Minute, []idem.MessageID{"soon", "late"}}} {
		now = now.Add(step.after)
		if got := q.Take(); !slices.Equal(got, step.want) {
			t.Errorf("after %v: %q, want %q", step.after, got, step.want)
		}
	}
}

func TestQueueKeepsLetters(t *testing.T) {
	q := memqueue.New(time.Now)
	letter := outbox.DeadLetter{Message: "op_1.1", Topic: "a.b", Reason: "refused", Open: true, Attempts: 3}
	if err := q.Bury(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	if got := q.Letters(); !slices.Equal(got, []outbox.DeadLetter{letter}) {
		t.Errorf("letters %+v", got)
	}
}
