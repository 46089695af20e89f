package recovery_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/recovery"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func TestReconcileCompletesWhatIsFound(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		r := w.parked("k", func(r *storage.Record) { r.Fingerprint = w.fingerprint() })
		probe := &asked{finding: charged}
		reconciler := w.reconciler(probe.probe)
		w.reconciled(reconciler, recovery.ReconcileReport{Completed: 1})
		w.want(r, storage.StateCompleted, 201, 1)
		if result := w.request("k"); result.Outcome != idem.OutcomeReplayed || string(result.Response.Body) != "charged" || w.runs != 0 {
			t.Errorf("%s %s, %d runs", result.Outcome, result.Response.Body, w.runs)
		}
		w.reconciled(reconciler, recovery.ReconcileReport{})
		probe.want(t, 1)
	})
}

// peers.md H10: what does not fit has happened all the same.
func TestReconcileCompletesWhatIsTooLarge(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		r := w.parked("k")
		probe := &asked{finding: recovery.Found{Response: idem.Response{Status: 201, Body: make([]byte, 4<<20)}}}
		w.reconciled(w.reconciler(probe.probe), recovery.ReconcileReport{Completed: 1})
		w.want(r, storage.StateCompleted, 500, 1)
		if body := string(w.record(r.Key).Response.Body); !strings.Contains(body, header.CodeResponseTooLarge) {
			t.Errorf("stored is %s", body)
		}
	})
}

// peers.md H5: a probe that finds nothing proves nothing while a request of the holder's may be under way.
func TestH5AbsenceIsProvenByWaiting(t *testing.T) {
	bubble(t, recovery.Config{ListingDelay: 5 * time.Second}, func(t *testing.T, w *world) {
		r := w.parked("k", func(r *storage.Record) { r.Fingerprint = w.fingerprint() })
		probe := &asked{finding: recovery.Absent{}}
		reconciler := w.reconciler(probe.probe)
		w.reconciled(reconciler, recovery.ReconcileReport{Undecided: 1}) // early
		time.Sleep(absentAfter + 5*time.Second - time.Millisecond)
		w.reconciled(reconciler, recovery.ReconcileReport{Waiting: 1})
		if got, err := reconciler.Reconcile(t.Context(), tenant, r.OperationID); got != recovery.DecisionEarly || err != nil {
			t.Errorf("asked a millisecond early: %s, %v", got, err)
		}
		w.want(r, storage.StateUnknown, 0, 1)
		time.Sleep(time.Millisecond)
		w.reconciled(reconciler, recovery.ReconcileReport{Freed: 1})
		w.want(r, storage.StateFailedRetryable, 0, 2)
		probe.want(t, 3)
		if result := w.request("k"); result.Outcome != idem.OutcomeExecuted || w.runs != 1 {
			t.Errorf("%s, %d runs; want executed once", result.Outcome, w.runs)
		}
	})
}

// peers.md H5: what counts is when the question was put, not when its answer came.
func TestH5AnAnswerCoversWhatWasAsked(t *testing.T) {
	bubble(t, recovery.Config{ProbeTimeout: time.Minute}, func(t *testing.T, w *world) {
		r := w.parked("k")
		time.Sleep(absentAfter - time.Second)
		reconciler := w.reconciler(func(context.Context, storage.Record) recovery.Finding {
			time.Sleep(30 * time.Second)
			return recovery.Absent{}
		})
		w.reconciled(reconciler, recovery.ReconcileReport{Undecided: 1})
		w.want(r, storage.StateUnknown, 0, 1)
	})
}

// A record that stays undecided is asked about at steps that double, and is never written; a person is told after a day,
// once a day.
func TestReconcileBacksOffWithoutAWrite(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		r := w.parked("k")
		probe := &asked{finding: recovery.Unclear{Cause: errDown}}
		reconciler := w.reconciler(probe.probe)
		began := time.Now()
		var at []time.Duration
		minutes := func(n int) {
			for range n {
				before := probe.n
				if _, err := reconciler.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if probe.n > before {
					at = append(at, time.Since(began))
				}
				time.Sleep(time.Minute)
			}
		}
		minutes(5 * 60)
		want := []time.Duration{0, 3 * time.Minute} // at once, and when absence can be proven: 122 s, seen at the next minute
		for vain := time.Minute; vain <= 64*time.Minute; vain *= 2 {
			want = append(want, vain+3*time.Minute)
		}
		want = append(want, 127*time.Minute, 187*time.Minute, 247*time.Minute) // then every hour
		if len(at) != len(want) {
			t.Fatalf("asked at %v, want %v", at, want)
		}
		for i := range at {
			if at[i] != want[i] {
				t.Errorf("asked at %v, want %v", at, want)
				break
			}
		}
		if n, alarms := w.lines("idempotency.reconcile.failed"); n != 0 || alarms != 0 {
			t.Errorf("%d alarms on the first day", n)
		}
		minutes(3*24*60 - 5*60)
		if n, alarms := w.lines("idempotency.reconcile.failed"); n != 2 || alarms != 2 {
			t.Errorf("%d lines, %d alarms in three days; want 2", n, alarms)
		}
		if writes := w.store.Count(faulty.Update); writes != 0 || probe.n > 90 {
			t.Errorf("%d writes, asked %d times in three days", writes, probe.n)
		}
		w.want(r, storage.StateUnknown, 0, 1)
	})
}

