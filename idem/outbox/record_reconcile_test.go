package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func TestReconcileCompletesWhatIsFound(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k", func(r *storage.Record) { r.Fingerprint = w.fingerprint() })
		probe := &asked{finding: executed201}
		reconciler := w.runner(probe.probe)
		w.reconciled(reconciler, outbox.Counts{Completed: 1})
		w.want(r, storage.StateCompleted, 201, 1)
		if result := w.request("k"); result.Outcome != idem.OutcomeReplayed || string(result.Response.Body) != "charged" || w.runs != 0 {
			t.Errorf("%s %s, %d runs", result.Outcome, result.Response.Body, w.runs)
		}
		w.reconciled(reconciler, outbox.Counts{})
		probe.want(t, 1)
	})
}

// What does not fit has happened all the same.
func TestReconcileCompletesWhatIsTooLarge(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k")
		probe := &asked{finding: outbox.Executed{Response: idem.Response{Status: 201, Body: make([]byte, 4<<20)}}}
		w.reconciled(w.runner(probe.probe), outbox.Counts{Completed: 1})
		w.want(r, storage.StateCompleted, 500, 1)
		if body := string(w.record(r.Key).Response.Body); !strings.Contains(body, header.CodeResponseNotKept) {
			t.Errorf("stored is %s", body)
		}
	})
}

// A probe that finds nothing proves nothing while a request of the holder's may be under way.
func TestAbsenceIsProvenByWaiting(t *testing.T) {
	bubble(t, outbox.Config{ListingDelay: 5 * time.Second}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k", func(r *storage.Record) { r.Fingerprint = w.fingerprint() })
		probe := &asked{finding: outbox.Absent{}}
		reconciler := w.runner(probe.probe)
		w.reconciled(reconciler, outbox.Counts{Undecided: 1}) // early
		time.Sleep(recordAbsentAfter + 5*time.Second - time.Millisecond)
		w.reconciled(reconciler, outbox.Counts{})
		if got, err := reconciler.ReconcileRecord(t.Context(), tenant, r.OperationID); got != outbox.DecisionEarly || err != nil {
			t.Errorf("asked a millisecond early: %s, %v", got, err)
		}
		w.want(r, storage.StateUnknown, 0, 1)
		time.Sleep(time.Millisecond)
		w.reconciled(reconciler, outbox.Counts{Freed: 1})
		w.want(r, storage.StateFailedRetryable, 0, 2)
		probe.want(t, 3)
		if result := w.request("k"); result.Outcome != idem.OutcomeExecuted || w.runs != 1 {
			t.Errorf("%s, %d runs; want executed once", result.Outcome, w.runs)
		}
	})
}

// What counts is when the question was put, not when its answer came.
func TestAnAnswerCoversWhatWasAsked(t *testing.T) {
	bubble(t, outbox.Config{CallTimeout: time.Minute, ClaimLease: 2 * time.Minute}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k")
		time.Sleep(recordAbsentAfter - time.Second)
		reconciler := w.runner(func(context.Context, storage.Record) outbox.Finding {
			time.Sleep(30 * time.Second)
			return outbox.Absent{}
		})
		w.reconciled(reconciler, outbox.Counts{Undecided: 1})
		w.want(r, storage.StateUnknown, 0, 1)
	})
}

