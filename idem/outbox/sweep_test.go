package outbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// deaf is a queue that can't be reached.
type deaf struct{}

func (deaf) Schedule(context.Context, string, idem.MessageID, time.Duration) error {
	return errors.New("queue: connection refused")
}

func (w *world) swept(want outbox.Counts) {
	w.Helper()
	got, err := w.sweep(w.Context())
	if err != nil || got != want {
		w.Errorf("sweep: %+v, %v, want %+v", got, err, want)
	}
}

// A lost wake-up costs until the sweep; the sweep itself never calls.
func TestSweepOffersWhatWasForgotten(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	w.clock.Add(lease - time.Millisecond)
	w.swept(outbox.Counts{}) // left to its stream record
	w.clock.Add(time.Millisecond)
	w.swept(outbox.Counts{Offered: 1})
	w.swept(outbox.Counts{Offered: 1}) // a doubled wake-up is harmless
	if w.provider.called() != 0 {
		t.Fatal("the sweep called the provider")
	}
	w.drain(time.Second)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	w.clock.Add(time.Hour)
	w.swept(outbox.Counts{})
}

func TestSweepJudgesEachMessage(t *testing.T) {
	for name, c := range map[string]struct {
		topic  func(*outbox.Topic)
		change func(*storage.Message)
		want   outbox.Counts
		state  storage.MessageState
		record storage.State
	}{
		"due":           {want: outbox.Counts{Offered: 1}, state: storage.MessagePending, record: storage.StatePending},
		"not due":       {change: func(m *storage.Message) { m.NextAttemptAt = noon.Add(time.Hour) }, want: outbox.Counts{Skipped: 1}, state: storage.MessagePending, record: storage.StatePending},
		"live claim":    {change: claimed(time.Hour), want: outbox.Counts{Skipped: 1}, state: storage.MessageClaimed, record: storage.StatePending},
		"dead claim":    {change: claimed(time.Second), want: outbox.Counts{Offered: 1}, state: storage.MessageClaimed, record: storage.StatePending},
		"without keys":  {topic: keyless, change: claimed(time.Second), want: outbox.Counts{Parked: 1}, state: storage.MessageUnknown, record: storage.StatePending},
		"never claimed": {change: old, want: outbox.Counts{Abandoned: 1}, state: storage.MessageCancelled, record: storage.StateFailed},
		"never claimed, no settle": {
			topic: unsettling, change: old, want: outbox.Counts{Dead: 1}, state: storage.MessageDead, record: storage.StatePending,
		},
		"age over": {change: func(m *storage.Message) {
			old(m)
			m.FirstClaimedAt = noon
		}, want: outbox.Counts{Dead: 1}, state: storage.MessageDead, record: storage.StateFailed},
		"age over, open": {change: func(m *storage.Message) {
			claimed(time.Second)(m)
			old(m)
		}, want: outbox.Counts{Parked: 1}, state: storage.MessageUnknown, record: storage.StatePending},
		"age over, open, nobody to ask": {topic: unprobed, change: func(m *storage.Message) {
			claimed(time.Second)(m)
			old(m)
		}, want: outbox.Counts{Dead: 1}, state: storage.MessageDead, record: storage.StatePending},
		"parked":        {change: func(m *storage.Message) { m.State = storage.MessageUnknown }, want: outbox.Counts{}, state: storage.MessageUnknown, record: storage.StatePending},
		"unknown topic": {change: func(m *storage.Message) { m.Topic = "other.topic" }, want: outbox.Counts{Errors: 1, OtherRelease: 1}, state: storage.MessagePending, record: storage.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			// One queue after the other: beside the others, the queue of the dead may tell of a message that has died just now before
			// whoever let it die has.
			w := newWorld(t, options{topic: c.topic, config: func(c *outbox.Config) { c.SweepConcurrency = 1 }})
			change := c.change
			if change == nil {
				change = func(*storage.Message) {}
			}
			id := w.accept(change)
			w.clock.Add(16 * time.Second)
			w.swept(c.want)
			if m, r := w.message(id), w.record(id); m.State != c.state || r.State != c.record {
				t.Errorf("message %s, record %s; want %s and %s", m.State, r.State, c.state, c.record)
			}
			if w.provider.called() != 0 {
				t.Error("the sweep called the provider")
			}
		})
	}
}

func old(m *storage.Message) { m.CreatedAt = noon.Add(-24 * time.Hour) }

func unprobed(topic *outbox.Topic) { topic.Probe = nil }

func claimed(lease time.Duration) func(*storage.Message) {
	return func(m *storage.Message) {
		m.State, m.Owner, m.Epoch, m.OpenSince, m.FirstClaimedAt = storage.MessageClaimed, "dead", 1, noon, noon
		m.LeaseUntil = noon.Add(lease)
	}
}

func TestSweepGoesOnWhereItStopped(t *testing.T) {
	w := newWorld(t, options{store: memstore.Config{Shards: 3}, config: func(c *outbox.Config) { c.SweepPage, c.SweepMax = 2, 5 }})
	ids := map[idem.MessageID]bool{}
	for range 12 {
		ids[w.accept()] = true
	}
	w.clock.Add(time.Minute)
	for run := range 3 {
		report, err := w.sweep(t.Context())
		if err != nil || report != (outbox.Counts{Offered: 5, Unfinished: true}) {
			t.Errorf("run %d: %+v, %v", run, report, err)
		}
	}
	for _, id := range w.queue.Take() {
		delete(ids, id)
	}
	if len(ids) > 0 {
		t.Errorf("%d of 12 messages were not offered in 3 runs of 5", len(ids))
	}
}