func TestReconcileWithoutAProbeTellsAPersonOnceADay(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		r := w.parked("k")
		reconciler := w.reconciler(nil)
		w.reconciled(reconciler, recovery.ReconcileReport{Unasked: 1})
		w.reconciled(reconciler, recovery.ReconcileReport{Waiting: 1})
		for range 2*24*60 - 1 { // two days, minute by minute
			time.Sleep(time.Minute)
			if _, err := reconciler.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n, alarms := w.lines("idempotency.reconcile.failed"); n != 2 || alarms != 2 {
			t.Errorf("%d lines, %d alarms in two days; want 2", n, alarms)
		}
		w.want(r, storage.StateUnknown, 0, 1)
		time.Sleep(10 * time.Minute)
		for range 5 { // processes that begin within the day tell nothing anew
			time.Sleep(time.Hour)
			w.reconciled(w.reconciler(nil), recovery.ReconcileReport{Unasked: 1})
		}
		if n, _ := w.lines("idempotency.reconcile.failed"); n != 2 {
			t.Errorf("%d lines, want 2", n)
		}
	})
}

// A record that comes late to the queue, because nothing swept for hours, is asked about at once, and told of at once
// where nobody can be asked.
func TestReconcileTakesUpAtOnceWhatIsNew(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		probe := &asked{finding: charged}
		probing, unprobed := w.reconciler(probe.probe), w.reconciler(nil)
		w.reserved("k")
		for range 3 * 60 {
			time.Sleep(time.Minute)
			w.reconciled(probing, recovery.ReconcileReport{})
			w.reconciled(unprobed, recovery.ReconcileReport{})
		}
		time.Sleep(time.Second)
		w.swept(w.sweep(), recovery.Report{Parked: 1})
		w.reconciled(unprobed, recovery.ReconcileReport{Unasked: 1})
		if _, alarms := w.lines("idempotency.reconcile.failed"); alarms != 1 {
			t.Errorf("%d alarms, want one", alarms)
		}
		w.reconciled(probing, recovery.ReconcileReport{Completed: 1})
	})
}

func TestReconcileUnreasonableProbes(t *testing.T) {
	for name, probe := range map[string]recovery.Probe{
		"panic":     func(context.Context, storage.Record) recovery.Finding { panic("a bug") },
		"nil":       func(context.Context, storage.Record) recovery.Finding { return nil },
		"no status": func(context.Context, storage.Record) recovery.Finding { return recovery.Found{} },
		"too much of it": func(context.Context, storage.Record) recovery.Finding {
			return recovery.Found{Response: idem.Response{Status: 600}}
		},
		"over time": func(ctx context.Context, _ storage.Record) recovery.Finding {
			<-ctx.Done()
			return recovery.Unclear{Cause: ctx.Err()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
				r := w.parked("k")
				time.Sleep(absentAfter)
				w.reconciled(w.reconciler(probe), recovery.ReconcileReport{Undecided: 1})
				w.want(r, storage.StateUnknown, 0, 1)
				if n, _ := w.lines("idempotency.probe_unclear"); n != 1 {
					t.Errorf("%d lines, want one", n)
				}
			})
		})
	}
}

// While the probe asks, somebody else decides: what they wrote stands.
func TestReconcileOvertaken(t *testing.T) {
	for name, finding := range map[string]recovery.Finding{"found": charged, "absent": recovery.Absent{}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
				r := w.parked("k")
				time.Sleep(absentAfter)
				reconciler := w.reconciler(func(ctx context.Context, r storage.Record) recovery.Finding {
					now, late := time.Now(), r
					late.State, late.Response, late.Revision = storage.StateCompleted, idem.Response{Status: 200}, "AAAAAAAAAAAAAAAAAAAAAQ"
					late.LeaseUntil, late.DoneAt, late.ExpiresAt, late.FreeAt = time.Time{}, now, now.Add(r.Retention), now.Add(r.Retention)
					w.ok(w.mem.Update(ctx, late, storage.FenceOf(r)))
					return finding
				})
				w.reconciled(reconciler, recovery.ReconcileReport{Skipped: 1})
				w.want(r, storage.StateCompleted, 200, 1)
			})
		})
	}
}