// A record that stays undecided is asked about after about as long again as that has been in vain, whichever process asks,
// and moves in its queue with each question; a person is told after a day, once a day.
func TestAnUndecidedRecordIsAskedAboutLaterByAnyProcess(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k")
		probe := &asked{finding: outbox.Unclear{Cause: errDown}}
		began := time.Now()
		var at []time.Duration
		minutes := func(n int) {
			for range n {
				before := probe.n.Load()
				if _, err := w.runner(probe.probe).Reconcile(t.Context()); err != nil { // a process that has just begun
					t.Fatal(err)
				}
				if probe.n.Load() > before {
					at = append(at, time.Since(began))
				}
				time.Sleep(time.Minute)
			}
		}
		minutes(24 * 60)
		if len(at) < 24 || len(at) > 60 || at[0] != 0 || at[1] != 3*time.Minute { // absence is provable after 122 s
			t.Errorf("asked %d times on the first day, at %v", len(at), at)
		}
		for i := 2; i < len(at); i++ {
			if pause := at[i] - at[i-1]; pause < time.Minute || pause > time.Hour+time.Minute || pause > 2*at[i-1]+time.Minute {
				t.Errorf("asked at %v and %v", at[i-1], at[i])
			}
		}
		if n, _ := w.lines("idempotency.reconcile.failed"); n != 0 {
			t.Errorf("%d alarms on the first day", n)
		}
		minutes(2 * 24 * 60)
		if n, alarms := w.lines("idempotency.reconcile.failed"); n != 2 || alarms != 2 {
			t.Errorf("%d lines, %d alarms in three days; want 2", n, alarms)
		}
		if writes, moves := w.store.Count(faulty.Update), w.store.Count(faulty.Postpone); writes != 0 || int64(moves) != probe.n.Load() {
			t.Errorf("%d writes, moved %d times, asked %d times in three days", writes, moves, probe.n.Load())
		}
		w.want(r, storage.StateUnknown, 0, 1)
		if now := w.record(r.Key); now.Revision != r.Revision {
			t.Error("what was only put off has another revision")
		}
	})
}

func TestReconcileWithoutAProbeTellsAPersonOnceADay(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k")
		w.reconciled(w.runner(nil), outbox.Counts{Unasked: 1})
		w.reconciled(w.runner(nil), outbox.Counts{})
		for range 2*24*60 - 1 { // two days, minute by minute, by processes that have just begun
			time.Sleep(time.Minute)
			if _, err := w.runner(nil).Reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n, alarms := w.lines("idempotency.reconcile.failed"); n != 2 || alarms != 2 {
			t.Errorf("%d lines, %d alarms in two days; want 2", n, alarms)
		}
		w.want(r, storage.StateUnknown, 0, 1)
		if moves := w.store.Count(faulty.Postpone); moves > 2*24+2 {
			t.Errorf("moved %d times in two days", moves)
		}
		probe := &asked{finding: executed201} // a release that knows whom to ask
		for range 61 {
			time.Sleep(time.Minute)
			if _, err := w.runner(probe.probe).Reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.want(r, storage.StateCompleted, 201, 1)
	})
}

// A record that comes late to the queue, because nothing swept for days, is asked about at once, and told of at once where
// nobody can be asked.
func TestReconcileTakesUpAtOnceWhatIsNew(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		probe := &asked{finding: executed201}
		w.reserved("k")
		time.Sleep(3 * day)
		w.swept(w.runner(nil), outbox.Counts{Parked: 1})
		w.reconciled(w.runner(nil), outbox.Counts{Unasked: 1})
		if _, alarms := w.lines("idempotency.reconcile.failed"); alarms != 1 {
			t.Errorf("%d alarms, want one", alarms)
		}
		time.Sleep(time.Hour)
		w.reconciled(w.runner(probe.probe), outbox.Counts{Completed: 1})
	})
}

// A move whose reply is lost has happened; one that was lost itself is made at the next run, which asks again.
func TestALostMoveIsMadeAtTheNextRun(t *testing.T) {
	for name, c := range map[string]struct {
		fault faulty.Fault
		again outbox.Counts
	}{
		"reply lost":   {faulty.LoseReply(), outbox.Counts{}},
		"request lost": {faulty.LoseRequest(), outbox.Counts{Undecided: 1}},
		"contention":   {faulty.Refuse(storage.ErrContention), outbox.Counts{Undecided: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
				r := w.parked("k")
				time.Sleep(recordAbsentAfter)
				runner := w.runner((&asked{finding: outbox.Unclear{Cause: errDown}}).probe)
				w.store.On(faulty.Postpone, 1, c.fault)
				w.reconciled(runner, outbox.Counts{Errors: 1})
				w.reconciled(runner, c.again)
				w.reconciled(runner, outbox.Counts{})
				w.want(r, storage.StateUnknown, 0, 1)
			})
		})
	}
}

