package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// waiting is a message that has its place in a queue at an instant.
func waiting(state storage.MessageState, at time.Time) func(*storage.Message) {
	return func(m *storage.Message) { m.State, m.SweepAt = state, at }
}

// What is due counts from its place; what is unknown or dead counts wherever its place is. No row is read.
func TestBacklogCountsWhatWaits(t *testing.T) {
	w := newWorld(t, options{store: memstore.Config{Shards: 1}})
	w.accept(waiting(storage.MessagePending, noon.Add(-10*time.Minute)))
	w.accept(waiting(storage.MessagePending, noon.Add(-time.Minute)))
	w.accept(waiting(storage.MessagePending, noon.Add(time.Millisecond)))
	w.accept(waiting(storage.MessageUnknown, noon.Add(time.Hour)))
	w.accept(waiting(storage.MessageDead, noon.Add(-time.Hour)))
	w.accept(waiting(storage.MessageDead, noon.Add(24*time.Hour)))
	got, err := w.runner.Backlog(t.Context())
	if want := (outbox.Backlog{Due: 2, DueAge: 10 * time.Minute, Unknown: 1, Dead: 2}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if reads, listings := w.store.Count(faulty.Message), w.store.Count(faulty.QueuedMessages); reads != 0 || listings != 3 {
		t.Errorf("%d reads, %d listings", reads, listings)
	}
}

func TestBacklogOfNothing(t *testing.T) {
	if got, err := newWorld(t, options{}).runner.Backlog(t.Context()); err != nil || got != (outbox.Backlog{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// It costs one listing of each queue, however much waits, and says that there is more.
func TestBacklogIsBounded(t *testing.T) {
	w := newWorld(t, options{store: memstore.Config{Shards: 1}})
	for range 101 {
		w.accept(waiting(storage.MessagePending, noon.Add(-time.Minute)))
	}
	got, err := w.runner.Backlog(t.Context())
	if want := (outbox.Backlog{Due: 100, DueAge: time.Minute, More: true}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if listings := w.store.Count(faulty.QueuedMessages); listings != 3 {
		t.Errorf("%d listings", listings)
	}
}

// Half of a count is none.
func TestBacklogThatCannotBeListed(t *testing.T) {
	for n := 1; n <= 3; n++ {
		w := newWorld(t, options{})
		w.accept(waiting(storage.MessagePending, noon.Add(-time.Minute)))
		down := errors.New("down")
		w.store.On(faulty.QueuedMessages, n, faulty.Refuse(down))
		if got, err := w.runner.Backlog(t.Context()); !errors.Is(err, down) || got != (outbox.Backlog{}) {
			t.Errorf("listing %d: %+v, %v", n, got, err)
		}
	}
}

func TestBacklogOfRecords(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		died := w.reserved("died")
		w.parked("unknown")
		w.parked("put off", func(r *storage.Record) { r.LookAt = time.Now().Add(day) })
		_, place, queued := died.Queue()
		if !queued {
			t.Fatal("a wrapped record stands in no queue")
		}
		time.Sleep(time.Until(place) + time.Minute)
		got, err := w.runner(nil).Backlog(t.Context())
		if want := (outbox.Backlog{Due: 1, DueAge: time.Minute, Unknown: 2}); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	})
}