func TestReconcileIsTheTenantsOwn(t *testing.T) { // I5
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		r, other := w.parked("k"), w.parked("l")
		probe := &asked{finding: charged}
		reconciler := w.reconciler(probe.probe)
		for _, c := range []struct {
			tenant string
			id     idem.OperationID
		}{{"u", r.OperationID}, {tenant, "op_nonsense"}, {tenant, reserved(t, "k", time.Now()).OperationID}} {
			if got, err := reconciler.Reconcile(t.Context(), c.tenant, c.id); got != recovery.DecisionNone || err != nil {
				t.Errorf("%s %s: %s, %v", c.tenant, c.id, got, err)
			}
		}
		probe.want(t, 0)
		if got, err := reconciler.Reconcile(t.Context(), tenant, r.OperationID); got != recovery.DecisionCompleted || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		w.want(other, storage.StateUnknown, 0, 1)
	})
}

func TestReconcileGoesOnWhereItStopped(t *testing.T) {
	bubble(t, recovery.Config{SweepPage: 2, SweepMax: 5}, func(t *testing.T, w *world) {
		for i := range 12 {
			w.parked(keyOf(i))
		}
		probe := &asked{finding: recovery.Unclear{Cause: errDown}}
		reconciler := w.reconciler(probe.probe)
		w.reconciled(reconciler, recovery.ReconcileReport{Undecided: 5, Unfinished: true})
		short, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		if got, err := reconciler.Run(short); err != nil || got != (recovery.ReconcileReport{Unfinished: true}) {
			t.Errorf("no time for a probe: %+v, %v", got, err)
		}
		w.reconciled(reconciler, recovery.ReconcileReport{Undecided: 5, Unfinished: true})
		w.reconciled(reconciler, recovery.ReconcileReport{Undecided: 2, Waiting: 3, Unfinished: true}) // from the start again
		w.reconciled(reconciler, recovery.ReconcileReport{Waiting: 5, Unfinished: true})
		probe.want(t, 12)
	})
}

// A probe that our own end cut short says nothing, and is asked again.
func TestReconcileCancelledDecidesNothing(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		w.parked("k")
		ctx, cancel := context.WithCancel(t.Context())
		probe := &asked{finding: charged}
		reconciler := w.reconciler(func(asking context.Context, r storage.Record) recovery.Finding {
			if ctx.Err() == nil {
				cancel()
				return recovery.Unclear{Cause: asking.Err()}
			}
			return probe.probe(asking, r)
		})
		if got, err := reconciler.Run(ctx); err != nil || got.Errors != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		w.reconciled(reconciler, recovery.ReconcileReport{Completed: 1})
		second := w.parked("l")
		short, cancelShort := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancelShort()
		if _, err := reconciler.Reconcile(short, tenant, second.OperationID); !errors.Is(err, idem.ErrNoTime) {
			t.Errorf("no time: %v, want ErrNoTime", err)
		}
	})
}

func TestReconcileAndTrouble(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		var records []storage.Record
		for i := range 12 {
			records = append(records, w.parked(keyOf(i)))
		}
		probe := &asked{finding: charged}
		reconciler := w.reconciler(probe.probe)
		w.store.All(faulty.Refuse(errDown))
		if _, err := reconciler.Run(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("all shards down: %v", err)
		}
		w.store.Clear()
		w.store.On(faulty.QueuedRecords, 1, faulty.Refuse(errDown))
		w.store.On(faulty.Get, 1, faulty.Refuse(errDown))
		first, err := reconciler.Run(t.Context())
		if err != nil || first.Errors != 2 || first.Completed == 0 {
			t.Errorf("one shard and one read down: %+v, %v", first, err)
		}
		w.reconciled(reconciler, recovery.ReconcileReport{Completed: 12 - first.Completed}) // what met an error is not put off
		for _, r := range records {
			w.want(r, storage.StateCompleted, 201, 1)
		}
	})
}