// Two that ask at once both put off the next question; one that is late by an hour only makes somebody look earlier.
func TestTwoThatAskAtOncePutOffTheSameRecord(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k")
		time.Sleep(recordAbsentAfter)
		unclear := &asked{finding: outbox.Unclear{Cause: errDown}}
		w.store.On(faulty.Postpone, 1, paused(time.Hour, func() { w.reconciled(w.runner(unclear.probe), outbox.Counts{Undecided: 1}) }))
		w.reconciled(w.runner(unclear.probe), outbox.Counts{Undecided: 1})
		w.reconciled(w.runner((&asked{finding: executed201}).probe), outbox.Counts{Completed: 1})
		w.want(r, storage.StateCompleted, 201, 1)
		unclear.want(t, 2)
	})
}

// What was decided while the question was put off, or while its write was under way, stays as it is.
func TestAMoveChangesNothingThatWasDecidedMeanwhile(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k", func(r *storage.Record) { r.Fingerprint = w.fingerprint() })
		time.Sleep(recordAbsentAfter)
		w.store.On(faulty.Postpone, 1, paused(time.Hour, func() {
			w.reconciled(w.runner((&asked{finding: outbox.Absent{}}).probe), outbox.Counts{Freed: 1})
			if result := w.request("k"); result.Outcome != idem.OutcomeExecuted {
				t.Errorf("%s, want executed", result.Outcome)
			}
		}))
		w.reconciled(w.runner((&asked{finding: outbox.Unclear{Cause: errDown}}).probe), outbox.Counts{Skipped: 1})
		w.want(r, storage.StateCompleted, 201, 4)
		if now := w.record(r.Key); !now.LookAt.IsZero() {
			t.Errorf("a completed record is looked at %v", now.LookAt)
		}
	})
}

func TestReconcileUnreasonableProbes(t *testing.T) {
	for name, probe := range map[string]outbox.Probe{
		"panic":     func(context.Context, storage.Record) outbox.Finding { panic("a bug") },
		"nil":       func(context.Context, storage.Record) outbox.Finding { return nil },
		"no status": func(context.Context, storage.Record) outbox.Finding { return outbox.Executed{} },
		"too much of it": func(context.Context, storage.Record) outbox.Finding {
			return outbox.Executed{Response: idem.Response{Status: 600}}
		},
		"over time": func(ctx context.Context, _ storage.Record) outbox.Finding {
			<-ctx.Done()
			return outbox.Unclear{Cause: ctx.Err()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
				r := w.parked("k")
				time.Sleep(recordAbsentAfter)
				w.reconciled(w.runner(probe), outbox.Counts{Undecided: 1})
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
	for name, finding := range map[string]outbox.Finding{"found": executed201, "absent": outbox.Absent{}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
				r := w.parked("k")
				time.Sleep(recordAbsentAfter)
				reconciler := w.runner(func(ctx context.Context, r storage.Record) outbox.Finding {
					now, late := time.Now(), r
					late.State, late.Response, late.Revision = storage.StateCompleted, idem.Response{Status: 200}, "AAAAAAAAAAAAAAAAAAAAAQ"
					late.LeaseUntil, late.DoneAt, late.ExpiresAt, late.FreeAt = time.Time{}, now, now.Add(r.Retention), now.Add(r.Retention)
					w.ok(w.mem.Update(ctx, late, storage.FenceOf(r)))
					return finding
				})
				w.reconciled(reconciler, outbox.Counts{Skipped: 1})
				w.want(r, storage.StateCompleted, 200, 1)
			})
		})
	}
}

