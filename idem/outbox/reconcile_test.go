package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// absentAfter is how long after its last lease a message's absence is proof in these worlds: FreezeAllowance + LongestRequest + ClockSkew.
const absentAfter = 122 * time.Second

// parked is a message whose only call may have happened; its lease ended 10 s after its commit.
func parked(m *storage.Message) {
	claimed(lease)(m)
	m.State, m.Attempts, m.LastOutcome = storage.MessageUnknown, 1, "ambiguous"
	m.SweepAt = m.LeaseUntil.Add(absentAfter)
}

func (w *world) reconciled(want outbox.Counts) {
	w.Helper()
	got, err := w.reconcile(w.Context())
	if err != nil || got != want {
		w.Errorf("reconcile: %+v, %v, want %+v", got, err, want)
	}
}

func (w *world) decided(id idem.MessageID, want outbox.Decision) {
	w.Helper()
	if got, err := w.runner.ReconcileMessage(w.Context(), id); err != nil || got != want {
		w.Errorf("reconcile: %s, %v, want %s", got, err, want)
	}
}

func TestReconcileJudgesEachFinding(t *testing.T) {
	undecided := outbox.Counts{Undecided: 1}
	for name, c := range map[string]struct {
		answer  string
		charged bool
		change  func(*storage.Message)
		topic   func(*outbox.Topic)
		want    outbox.Counts
		state   storage.MessageState
		record  storage.State
		status  int
		row     string
	}{
		"found":            {charged: true, want: outbox.Counts{Settled: 1}, state: storage.MessageDelivered, record: storage.StateCompleted, status: 201, row: "delivered"},
		"declined":         {answer: "declined", want: outbox.Counts{Settled: 1}, state: storage.MessageDeclined, record: storage.StateCompleted, status: 402, row: "declined"},
		"absent":           {want: outbox.Counts{Offered: 1}, state: storage.MessagePending, record: storage.StatePending, status: 202},
		"unclear":          {answer: "unclear", want: undecided, state: storage.MessageUnknown, record: storage.StatePending, status: 202},
		"panic":            {answer: "panic", want: undecided, state: storage.MessageUnknown, record: storage.StatePending, status: 202},
		"nothing at all":   {answer: "nil", want: undecided, state: storage.MessageUnknown, record: storage.StatePending, status: 202},
		"no evidence":      {answer: "no evidence", charged: true, want: undecided, state: storage.MessageUnknown, record: storage.StatePending, status: 202},
		"nobody to ask":    {topic: func(topic *outbox.Topic) { topic.Probe = nil }, want: outbox.Counts{Unasked: 1}, state: storage.MessageUnknown, record: storage.StatePending, status: 202},
		"not due":          {change: func(m *storage.Message) { m.SweepAt = noon.Add(time.Hour) }, state: storage.MessageUnknown, record: storage.StatePending, status: 202},
		"not unknown":      {change: func(m *storage.Message) { m.State = storage.MessageDead }, state: storage.MessageDead, record: storage.StatePending, status: 202},
		"another release":  {change: func(m *storage.Message) { m.Topic = "other.topic" }, want: outbox.Counts{Errors: 1, OtherRelease: 1}, state: storage.MessageUnknown, record: storage.StatePending, status: 202},
		"sealed for ever":  {change: func(m *storage.Message) { m.Sealed = true }, want: outbox.Counts{Dead: 1}, state: storage.MessageDead, record: storage.StatePending, status: 202},
		"found, no settle": {charged: true, topic: unsettling, want: outbox.Counts{Dead: 1}, state: storage.MessageDead, record: storage.StatePending, status: 202},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: c.topic})
			change := c.change
			if change == nil {
				change = func(*storage.Message) {}
			}
			id := w.accept(parked, change)
			charges := 0
			if c.charged {
				w.provider.charge(id)
				charges = 1
			}
			if c.answer != "" {
				w.provider.answers = []string{c.answer}
			}
			w.clock.Add(lease + absentAfter)
			w.reconciled(c.want)
			w.want(id, c.state, c.record, c.status, c.row, charges)
			if w.provider.called() != 0 {
				t.Error("the reconciler caused an effect")
			}
			resolved, failed := c.want.Settled+c.want.Offered, c.want.Unasked+c.want.Dead
			if w.logged("idempotency.reconcile.resolved") != resolved || w.logged("idempotency.reconcile.failed") != failed {
				t.Errorf("want %d resolved and %d failed:\n%s", resolved, failed, w.log)
			}
			if got := w.logged("outbox.dead"); got != c.want.Dead {
				t.Errorf("%d alarms of dead messages, want %d", got, c.want.Dead)
			}
			if again := (outbox.Counts{Errors: c.want.Errors, OtherRelease: c.want.OtherRelease}); c.want != again {
				w.reconciled(again)
			}
		})
	}
}