// Killed at any call, before or after it, a reconciler leaves what the next one decides, once.
func TestReconcileKilledAtAnyCall(t *testing.T) {
	for _, finding := range []recovery.Finding{charged, recovery.Absent{}} {
		for _, call := range []faulty.Call{faulty.QueuedRecords, faulty.Get, faulty.Update} {
			for name, fault := range map[string]faulty.Fault{"before": faulty.LoseRequest(), "after": faulty.LoseReply()} {
				_, completes := finding.(recovery.Found)
				t.Run(string(call)+" "+name, func(t *testing.T) {
					bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
						r := w.parked("k")
						time.Sleep(absentAfter)
						probe := &asked{finding: finding}
						w.store.On(call, 1, faulty.Before(func() { w.store.All(faulty.Refuse(errDown)) })) // and no call after it
						w.store.On(call, 1, fault)
						_, _ = w.reconciler(probe.probe).Run(t.Context()) // killed
						w.store.Clear()
						if _, err := w.reconciler(probe.probe).Run(t.Context()); err != nil {
							t.Error(err)
						}
						if completes {
							w.want(r, storage.StateCompleted, 201, 1)
						} else {
							w.want(r, storage.StateFailedRetryable, 0, 2)
						}
					})
				})
			}
		}
	}
}

func TestReconcileCostsWhatIsUnknown(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		for i := range 200 {
			w.reserved(keyOf(i), func(r *storage.Record) { r.LeaseUntil = time.Now().Add(day) })
		}
		for i := range 3 {
			w.parked("unknown " + keyOf(i))
		}
		probe := &asked{finding: recovery.Unclear{Cause: errDown}}
		reconciler := w.reconciler(probe.probe)
		w.reconciled(reconciler, recovery.ReconcileReport{Undecided: 3})
		w.reconciled(reconciler, recovery.ReconcileReport{Waiting: 3})
		if lists, reads, writes := w.store.Count(faulty.QueuedRecords), w.store.Count(faulty.Get), w.store.Count(faulty.Update); lists != 2*w.mem.Shards() || reads != 3 || writes != 0 {
			t.Errorf("%d listings, %d reads, %d writes for 3 records in two runs", lists, reads, writes)
		}
	})
}

// peers.md H17: a record of another release is not judged.
func TestReconcileRefusesRecordsOfAnotherRelease(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		w.parked("k", func(r *storage.Record) { r.SchemaVersion++ })
		probe := &asked{finding: charged}
		w.reconciled(w.reconciler(probe.probe), recovery.ReconcileReport{Errors: 1})
		probe.want(t, 0)
	})
}

func TestConfigIsRefused(t *testing.T) {
	bubble(t, recovery.Config{}, func(t *testing.T, w *world) {
		probe := (&asked{}).probe
		for field, build := range map[string]func() error{
			"engine, store":              func() error { _, err := recovery.NewSweep(nil, w.store, w.cfg); return err },
			"probes":                     func() error { return w.built(map[string]recovery.Probe{operation: nil}, recovery.Config{}) },
			"Config.LongestRequest":      func() error { return w.built(nil, recovery.Config{LongestRequest: -1}) },
			"Config.ListingDelay":        func() error { return w.built(nil, recovery.Config{ListingDelay: -1}) },
			"Config.ClockSkew":           func() error { return w.built(nil, recovery.Config{ClockSkew: -1}) },
			"Config.ProbeTimeout":        func() error { return w.built(nil, recovery.Config{ProbeTimeout: -1}) },
			"Config.ProbeBackoffMin":     func() error { return w.built(nil, recovery.Config{ProbeBackoffMin: time.Millisecond}) },
			"Config.ProbeBackoffMax":     func() error { return w.built(nil, recovery.Config{ProbeBackoffMax: time.Second}) },
			"Config.StoreTimeout":        func() error { return w.built(nil, recovery.Config{StoreTimeout: -1}) },
			"Config.SettleMargin":        func() error { return w.built(nil, recovery.Config{SettleMargin: -1}) },
			"Config.SweepPage, SweepMax": func() error { return w.built(nil, recovery.Config{SweepPage: -1}) },
		} {
			var refused *idem.ConfigError
			if err := build(); !errors.As(err, &refused) || refused.Field != field {
				t.Errorf("%s: %v, want a ConfigError", field, err)
			}
		}
		if err := w.built(map[string]recovery.Probe{operation: probe}, recovery.Config{}); err != nil {
			t.Error(err)
		}
	})
}

func (w *world) built(probes map[string]recovery.Probe, cfg recovery.Config) error {
	_, err := recovery.NewReconciler(w.engine, w.store, probes, cfg)
	return err
}