func TestReconcileIsTheTenantsOwn(t *testing.T) { // I5
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		r, other := w.parked("k"), w.parked("l")
		probe := &asked{finding: executed201}
		reconciler := w.runner(probe.probe)
		for _, c := range []struct {
			tenant string
			id     idem.OperationID
		}{{"u", r.OperationID}, {tenant, "op_nonsense"}, {tenant, reserved(t, "k", time.Now()).OperationID}} {
			if got, err := reconciler.ReconcileRecord(t.Context(), c.tenant, c.id); got != outbox.DecisionNone || err != nil {
				t.Errorf("%s %s: %s, %v", c.tenant, c.id, got, err)
			}
		}
		probe.want(t, 0)
		if got, err := reconciler.ReconcileRecord(t.Context(), tenant, r.OperationID); got != outbox.DecisionCompleted || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		w.want(other, storage.StateUnknown, 0, 1)
	})
}

func TestRecordsReconcileGoesOnWhereItStopped(t *testing.T) {
	bubble(t, outbox.Config{SweepPage: 2, SweepMax: 5}, func(t *testing.T, w *recordWorld) {
		for i := range 12 {
			w.parked(keyOf(i))
		}
		probe := &asked{finding: outbox.Unclear{Cause: errDown}}
		reconciler := w.runner(probe.probe)
		w.reconciled(reconciler, outbox.Counts{Undecided: 5, Unfinished: true})
		short, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		if got, err := reconciler.Reconcile(short); err != nil || got.Records != (outbox.Counts{Unfinished: true}) {
			t.Errorf("no time for a probe: %+v, %v", got, err)
		}
		w.reconciled(reconciler, outbox.Counts{Undecided: 5, Unfinished: true})
		w.reconciled(reconciler, outbox.Counts{Undecided: 2})
		w.reconciled(reconciler, outbox.Counts{})
		probe.want(t, 12)
	})
}

// A probe that our own end cut short says nothing, and is asked again.
func TestRecordsReconcileCancelledDecidesNothing(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		w.parked("k")
		ctx, cancel := context.WithCancel(t.Context())
		probe := &asked{finding: executed201}
		reconciler := w.runner(func(asking context.Context, r storage.Record) outbox.Finding {
			if ctx.Err() == nil {
				cancel()
				return outbox.Unclear{Cause: asking.Err()}
			}
			return probe.probe(asking, r)
		})
		if got, err := reconciler.Reconcile(ctx); err != nil || got.Records.Errors != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		w.reconciled(reconciler, outbox.Counts{Completed: 1})
		second := w.parked("l")
		short, cancelShort := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancelShort()
		if _, err := reconciler.ReconcileRecord(short, tenant, second.OperationID); !errors.Is(err, outbox.ErrNoTime) {
			t.Errorf("no time: %v, want ErrNoTime", err)
		}
	})
}

func TestRecordsReconcileAndTrouble(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		var records []storage.Record
		for i := range 12 {
			records = append(records, w.parked(keyOf(i)))
		}
		probe := &asked{finding: executed201}
		reconciler := w.runner(probe.probe)
		w.store.All(faulty.Refuse(errDown))
		if _, err := reconciler.Reconcile(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("all shards down: %v", err)
		}
		w.store.Clear()
		w.store.On(faulty.QueuedRecords, 1, faulty.Refuse(errDown))
		w.store.On(faulty.Get, 1, faulty.Refuse(errDown))
		first, err := reconciler.Reconcile(t.Context())
		if err != nil || first.Records.Errors != 2 || first.Records.Completed == 0 {
			t.Errorf("one shard and one read down: %+v, %v", first, err)
		}
		w.reconciled(reconciler, outbox.Counts{Completed: 12 - first.Records.Completed}) // what met an error is not put off
		for _, r := range records {
			w.want(r, storage.StateCompleted, 201, 1)
		}
	})
}

