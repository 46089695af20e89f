package memqueue_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
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

// What is offered waits, unless it is delayed or received.
func TestQueueCountsWhatWaits(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var q outbox.BatchWakeUps
	memory := memqueue.New(func() time.Time { return now })
	q = memory
	if failed := q.Offer(t.Context(), []outbox.WakeUp{{Tenant: "t", Message: "a"}, {Tenant: "t", Message: "b"}}); len(failed) != 2 || errors.Join(failed...) != nil {
		t.Errorf("%v", failed)
	}
	if err := q.Schedule(t.Context(), "t", "late", time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0, 1} {
		if n, err := q.Waiting(t.Context()); err != nil || n != want {
			t.Errorf("%d wait, %v; want %d", n, err, want)
		}
		if want == 0 {
			now = now.Add(time.Minute)
			continue
		}
		memory.Take()
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

// Whoever receives waits for what is due, is woken by what comes, and gets again what could not be delivered.
func TestQueueHandsOutWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := memqueue.New(time.Now), time.Now()
		schedule := func(id idem.MessageID, delay time.Duration) {
			if err := q.Schedule(t.Context(), "t", id, delay); err != nil {
				t.Fatal(err)
			}
		}
		receive := func(most int, at time.Duration, want ...idem.MessageID) []outbox.Received {
			t.Helper()
			received, err := q.Receive(t.Context(), most)
			var ids []idem.MessageID
			for _, r := range received {
				ids = append(ids, r.Message)
			}
			if took := time.Since(began); err != nil || !slices.Equal(ids, want) || took != at {
				t.Fatalf("%v, %v after %v; want %v after %v", ids, err, took, want, at)
			}
			return received
		}
		go func() {
			time.Sleep(5 * time.Second)
			schedule("soon", 0)
		}()
		schedule("late", time.Hour)
		schedule("later", time.Hour)
		schedule("last", time.Hour)
		receive(10, 5*time.Second, "soon")
		two := receive(2, time.Hour, "late", "later")
		if err := two[0].Hold(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		failed := errors.New("the store is down")
		if err := two[1].Hold(t.Context(), func(context.Context) error { return failed }); !errors.Is(err, failed) {
			t.Error(err)
		}
		receive(10, time.Hour, "last")
		receive(10, time.Hour+time.Second, "later")
		ending, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		if received, err := q.Receive(ending, 1); len(received) > 0 || err != nil {
			t.Errorf("%v, %v", received, err)
		}
	})
}
