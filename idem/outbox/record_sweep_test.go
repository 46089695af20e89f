package outbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func TestSweepParksDeadWrappedLeasesAlone(t *testing.T) { // ADR 0009
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		dead := w.reserved("dead")
		others := []storage.Record{
			w.reserved("live", func(r *storage.Record) { r.LeaseUntil = time.Now().Add(lease + skew + time.Millisecond) }),
			w.reserved("safe", func(r *storage.Record) { r.SafeToRunAgain = true }),
			w.reserved("atomic", func(r *storage.Record) { r.Kind = idem.KindAtomic }),
			w.reserved("done", func(r *storage.Record) { r.State, r.ExpiresAt = storage.StateCompleted, time.Now().Add(day) }),
			w.reserved("free", func(r *storage.Record) { r.State = storage.StateFailedRetryable }),
			w.parked("unknown"),
		}
		time.Sleep(lease + skew)
		sweep := w.runner(nil)
		w.swept(sweep, outbox.Counts{Parked: 1})
		w.swept(sweep, outbox.Counts{})
		w.want(dead, storage.StateUnknown, 0, 1)
		for _, r := range others {
			w.want(r, r.State, 0, 1)
		}
		if n, _ := w.lines("idempotency.swept"); n != 1 {
			t.Errorf("%d lines, want one for each change", n)
		}
		time.Sleep(skew + time.Millisecond)
		w.swept(sweep, outbox.Counts{Parked: 1})
	})
}

// I7: what was parked is not executed by whoever asks, until somebody knows.
func TestWhatTheSweepParkedIsNotExecuted(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		w.reserved("k", func(r *storage.Record) {
			r.Fingerprint = w.fingerprint()
		})
		time.Sleep(lease + skew)
		w.swept(w.runner(nil), outbox.Counts{Parked: 1})
		if result := w.request("k"); result.Outcome != idem.OutcomeUnknown || w.runs != 0 {
			t.Errorf("%s, %d runs; want unknown and none", result.Outcome, w.runs)
		}
	})
}

// fingerprint is that of every request here, as a first one left it.
func (w *recordWorld) fingerprint() canonical.Fingerprint {
	w.Helper()
	w.request("another")
	w.runs = 0
	return w.record(idem.Scope{Tenant: tenant, Operation: operation, Key: "another"}.RecordKey()).Fingerprint
}

// staleIndex is an index that still lists what has moved on.
type staleIndex struct {
	*memstore.Store
	refs []storage.RecordRef
}

func (s staleIndex) QueuedRecords(_ context.Context, _ string, shard int, _ time.Time, _ int, _ string) ([]storage.RecordRef, string, error) {
	if shard > 0 {
		return nil, "", nil
	}
	return s.refs, "", nil
}

// The index is read eventually consistent: what it lists may be taken over, completed, expired, or another incarnation's.
func TestSweepAndReconcilerReadBeforeTheyAct(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		now := time.Now()
		records := []storage.Record{
			w.reserved("retaken", func(r *storage.Record) { r.Epoch, r.LeaseUntil = 2, now.Add(time.Hour) }),
			w.reserved("completed", func(r *storage.Record) { r.State, r.ExpiresAt = storage.StateCompleted, now.Add(day) }),
			w.reserved("freed", func(r *storage.Record) { r.State = storage.StateFailedRetryable }),
			w.parked("asked about by another process", func(r *storage.Record) { r.LookAt = now.Add(time.Hour) }),
		}
		inner := staleIndex{Store: w.mem}
		for _, r := range append(records, reserved(t, "gone", now)) {
			inner.refs = append(inner.refs, storage.RecordRef{Key: r.Key, OperationID: r.OperationID, Tenant: tenant, At: now})
		}
		time.Sleep(lease + recordAbsentAfter)
		sweep := w.runnerOn(inner, nil)
		w.swept(sweep, outbox.Counts{Skipped: 5})
		probe := &asked{finding: executed201}
		reconciler := w.runnerOn(inner, map[string]outbox.Probe{operation: probe.probe})
		w.reconciled(reconciler, outbox.Counts{Skipped: 5})
		probe.want(t, 0)
		for _, r := range records {
			w.want(r, r.State, 0, r.Epoch)
		}
	})
}