// Killed at any call, before or after it, a reconciler leaves what the next one decides, once.
func TestReconcileKilledAtAnyCall(t *testing.T) {
	for _, finding := range []outbox.Finding{executed201, outbox.Absent{}} {
		for _, call := range []faulty.Call{faulty.QueuedRecords, faulty.Get, faulty.Update} {
			for name, fault := range map[string]faulty.Fault{"before": faulty.LoseRequest(), "after": faulty.LoseReply()} {
				_, completes := finding.(outbox.Executed)
				t.Run(string(call)+" "+name, func(t *testing.T) {
					bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
						r := w.parked("k")
						time.Sleep(recordAbsentAfter)
						probe := &asked{finding: finding}
						w.store.On(call, 1, faulty.Before(func() { w.store.All(faulty.Refuse(errDown)) })) // and no call after it
						w.store.On(call, 1, fault)
						_, _ = w.runner(probe.probe).Reconcile(t.Context()) // killed
						w.store.Clear()
						if _, err := w.runner(probe.probe).Reconcile(t.Context()); err != nil {
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

func TestRecordsReconcileCostsWhatIsUnknown(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		for i := range 200 {
			w.reserved(keyOf(i), func(r *storage.Record) { r.LeaseUntil = time.Now().Add(day) })
		}
		for i := range 3 {
			w.parked("unknown " + keyOf(i))
		}
		probe := &asked{finding: outbox.Unclear{Cause: errDown}}
		reconciler := w.runner(probe.probe)
		w.reconciled(reconciler, outbox.Counts{Undecided: 3})
		w.reconciled(reconciler, outbox.Counts{})
		if lists, reads, writes := w.store.Count(faulty.QueuedRecords), w.store.Count(faulty.Get), w.store.Count(faulty.Postpone); lists != 2*w.mem.Shards() || reads != 3 || writes != 3 {
			t.Errorf("%d listings, %d reads, %d writes for 3 records in two runs", lists, reads, writes)
		}
	})
}

// A record of another release, or a damaged one, is not judged: nothing is asked or written, and a person is told at each run.
func TestARecordThatCantBeJudgedIsAnAlarm(t *testing.T) {
	later := func(r *storage.Record) { r.SchemaVersion++ }
	t.Run("unknown", func(t *testing.T) {
		bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
			r := w.parked("k", later)
			probe := &asked{finding: executed201}
			for run := range 2 {
				w.reconciled(w.runner(probe.probe), outbox.Counts{Errors: 1, OtherRelease: 1})
				w.toldUnreadable(r, run+1)
			}
			w.leftAlone(r)
			probe.want(t, 0)
		})
	})
	t.Run("in progress", func(t *testing.T) {
		bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
			r := w.reserved("k", later)
			time.Sleep(lease + skew)
			w.swept(w.runner(nil), outbox.Counts{Errors: 1, OtherRelease: 1})
			w.toldUnreadable(r, 1)
			w.leftAlone(r)
		})
	})
	t.Run("malformed", func(t *testing.T) {
		bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
			r := w.parked("k")
			probe := &asked{finding: executed201}
			w.store.On(faulty.Get, 1, faulty.Refuse(&storage.MalformedRecordError{Key: r.Key, Cause: errors.New("malformed attribute ep")}))
			w.reconciled(w.runner(probe.probe), outbox.Counts{Errors: 1})
			w.toldUnreadable(r, 1)
			w.leftAlone(r)
			probe.want(t, 0)
		})
	})
	t.Run("without an operation id", func(t *testing.T) {
		bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
			r := w.parked("k")
			r.OperationID = ""
			inner := staleIndex{Store: w.mem, refs: []storage.RecordRef{{Key: r.Key, Tenant: tenant, At: time.Now()}}}
			w.reconciled(w.runnerOn(inner, map[string]outbox.Probe{operation: (&asked{}).probe}), outbox.Counts{Errors: 1})
			w.toldUnreadable(r, 1)
			w.leftAlone(r)
		})
	})
}