func unsettling(topic *outbox.Topic) {
	topic.Settle = func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
		return outbox.Settlement{}, errors.New("no such payment")
	}
}

// A provider without keys: the ambiguous call is probed and never repeated blindly.
func TestReconcileWithoutKeysChargesOnce(t *testing.T) {
	for name, call := range map[string]string{"reply lost": "lost", "topic panicked": "panic", "never arrived": "500 before"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: keyless})
			w.provider.script = []string{call}
			id := w.accept()
			w.deliver(id)
			if m := w.message(id); m.State != storage.MessageUnknown {
				t.Fatalf("message is %s", m.State)
			}
			for range 5 {
				w.deliver(id) // whatever wakes a worker
				w.clock.Add(10 * time.Second)
				w.reconciled(outbox.Counts{})
			}
			if w.provider.called() != 1 || w.provider.probed() != 0 {
				t.Fatalf("%d calls, %d probes before absence could be proven", w.provider.called(), w.provider.probed())
			}
			w.clock.Add(absentAfter - 40*time.Second)
			if _, err := w.reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.drain(time.Minute)
			w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
		})
	}
}

// A worker charges for longer than its lease; whoever looks meanwhile, sweep or reconciler, never answers for
// the record that nothing happened, and the worker's own settlement finds nothing to add.
func TestSlowWorkerBesideSweepAndReconciler(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept()
	w.provider.during = func() {
		w.clock.Add(lease + absentAfter)
		w.swept(outbox.Counts{Parked: 1})
		w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
		w.reconciled(outbox.Counts{Settled: 1})
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	}
	w.deliver(id)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	if w.logged("outbox.delivered") != 1 || w.logged("outbox.evidence_differs") != 0 {
		t.Errorf("want one settlement, and evidence that agrees:\n%s", w.log)
	}
}

// Redriven on day 3, when the provider has long forgotten the key, a message is asked about and not sent.
func TestRedriveOnDayThree(t *testing.T) {
	for name, charged := range map[string]bool{"charged then": true, "never charged": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept(parked)
			if charged {
				w.provider.charge(id)
			}
			w.provider.keyed = false // a second request would be a second charge
			w.clock.Add(3 * 24 * time.Hour)
			w.deliver(id)
			if w.provider.called() != 0 {
				t.Fatal("what is unknown was sent again")
			}
			if charged {
				w.reconciled(outbox.Counts{Settled: 1})
				w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
				return
			}
			// Proven absent, but too old to be wanted any more: given up, with nothing open.
			w.reconciled(outbox.Counts{Offered: 1})
			w.drain(time.Second)
			w.want(id, storage.MessageDead, storage.StateFailed, 502, "not_executed", 0)
		})
	}
}

// A probe that begins too early proves nothing, however long its answer takes; the zombie that lands after it is
// found later.
func TestZombieLandsAfterAnEarlyProbe(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked)
	w.clock.Add(lease + absentAfter - time.Millisecond)
	w.provider.probing = func() {
		w.provider.charge(id) // after the provider looked
		w.clock.Add(4 * time.Second)
	}
	w.decided(id, outbox.DecisionEarly)
	w.provider.probing = nil
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
	w.reconciled(outbox.Counts{Settled: 1})
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// Where keys are honoured, even a zombie that lands after absence was proven makes no second charge, and a
// worker's evidence that comes after it settles.
func TestZombieLandsAfterProvenAbsence(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	w.clock.Add(lease + absentAfter)
	w.reconciled(outbox.Counts{Offered: 1})
	w.provider.charge(id)
	w.drain(time.Second)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// A claim between probe and answer: the absence of an older epoch counts for nothing.
func TestReconcileIsFencedByTheEpochBeforeItsProbe(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked)
	w.clock.Add(lease + absentAfter)
	w.provider.probing = func() {
		w.provider.probing = nil
		w.reconciled(outbox.Counts{Offered: 1}) // another reconciler, faster
		w.provider.script = []string{"lost"}
		w.drain(time.Second) // and a worker, whose charge nobody saw
	}
	w.decided(id, outbox.DecisionNone)
	m := w.message(id)
	if m.State != storage.MessageUnknown || m.Epoch != 2 || m.OpenSince.IsZero() {
		t.Fatalf("%s, epoch %d, open since %v: the older absence was believed", m.State, m.Epoch, m.OpenSince)
	}
	w.clock.Add(lease + absentAfter)
	w.reconciled(outbox.Counts{Settled: 1})
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// Unclear for a day: few probes, ever further apart, then dead, its record still pending; late evidence settles it.
func TestReconcileUnclearUntilDead(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	w.provider.charge(id)
	for range 1000 {
		w.provider.answers = append(w.provider.answers, "unclear")
	}
	w.clock.Add(lease + absentAfter)
	var pauses []time.Duration
	for w.message(id).State == storage.MessageUnknown && len(pauses) < 1000 {
		w.reconciled(outbox.Counts{Undecided: 1})
		pause := w.message(id).SweepAt.Sub(w.clock.Now())
		if pause < time.Minute || pause > time.Hour {
			t.Fatalf("pause %v", pause)
		}
		pauses = append(pauses, pause)
		w.clock.Add(pause - time.Millisecond)
		w.reconciled(outbox.Counts{})
		if w.clock.Add(time.Millisecond); w.clock.Now().Sub(noon) >= 24*time.Hour+lease+absentAfter {
			break
		}
	}
	if n := len(pauses); n < 24 || n > 60 || pauses[n-1] < 30*time.Minute {
		t.Errorf("%d probes in a day, pauses %v", n, pauses)
	}
	w.reconciled(outbox.Counts{Dead: 1})
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 1)
	letters := w.queue.Letters()
	if len(letters) != 1 || letters[0].Message != id || !letters[0].Open || letters[0].Reason != "undecided for too long" {
		t.Errorf("dead letters %+v", letters)
	}
	if w.logged("outbox.dead") != 1 || w.logged("idempotency.reconcile.failed") != 1 || w.logged("idempotency.reconcile.scheduled") != len(pauses)+1 {
		t.Errorf("log:\n%s", w.log)
	}
}

