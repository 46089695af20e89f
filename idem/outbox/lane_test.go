package outbox_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

// hung is a probe that never answers, and counts how many of its calls there were at once.
type hung struct {
	mu                sync.Mutex
	now, most, called int
}

func (h *hung) ask(ctx context.Context) outbox.Finding {
	h.mu.Lock()
	h.now++
	h.called++
	h.most = max(h.most, h.now)
	h.mu.Unlock()
	<-ctx.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now--
	return outbox.Unclear{Cause: ctx.Err()}
}

// A provider that hangs altogether, with many of its messages due before all others, holds up no other provider's: those are asked
// about as if it were not there. Its own probes are bounded by its topic's number.
func TestAProviderThatHangsHoldsUpNoOthersProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &hung{}
		store, err := memstore.New(memstore.Config{Shards: 2})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, clock: &clock{now: time.Now()}, inner: store, mint: mint}
		cfg := outbox.Config{SweepPage: 10, SweepConcurrency: 4}
		settled := func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			return outbox.Settlement{Response: idem.Response{Status: 201}}, nil
		}
		call := func(context.Context, storage.Message) outbox.Outcome { return nil }
		topics, err := outbox.NewTopics(cfg, outbox.Topic{
			Name: "stuck.effects", Call: call, Settle: settled, ProbesMax: 3,
			Probe: func(ctx context.Context, _ storage.Message) outbox.Finding { return stuck.ask(ctx) },
		}, outbox.Topic{
			Name: "other.effects", Call: call, Settle: settled,
			Probe: func(ctx context.Context, _ storage.Message) outbox.Finding {
				_ = idem.Pause(ctx, 100*time.Millisecond)
				return outbox.Found{Outcome: outbox.Delivered{Reference: "there"}}
			},
		})
		w.ok(err)
		queue := memqueue.New(time.Now)
		worker, err := outbox.NewWorker(store, topics, queue, queue)
		w.ok(err)
		runner, err := outbox.NewRunner(worker, nil, nil)
		w.ok(err)
		of := func(topic string, at time.Time) func(*storage.Message) {
			return func(m *storage.Message) { parked(m); m.Topic, m.SweepAt = topic, at }
		}
		var others []idem.MessageID
		for range 200 {
			w.accept(of("stuck.effects", time.Now().Add(-time.Hour)))
		}
		for range 40 {
			others = append(others, w.accept(of("other.effects", time.Now().Add(-time.Minute))))
		}
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		did, err := runner.Reconcile(ctx)
		if err != nil || did.Messages.Settled != 40 || !did.Messages.Unfinished || did.Messages.Undecided != stuck.called {
			t.Errorf("%+v, %v", did, err)
		}
		for _, id := range others {
			if took := w.message(id).DoneAt.Sub(began); took > 1100*time.Millisecond { // 40 of 100 ms, 4 at once
				t.Errorf("settled after %v", took)
			}
		}
		if stuck.most != 3 || stuck.called != 12 { // at 0, 5, 10 and 15 s
			t.Errorf("%d probes of the one that hangs, %d at once; want 12 and 3", stuck.called, stuck.most)
		}
	})
}

// The same of wrapped operations: what an operation is, only its record says.
func TestAnOperationWhoseProbeHangsHoldsUpNoOthers(t *testing.T) {
	bubble(t, outbox.Config{SweepConcurrency: 4}, func(t *testing.T, w *recordWorld) {
		stuck := &hung{}
		for n := range 60 {
			w.parked(keyOf(n))
		}
		time.Sleep(time.Second)
		for n := range 12 {
			w.parked(keyOf(100+n), func(r *storage.Record) { r.Operation = "refunds.create" })
		}
		time.Sleep(time.Hour)
		probed := 0
		var mu sync.Mutex
		r := w.runnerOn(w.store, map[string]outbox.Probe{
			operation: func(ctx context.Context, _ storage.Record) outbox.Finding { return stuck.ask(ctx) },
			"refunds.create": func(_ context.Context, seen storage.Record) outbox.Finding {
				mu.Lock()
				defer mu.Unlock()
				if probed++; seen.Operation != "refunds.create" {
					t.Errorf("asked about %s", seen.Operation)
				}
				return outbox.Executed{Response: idem.Response{Status: 201}}
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 14*time.Second)
		defer cancel()
		did, err := r.Reconcile(ctx)
		if err != nil || did.Records.Completed != 12 || probed != 12 || !did.Records.Unfinished || stuck.most != 4 || stuck.called != 4 {
			t.Errorf("%+v, %v; %d probes, %d of what hangs, %d at once", did, err, probed, stuck.called, stuck.most)
		}
	})
}