// toldUnreadable demands so many alarms about a record that can't be judged, with its names, and no other line about an error.
func (w *recordWorld) toldUnreadable(r storage.Record, n int) {
	w.Helper()
	if lines, alarms := w.lines("idempotency.record_unreadable"); lines != n || alarms != n {
		w.Errorf("%d lines, %d alarms; want %d", lines, alarms, n)
	}
	for _, named := range []string{`"operation_id":"` + string(r.OperationID) + `"`, `"tenant":"t"`, `"key_hash":"` + string(r.Key) + `"`} {
		if strings.Count(w.log.String(), named) < n {
			w.Errorf("the lines do not say %s", named)
		}
	}
	for _, other := range []string{"idempotency.reconcile_failed", "idempotency.sweep_failed"} {
		if lines, _ := w.lines(other); lines != 0 {
			w.Errorf("%d lines %s besides", lines, other)
		}
	}
}

// leftAlone demands that nothing was written.
func (w *recordWorld) leftAlone(r storage.Record) {
	w.Helper()
	if now := w.record(r.Key); now.State != r.State || now.Revision != r.Revision || !now.LookAt.Equal(r.LookAt) {
		w.Errorf("the record is %s now, to be looked at %v", now.State, now.LookAt)
	}
	if n := w.store.Count(faulty.Update) + w.store.Count(faulty.Postpone); n != 0 {
		w.Errorf("%d writes", n)
	}
}

// What was found can't be written: not now, and not at the next run. It is asked about as rarely as what nobody can decide,
// each error counts, and a person is told after a day, once a day.
func TestAnAnswerThatTheStoreRefusesForGoodIsPutOff(t *testing.T) {
	for name, c := range map[string]struct {
		finding outbox.Finding
		refused error
	}{
		"found, too large":    {executed201, storage.ErrResponseTooLarge},
		"found, not valid":    {executed201, errors.New("ValidationException: an attribute is not valid")},
		"absent, not allowed": {outbox.Absent{}, errors.New("AccessDeniedException: not authorized")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
				r := w.parked("k")
				time.Sleep(recordAbsentAfter)
				w.refuses(faulty.Update, c.refused)
				probe := &asked{finding: c.finding}
				failed := 0
				minutes := outbox.Sized(1, 10)
				for range 2 * 24 * 60 / minutes { // two days, minute by minute, by processes that have just begun
					did, err := w.runner(probe.probe).Reconcile(t.Context())
					w.ok(err)
					failed += did.Records.Errors
					time.Sleep(time.Duration(minutes) * time.Minute)
				}
				times := int(probe.n.Load())
				if times < 40 || times > 120 {
					t.Errorf("asked %d times in two days", times)
				}
				if lines, _ := w.lines("idempotency.reconcile_failed"); failed != times || lines != times {
					t.Errorf("asked %d times, counted %d errors, told of %d", times, failed, lines)
				}
				if n, alarms := w.lines("idempotency.reconcile.failed"); n != 1 || alarms != 1 {
					t.Errorf("%d lines, %d alarms in two days; want one", n, alarms)
				}
				w.want(r, storage.StateUnknown, 0, 1)
				w.store.Clear() // mended
				if _, err := w.runner((&asked{finding: executed201}).probe).ReconcileRecord(t.Context(), tenant, r.OperationID); err != nil {
					t.Error(err)
				}
				w.want(r, storage.StateCompleted, 201, 1)
			})
		})
	}
}

// refuses has the store refuse each such call until it is cleared.
func (w *recordWorld) refuses(call faulty.Call, err error) {
	for n := range 1000 {
		w.store.On(call, n+1, faulty.Refuse(err))
	}
}

// Whoever asks for one record hears why its answer could not be written.
func TestAnOperatorHearsThatTheAnswerWasRefused(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		r := w.parked("k")
		w.refuses(faulty.Update, storage.ErrResponseTooLarge)
		w.refuses(faulty.Postpone, errDown)
		_, err := w.runner((&asked{finding: executed201}).probe).ReconcileRecord(t.Context(), tenant, r.OperationID)
		if !errors.Is(err, storage.ErrResponseTooLarge) || !errors.Is(err, errDown) {
			t.Errorf("%v, want both errors", err)
		}
	})
}