func TestSweepStopsBeforeItsDeadline(t *testing.T) {
	w := newWorld(t, options{})
	w.accept()
	w.clock.Add(time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if report, err := w.sweep(ctx); err != nil || report != (outbox.Counts{Unfinished: true}) {
		t.Errorf("sweep: %+v, %v", report, err)
	}
}

func TestSweepAndTrouble(t *testing.T) {
	w := newWorld(t, options{store: memstore.Config{Shards: 2}})
	for range 8 {
		w.accept()
	}
	w.clock.Add(time.Minute)
	w.store.On(faulty.QueuedMessages, 1, faulty.Refuse(errDown))
	report, err := w.sweep(t.Context())
	if err != nil || report.Errors != 1 || report.Offered == 0 {
		t.Errorf("one shard down: %+v, %v; want the other swept", report, err)
	}
	w.store.All(faulty.Refuse(errDown))
	if _, err := w.sweep(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("all shards down: %v", err)
	}
	w.store.Clear()
	w.store.On(faulty.Message, 1, faulty.Refuse(errDown))
	if report, err := w.sweep(t.Context()); err != nil || report.Errors != 1 || report.Offered != 7 {
		t.Errorf("one read down: %+v, %v", report, err)
	}

	lost := newWorld(t, options{wakes: deaf{}})
	lost.accept()
	lost.clock.Add(time.Minute)
	lost.swept(outbox.Counts{Errors: 1})
}

func TestTwoSweepsAndWorkersBesideEachOther(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	var park, deliver []idem.MessageID
	for range 20 {
		park = append(park, w.accept(claimed(time.Second)))
		deliver = append(deliver, w.accept())
	}
	w.clock.Add(time.Minute)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, err := w.sweep(t.Context()); err != nil {
				t.Errorf("sweep: %v", err)
			}
		})
		group.Go(func() {
			for _, id := range append(deliver[:20:20], park...) {
				if err := w.worker.Deliver(t.Context(), id); err != nil {
					t.Errorf("deliver: %v", err)
				}
			}
		})
	}
	group.Wait()
	for _, id := range park {
		if m := w.message(id); m.State != storage.MessageUnknown || w.provider.made(id) != 0 {
			t.Errorf("%s, %d charges; want unknown and none", m.State, w.provider.made(id))
		}
	}
	for _, id := range deliver {
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	}
}

// With its client and its worker gone, and wake-ups lost, a message is resolved within its lease and a minute, wherever
// in its minute the sweep runs; one that nobody could claim, too.
func TestWhatDiedIsResolvedWithinItsLeaseAndAMinute(t *testing.T) {
	for phase := time.Duration(0); phase < time.Minute; phase += time.Second {
		w := newWorld(t, options{})
		claimedOnce, neverClaimed := w.accept(claimed(lease)), w.accept()
		for run := noon.Add(phase); run.Before(noon.Add(3 * time.Minute)); run = run.Add(time.Minute) {
			w.clock.Set(run)
			_, err := w.sweep(t.Context())
			w.ok(err)
			w.drain(0)
		}
		for _, id := range []idem.MessageID{claimedOnce, neverClaimed} {
			m := w.message(id)
			w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
			if took := m.DoneAt.Sub(noon); took > lease+time.Minute {
				t.Errorf("sweeps from %v on: resolved after %v, want %v at most", phase, took, lease+time.Minute)
			}
		}
	}
}

// slowQueue takes some time for each wake-up.
type slowQueue struct{ *memqueue.Queue }

func (q slowQueue) Schedule(ctx context.Context, tenant string, id idem.MessageID, delay time.Duration) error {
	_ = idem.Pause(ctx, 50*time.Millisecond)
	return q.Queue.Schedule(ctx, tenant, id, delay)
}

// With one look at a time, offers that fill every run leave reminders of the dead their turn.
func TestOffersThatFillEveryRunKeepNoReminderFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Config{Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, clock: &clock{now: time.Now()}, inner: store, mint: mint}
		topics, err := outbox.NewTopics(outbox.Config{SweepConcurrency: 1}, outbox.Topic{
			Name: topicName, Call: func(context.Context, storage.Message) outbox.Outcome { return nil }, Settle: settle,
		})
		w.ok(err)
		queue := slowQueue{memqueue.New(time.Now)}
		worker, err := outbox.NewWorker(store, topics, queue, queue.Queue)
		w.ok(err)
		runner, err := outbox.NewRunner(worker, nil, nil)
		w.ok(err)
		for range outbox.Sized(2000, 600) {
			w.accept()
		}
		w.accept(func(m *storage.Message) { m.State, m.SweepAt = storage.MessageDead, time.Now() })
		time.Sleep(time.Minute)
		reminded, offered := 0, 0
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			did, err := runner.Sweep(ctx)
			w.ok(err)
			cancel()
			reminded += did.Messages.Reminded
			offered += did.Messages.Offered
		}
		if reminded != 1 || offered == 0 {
			t.Errorf("%d reminded, %d offered in 3 runs; want 1 and some", reminded, offered)
		}
	})
}