// Nobody to ask: no busy loop, one reminder a day, unknown for as long as it takes.
func TestReconcileWithNobodyToAsk(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { topic.Probe = nil }})
	id := w.accept(parked)
	w.clock.Add(lease + absentAfter)
	for range 3 * 24 {
		if _, err := w.reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.clock.Add(time.Hour)
	}
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
	if got := w.logged("idempotency.reconcile.failed"); got != 3 {
		t.Errorf("%d reminders in 3 days", got)
	}
}

// The process dies before, or after, each call to the store, or hears nothing of it: the next run brings the message to
// the same end, with one charge.
func TestReconcileKilledAtEachCall(t *testing.T) {
	faults := map[string]faulty.Fault{"refused": faulty.Refuse(errDown), "request lost": faulty.LoseRequest(), "reply lost": faulty.LoseReply()}
	for _, charged := range []bool{true, false} {
		for _, call := range []faulty.Call{faulty.QueuedMessages, faulty.Message, faulty.UpdateMessage, faulty.Settle} {
			for kind, fault := range faults {
				t.Run(fmt.Sprintf("charged %v/%s %s", charged, call, kind), func(t *testing.T) {
					w := newWorld(t, options{topic: keyless})
					id := w.accept(parked)
					if charged {
						w.provider.charge(id)
					}
					w.clock.Add(lease + absentAfter)
					w.store.On(call, 1, faulty.Before(func() { w.store.All(faulty.Refuse(errDown)) })) // and no call after it
					w.store.On(call, 1, fault)
					_, _ = w.reconcile(t.Context()) // killed
					w.store.Clear()
					for range 5 {
						w.clock.Add(time.Minute)
						_, err := w.reconcile(t.Context())
						w.ok(err)
						_, err = w.sweep(t.Context())
						w.ok(err)
						w.drain(time.Minute)
					}
					w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
				})
			}
		}
	}
}

func TestReconcileGoesOnWhereItStopped(t *testing.T) {
	w := newWorld(t, options{store: memstore.Config{Shards: 3}, config: func(c *outbox.Config) { c.SweepPage, c.SweepMax = 2, 5 }})
	var ids []idem.MessageID
	for range 12 {
		ids = append(ids, w.accept(func(m *storage.Message) { parked(m); m.Topic = "other.topic" })) // always due
	}
	w.clock.Add(time.Hour)
	for run := range 3 {
		if got, err := w.reconcile(t.Context()); err != nil || got != (outbox.Counts{Errors: 5, OtherRelease: 5, Unfinished: true}) {
			t.Errorf("run %d: %+v, %v", run, got, err)
		}
	}
	for _, id := range ids {
		if !strings.Contains(w.log.String(), string(id)) {
			t.Errorf("%s was not looked at in 3 runs of 5", id)
		}
	}
}