// Trouble that passes puts nothing off: what was found is written at the next run.
func TestAnAnswerWhoseWriteMeetsPassingTroubleIsNotPutOff(t *testing.T) {
	for name, trouble := range map[string]error{
		"contention": storage.ErrContention, "throttle": storage.ErrThrottled, "no reply": &storage.OutcomeUnknownError{Cause: errDown},
		"breaker open": &storage.NotAskedError{RetryAfter: time.Second}, "too late": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
				r := w.parked("k")
				time.Sleep(recordAbsentAfter)
				w.refuses(faulty.Update, trouble)
				runner := w.runner((&asked{finding: executed201}).probe)
				w.reconciled(runner, outbox.Counts{Errors: 1})
				w.store.Clear()
				w.reconciled(runner, outbox.Counts{Completed: 1})
				w.want(r, storage.StateCompleted, 201, 1)
				if n := w.store.Count(faulty.Postpone); n != 0 {
					t.Errorf("put off %d times", n)
				}
			})
		})
	}
}

// An operation that declares a probe and has none would show it only once a record is unknown, and so would a probe by a name that no
// record bears.
func TestAProbeThatIsPromisedIsDemanded(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		_, err := w.engine.Register(idem.Operation{Name: "orders.import", RenamedFrom: "orders.load", Kind: idem.KindWrapped, Probed: true, Policy: idem.IETF()})
		w.ok(err)
		probe := (&asked{}).probe
		for name, given := range map[string]map[string]outbox.Probe{
			"orders.load":   {operation: probe},
			"orders.import": {"orders.import": probe, "orders.load": probe},
		} {
			var refused *idem.ConfigError
			if err := w.built(given, outbox.Config{}); !errors.As(err, &refused) || refused.Field != "probes" || refused.Value != name {
				t.Errorf("%v, want %s to be refused", err, name)
			}
		}
		w.ok(w.built(map[string]outbox.Probe{"orders.load": probe}, outbox.Config{}))
	})
}

func TestConfigIsRefused(t *testing.T) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		probe := (&asked{}).probe
		for field, build := range map[string]func() error{
			"worker": func() error { _, err := outbox.NewRunner(nil, w.engine, nil); return err },
			"engine": func() error {
				_, err := newRunner(w.store, nil, map[string]outbox.Probe{operation: probe}, w.cfg)
				return err
			},
			"probes":                     func() error { return w.built(map[string]outbox.Probe{operation: nil}, outbox.Config{}) },
			"Config.LongestRequest":      func() error { return w.built(nil, outbox.Config{LongestRequest: -1}) },
			"Config.ListingDelay":        func() error { return w.built(nil, outbox.Config{ListingDelay: -1}) },
			"Config.ClockSkew":           func() error { return w.built(nil, outbox.Config{ClockSkew: -1}) },
			"Config.CallTimeout":         func() error { return w.built(nil, outbox.Config{CallTimeout: -1}) },
			"Config.ProbeBackoffMin":     func() error { return w.built(nil, outbox.Config{ProbeBackoffMin: -1}) },
			"Config.ProbeBackoffMax":     func() error { return w.built(nil, outbox.Config{ProbeBackoffMax: time.Second}) },
			"Config.StoreTimeout":        func() error { return w.built(nil, outbox.Config{StoreTimeout: -1}) },
			"Config.SettleMargin":        func() error { return w.built(nil, outbox.Config{SettleMargin: -1}) },
			"Config.SweepPage, SweepMax": func() error { return w.built(nil, outbox.Config{SweepPage: -1}) },
		} {
			var refused *idem.ConfigError
			if err := build(); !errors.As(err, &refused) || refused.Field != field {
				t.Errorf("%s: %v, want a ConfigError", field, err)
			}
		}
		if err := w.built(map[string]outbox.Probe{operation: probe}, outbox.Config{}); err != nil {
			t.Error(err)
		}
	})
}

func (w *recordWorld) built(probes map[string]outbox.Probe, cfg outbox.Config) error {
	_, err := newRunner(w.store, w.engine, probes, cfg)
	return err
}