func TestRecordsSweepGoesOnWhereItStopped(t *testing.T) {
	bubble(t, outbox.Config{SweepPage: 2, SweepMax: 5}, func(t *testing.T, w *recordWorld) {
		for i := range 12 {
			w.reserved(keyOf(i))
		}
		time.Sleep(lease + skew)
		sweep := w.runner(nil)
		w.swept(sweep, outbox.Counts{Parked: 5, Unfinished: true})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := sweep.Sweep(short); err != nil || got.Records != (outbox.Counts{Unfinished: true}) {
			t.Errorf("a second left: %+v, %v", got, err)
		}
		w.swept(sweep, outbox.Counts{Parked: 5, Unfinished: true})
		w.swept(sweep, outbox.Counts{Parked: 2})
		w.swept(sweep, outbox.Counts{})
	})
}

func TestRecordsSweepAndTrouble(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		for i := range 12 {
			w.reserved(keyOf(i))
		}
		time.Sleep(lease + skew)
		sweep := w.runner(nil)
		w.store.All(faulty.Refuse(errDown))
		if _, err := sweep.Sweep(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("all shards down: %v", err)
		}
		w.store.Clear()
		w.store.On(faulty.QueuedRecords, 1, faulty.Refuse(errDown))
		w.store.On(faulty.Get, 1, faulty.Refuse(errDown))
		w.store.On(faulty.Update, 1, faulty.LoseReply())
		w.store.On(faulty.Update, 3, faulty.LoseRequest())
		first, err := sweep.Sweep(t.Context())
		if err != nil || first.Records.Errors != 2 || first.Records.Parked == 0 {
			t.Errorf("one shard and one read down: %+v, %v; want the others swept", first, err)
		}
		w.swept(sweep, outbox.Counts{Parked: 12 - first.Records.Parked})
	})
}

// Killed at any call, before or after it, a sweep leaves a record that is still its holder's or unknown, and the next one
// goes on.
func TestSweepKilledAtAnyCall(t *testing.T) {
	for _, call := range []faulty.Call{faulty.QueuedRecords, faulty.Get, faulty.Update} {
		for name, fault := range map[string]faulty.Fault{"before": faulty.LoseRequest(), "after": faulty.LoseReply()} {
			t.Run(string(call)+" "+name, func(t *testing.T) {
				bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
					r := w.reserved("k")
					time.Sleep(lease + skew)
					w.store.On(call, 1, faulty.Before(func() { w.store.All(faulty.Refuse(errDown)) })) // and no call after it
					w.store.On(call, 1, fault)
					_, _ = w.runner(nil).Sweep(t.Context()) // killed
					w.store.Clear()
					if _, err := w.runner(nil).Sweep(t.Context()); err != nil {
						t.Error(err)
					}
					w.want(r, storage.StateUnknown, 0, 1)
				})
			})
		}
	}
}

// paused is a process that is paused just before a call, past its lease, and goes on with it.
func paused(d time.Duration, meanwhile func()) faulty.Fault {
	return func(ctx context.Context, run func(context.Context) error) error {
		time.Sleep(d)
		meanwhile()
		return run(context.WithoutCancel(ctx))
	}
}

// A sweep that meets a slow holder answers nothing in its place. It parks, and the holder's own evidence still
// settles: the client is told what happened.
func TestTheSweepNeverAnswersForASlowHolder(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		sweep := w.runner(nil)
		result, err := w.orders.Do(t.Context(), asking("k"), func(context.Context, *idem.Tx) (idem.Response, error) {
			w.swept(sweep, outbox.Counts{}) // its lease lives
			w.store.On(faulty.Update, 1, paused(time.Hour, func() {
				w.swept(sweep, outbox.Counts{Parked: 1})
				if met := w.request("k"); met.Outcome != idem.OutcomeUnknown {
					t.Errorf("a duplicate: %s, want unknown", met.Outcome)
				}
			}))
			return idem.Response{Status: 201, Body: []byte("charged")}, nil
		})
		if err != nil || result.Outcome != idem.OutcomeExecuted || string(result.Response.Body) != "charged" {
			t.Errorf("the holder: %+v, %v", result, err)
		}
		if again := w.request("k"); again.Outcome != idem.OutcomeReplayed || string(again.Response.Body) != "charged" || w.runs != 0 {
			t.Errorf("a duplicate: %s %s, %d other runs", again.Outcome, again.Response.Body, w.runs)
		}
	})
}