// A deadline in the midst of a page: the next run lists that page again.
func TestReconcileStopsBeforeItsDeadlineAndTakesUpTheRest(t *testing.T) {
	w := newWorld(t, options{store: memstore.Config{Shards: 1}, config: func(c *outbox.Config) { c.SweepConcurrency = 1 }})
	ids := map[idem.MessageID]bool{w.accept(parked): true, w.accept(parked): true, w.accept(parked): true}
	w.clock.Add(lease + absentAfter)
	ctx, cancel := context.WithCancel(t.Context())
	w.provider.probing = cancel
	if got, err := w.reconcile(ctx); err != nil || got != (outbox.Counts{Offered: 1, Unfinished: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	w.provider.probing = nil
	late := w.accept(parked, func(m *storage.Message) { m.SweepAt = noon }) // before all that was listed
	w.reconciled(outbox.Counts{Offered: 3})
	for _, id := range w.queue.Take() {
		delete(ids, id)
	}
	if len(ids) > 0 || w.message(late).State != storage.MessagePending {
		t.Errorf("not offered: %v, the late one is %s", ids, w.message(late).State)
	}
	short, cancelShort := context.WithTimeout(t.Context(), time.Second)
	defer cancelShort()
	if got, err := w.reconcile(short); err != nil || got != (outbox.Counts{Unfinished: true}) {
		t.Errorf("a second left: %+v, %v", got, err)
	}
	id := w.accept(parked)
	if _, err := w.runner.ReconcileMessage(short, id); !errors.Is(err, outbox.ErrNoTime) {
		t.Errorf("a second left: %v, want ErrNoTime", err)
	}
}

// A probe that our own end cut short says nothing about the provider.
func TestReconcileCancelledDecidesNothing(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	w.clock.Add(48 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	w.provider.answers, w.provider.probing = []string{"unclear"}, cancel
	if got, err := w.runner.ReconcileMessage(ctx, id); got != outbox.DecisionNone || !errors.Is(err, context.Canceled) {
		t.Errorf("%s, %v", got, err)
	}
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
}

func TestReconcileCostsWhatIsUnknown(t *testing.T) {
	w := newWorld(t, options{})
	for range 200 {
		w.accept()
		w.accept(parked, func(m *storage.Message) { m.SweepAt = noon.Add(time.Hour) })
	}
	for range 3 {
		w.accept(parked)
	}
	w.clock.Add(lease + absentAfter)
	w.reconciled(outbox.Counts{Offered: 3})
	if lists, reads, writes := w.store.Count(faulty.QueuedMessages), w.store.Count(faulty.Message), w.store.Count(faulty.UpdateMessage); lists != w.inner.Shards() || reads != 3 || writes != 3 {
		t.Errorf("%d listings, %d reads, %d writes for 3 messages", lists, reads, writes)
	}
}

func TestReconcileAndTrouble(t *testing.T) {
	w := newWorld(t, options{wakes: deaf{}, store: memstore.Config{Shards: 2}})
	id := w.accept(parked)
	w.clock.Add(time.Hour)
	w.store.All(faulty.Refuse(errDown))
	if _, err := w.reconcile(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("store down: %v", err)
	}
	if _, err := w.runner.ReconcileMessage(t.Context(), id); !errors.Is(err, errDown) {
		t.Errorf("store down: %v", err)
	}
	w.store.Clear()
	w.decided(id+"0", outbox.DecisionNone) // no such message
	w.decided(id, outbox.DecisionOffered)  // a lost wake-up costs until the sweep
}

// Two reconcilers, two sweeps and workers at once, at a provider without keys: one charge each.
func TestReconcilersSweepsAndWorkersBesideEachOther(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	second, err := outbox.NewRunner(w.worker, nil, nil)
	w.ok(err)
	var ids []idem.MessageID
	for i := range 40 {
		change := parked
		if i%2 == 1 {
			change = claimed(lease) // a dead claim, which the sweep parks
		}
		ids = append(ids, w.accept(change))
		if i%4 < 2 {
			w.provider.charge(ids[i])
		}
	}
	w.clock.Add(lease + absentAfter + time.Minute)
	var group sync.WaitGroup
	for _, reconciler := range []*outbox.Runner{w.runner, second, second} {
		group.Go(func() {
			for range 3 {
				if _, err := reconciler.Reconcile(t.Context()); err != nil {
					t.Errorf("reconcile: %v", err)
				}
			}
		})
		group.Go(func() {
			for range 3 {
				if _, err := w.sweep(t.Context()); err != nil {
					t.Errorf("sweep: %v", err)
				}
			}
		})
		group.Go(func() {
			for range 3 {
				for _, id := range ids {
					if err := w.worker.Deliver(t.Context(), id); err != nil {
						t.Errorf("deliver: %v", err)
					}
				}
			}
		})
	}
	group.Wait()
	_, err = w.reconcile(t.Context())
	w.ok(err)
	w.drain(time.Minute)
	for _, id := range ids {
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	}
}
