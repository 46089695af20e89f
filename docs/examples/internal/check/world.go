package check

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

// World is what a service needs besides its handlers, in memory and on a clock that only the test moves.
type World struct {
	t      *testing.T
	Clock  *idemtest.Clock
	Store  *memstore.Store
	Engine *idem.Engine
	Queue  *memqueue.Queue
	Worker *outbox.Worker
	Runner *outbox.Runner
}

// NewWorld returns one whose worker knows the topics. Its clock begins at noon.
func NewWorld(t *testing.T, topics ...outbox.Topic) *World {
	t.Helper()
	clock := idemtest.NewClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	queue := memqueue.New(clock.Now)
	store := Get(memstore.New(memstore.Config{Now: clock.Now}))(t)
	engine := Get(idem.New(store, idem.Config{Now: clock.Now, Pause: clock.Pause}))(t)
	registry := Get(outbox.NewTopics(outbox.Config{Now: clock.Now, Pause: clock.Pause}, topics...))(t)
	worker := Get(outbox.NewWorker(store, registry, queue, queue))(t)
	runner := Get(outbox.NewRunner(worker, engine, nil))(t)
	return &World{t, clock, store, engine, queue, worker, runner}
}

// Get fails the test where a constructor did.
func Get[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Pass lets time pass, and does what a deployed service does each minute: the sweep, the reconciler, and every wake-up.
func (w *World) Pass(minutes int) {
	w.t.Helper()
	for range minutes {
		w.Clock.Advance(time.Minute)
		Get(w.Runner.Sweep(w.t.Context()))(w.t)
		Get(w.Runner.Reconcile(w.t.Context()))(w.t)
		w.Deliver()
	}
}

// Deliver serves the wake-ups that are due.
func (w *World) Deliver() {
	w.t.Helper()
	for _, id := range w.Queue.Take() {
		if err := w.Worker.Deliver(w.t.Context(), id); err != nil {
			w.t.Error(err)
		}
	}
}

// Stream delivers every new message at once, as the table's stream does.
func (w *World) Stream() {
	w.t.Helper()
	for _, m := range w.Store.Messages() {
		if err := w.Worker.Deliver(w.t.Context(), m.ID); err != nil {
			w.t.Error(err)
		}
	}
}
