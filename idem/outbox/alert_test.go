package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// dying are the ways in which a message comes before an operator.
var dying = map[string]struct {
	options options
	change  func(*storage.Message)
	script  []string
	told    outbox.Outcome // by a webhook, before anybody has called
	state   storage.State
	reason  string
}{
	"attempts over, a call open":       {options: options{topic: unprobed}, script: []string{"500 before", "500 before", "500 before"}, state: storage.StatePending, reason: "attempts over"},
	"attempts over, nothing open":      {script: []string{"429", "429", "429"}, state: storage.StateFailed, reason: "attempts over"},
	"refused, and a call is open":      {options: options{topic: unprobed}, script: []string{"500 before", "409"}, state: storage.StatePending, reason: "refused"},
	"its answer can't be settled":      {options: options{topic: settling(unsettled)}, state: storage.StatePending, reason: "settlement failed"},
	"evidence can't be settled":        {options: options{topic: settling(unsettled)}, told: outbox.Declined{Reference: "no"}, state: storage.StatePending, reason: "settlement failed"},
	"nothing happened, unsettled":      {options: options{topic: settling(unsettled)}, script: []string{"400"}, state: storage.StatePending, reason: "settlement failed"},
	"refused, and nothing is open":     {script: []string{"400"}, state: storage.StateFailed, reason: "refused"},
	"an undoing is refused":            {change: func(m *storage.Message) { m.Undoes = true }, script: []string{"400"}, state: storage.StatePending, reason: "refused"},
	"beside what is complete, refused": {change: func(m *storage.Message) { m.Detached = true }, script: []string{"400"}, state: storage.StateCompleted, reason: "refused"},
}

func unsettled(storage.Message, outbox.Outcome, *outbox.Settlement) error {
	return errors.New("no answer")
}

// deceased is a world whose message has died, by a write whose reply was lost where lost, and with a store that took no further
// tries.
func deceased(t *testing.T, name string, lost bool) (*world, idem.MessageID) {
	c := dying[name]
	w := newWorld(t, c.options)
	w.provider.script = c.script
	if c.change == nil {
		c.change = func(*storage.Message) {}
	}
	id := w.accept(c.change)
	if lost {
		w.loseDeath(id)
	}
	if c.told == nil {
		_ = w.worker.Deliver(t.Context(), id) // where the reply is lost this is trouble with the store
	} else {
		_, _ = w.worker.Settle(t.Context(), id, c.told)
	}
	for range 5 {
		w.clock.Add(2 * time.Minute)
		for _, id := range w.queue.Take() {
			_ = w.worker.Deliver(t.Context(), id)
		}
	}
	w.store.Clear()
	if m, r := w.message(id), w.record(id); m.State != storage.MessageDead || r.State != c.state {
		t.Fatalf("message %s, record %s; want dead and %s", m.State, r.State, c.state)
	}
	return w, id
}

// What is dead is told of when it dies: once, with a dead letter, whatever it died of.
func TestDeadIsToldOfAtOnce(t *testing.T) {
	for name, c := range dying {
		t.Run(name, func(t *testing.T) {
			w, _ := deceased(t, name, false)
			w.wantAlerts(1, c.reason)
			did, err := w.sweep(t.Context())
			w.ok(err)
			if did != (outbox.Counts{}) {
				t.Errorf("the next sweep: %+v", did)
			}
			w.wantAlerts(1, c.reason)
		})
	}
}

// The write that makes a message dead lands, its reply is lost, and nothing more can be sent until its time is over: the next
// sweep tells the operator.
func TestDeadIsToldOfThoughTheReplyIsLost(t *testing.T) {
	for name, c := range dying {
		t.Run(name, func(t *testing.T) {
			w, id := deceased(t, name, true)
			w.wantAlerts(0, "")
			w.deliver(id)
			w.wantAlerts(0, "")
			for range 2 {
				did, err := w.sweep(t.Context())
				w.ok(err)
				if want := (outbox.Counts{Reminded: 1}); did != want && w.logged("outbox.dead") == 0 {
					t.Errorf("sweep: %+v, want %+v", did, want)
				}
			}
			w.wantAlerts(1, c.reason)
		})
	}
}

// An operator is reminded of what is dead once a day, also where nobody knows its topic any more; each time before the row says
// that they were. Only what failed with its operation is told of once.
func TestDeadIsToldOfEveryDay(t *testing.T) {
	for name, c := range dying {
		if c.state != storage.StateFailed {
			t.Run(name, func(t *testing.T) { isToldOfEveryDay(t, name, c.reason) })
		}
	}
}

func isToldOfEveryDay(t *testing.T, name, reason string) {
	w, id := deceased(t, name, false)
	for _, step := range []struct {
		wait   time.Duration
		alerts int
	}{{23 * time.Hour, 1}, {time.Hour + time.Minute, 2}, {23 * time.Hour, 2}, {2 * time.Hour, 3}} {
		w.clock.Add(step.wait)
		_, err := w.sweep(t.Context())
		w.ok(err)
		w.wantAlerts(step.alerts, reason)
	}
	for n := range 100 {
		w.store.On(faulty.PostponeMessage, n+1, faulty.Refuse(storage.ErrContention))
	}
	w.clock.Add(25 * time.Hour)
	did, err := w.sweep(t.Context())
	w.ok(err)
	if did.Errors != 1 || did.Reminded != 0 {
		t.Errorf("sweep without its write: %+v", did)
	}
	w.wantAlerts(4, reason)
	w.store.Clear()
	w.rewrite(id, func(m *storage.Message) { m.Topic = "retired" })
	did, err = w.sweep(t.Context())
	w.ok(err)
	if did.Reminded != 1 {
		t.Errorf("sweep of a retired topic's: %+v", did)
	}
	unknown := reason == "attempts over" // its topic alone knew when they are over
	if text := w.log.String(); unknown && !strings.Contains(text, `"reason":"topic is not registered"`) || w.logged("outbox.unknown_topic") != 0 {
		t.Error(text)
	}
}

// A day after the last time an operator is told of an unknown message whose provider can't be asked: before the row says so.
func TestUnaskedIsToldOfBeforeItIsPostponed(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }})
	w.provider.script = []string{"500 before"}
	id := w.accept()
	w.deliver(id)
	w.clock.Add(time.Hour)
	for n := range 100 {
		w.store.On(faulty.PostponeMessage, n+1, faulty.Refuse(storage.ErrContention))
	}
	for round := range 2 {
		if _, err := w.reconcile(t.Context()); err != nil || w.logged("idempotency.reconcile.failed") != round+1 {
			t.Errorf("round %d: %d alarms, %v", round, w.logged("idempotency.reconcile.failed"), err)
		}
		w.store.Clear()
	}
	if did, err := w.reconcile(t.Context()); err != nil || did != (outbox.Counts{}) || w.message(id).State != storage.MessageUnknown {
		t.Errorf("told twice a day: %+v, %v", did, err)
	}
}

// loseDeath has the write that makes the message dead land without a reply, and everything after it be throttled.
func (w *world) loseDeath(id idem.MessageID) {
	died := false
	w.store.All(func(ctx context.Context, run func(context.Context) error) error {
		if died {
			return storage.ErrThrottled
		}
		err := run(ctx)
		if m, _ := w.inner.Message(ctx, id); m != nil && m.State == storage.MessageDead {
			died, err = true, &storage.OutcomeUnknownError{Cause: errDied}
		}
		return err
	})
}

// What failed with its operation is told of once: its client has the answer, and nothing is left to decide.
func TestDeadWithItsAnswerIsToldOfOnce(t *testing.T) {
	for _, name := range []string{"attempts over, nothing open", "refused, and nothing is open"} {
		t.Run(name, func(t *testing.T) {
			w, id := deceased(t, name, true)
			for range 3 {
				_, err := w.sweep(t.Context())
				w.ok(err)
				w.clock.Add(300 * 24 * time.Hour)
			}
			w.wantAlerts(1, dying[name].reason)
			var listed []storage.MessageRef
			for shard := range w.inner.Shards() {
				refs, _, err := w.inner.QueuedMessages(t.Context(), storage.QueueDead, shard, w.clock.Now().AddDate(1000, 0, 0), 10, "")
				w.ok(err)
				listed = append(listed, refs...)
			}
			if len(listed) != 1 || listed[0].ID != id {
				t.Errorf("the operator's list: %+v", listed)
			}
		})
	}
}

// hanging is a dead-letter queue that does not answer.
type hanging struct{}

func (hanging) Bury(ctx context.Context, _ outbox.DeadLetter) error {
	<-ctx.Done()
	return ctx.Err()
}

// A dead-letter queue that hangs holds up no message that is due, and its dead message is told of by the log.
func TestDeadLettersThatHangHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id := deceased(t, "attempts over, a call open", true)
		short := outbox.Config{Now: w.clock.Now, Random: w.mint.Random, Pause: w.clock.Pause, StoreTimeout: 500 * time.Millisecond, Logger: slog.New(slog.NewJSONHandler(w.log, nil))}
		topics, err := outbox.NewTopics(short, outbox.Topic{Name: topicName, Call: w.provider.call, Settle: settle, AttemptsMax: 3})
		w.ok(err)
		worker, err := outbox.NewWorker(w.store, topics, w.queue, hanging{})
		w.ok(err)
		runner, err := outbox.NewRunner(worker, nil, nil)
		w.ok(err)
		w.accept()
		w.clock.Add(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		did, err := runner.Sweep(ctx)
		w.ok(err)
		if did.Messages.Offered != 1 || did.Messages.Reminded != 1 || w.logged("outbox.dead") != 1 || w.logged("outbox.dead_letter_lost") != 1 {
			t.Errorf("%+v, %d alarms, %d letters lost", did.Messages, w.logged("outbox.dead"), w.logged("outbox.dead_letter_lost"))
		}
		if m := w.message(id); !m.SweepAt.After(w.clock.Now()) {
			t.Errorf("to be told of again at %v", m.SweepAt)
		}
	})
}

// A decline of which nobody knows the attempt is kept beside what the message is: when that dies of something else it is told so,
// and a redrive does not settle it.
func TestWeakDeclineDiesOfWhatItDiedOf(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	w.provider.script = []string{"429", "lost"}
	id := w.accept()
	w.deliver(id)
	w.clock.Add(2 * time.Minute)
	w.deliver(id)
	if decision, err := w.worker.Settle(t.Context(), id, outbox.Declined{Reference: "no"}); err != nil || decision != outbox.DecisionKept {
		t.Fatalf("%s, %v", decision, err)
	}
	for w.message(id).State == storage.MessageUnknown {
		w.provider.answers = append(w.provider.answers, "unclear")
		w.clock.Add(time.Hour)
		_, err := w.reconcile(t.Context())
		w.ok(err)
	}
	w.wantAlerts(1, "undecided for too long")
	if w.logged("outbox.settle_failed") != 0 {
		t.Error("nobody has tried to settle it")
	}
	var refused *outbox.RefusalError
	if _, err := w.operator.Redrive(t.Context(), id, w.seen(id)); !errors.As(err, &refused) {
		t.Errorf("redrive: %v, want a refusal", err)
	}
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 1)
	if _, err := w.operator.Settle(t.Context(), id, w.seen(id), outbox.Delivered{}); err != nil {
		t.Error(err)
	}
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// Evidence that is kept beside a dead message while somebody starts that anew does not bury it again.
func TestEvidenceKeptBesideDoesNotBury(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	w.provider.script = []string{"429", "lost"}
	id := w.accept()
	w.deliver(id)
	w.clock.Add(2 * time.Minute)
	w.deliver(id)
	w.rewrite(id, func(m *storage.Message) { m.State = storage.MessageDead })
	w.store.On(faulty.PatchMessage, 1, faulty.Before(func() {
		if _, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil {
			t.Error(err)
		}
	}))
	if _, err := w.worker.Settle(t.Context(), id, outbox.Declined{Reference: "no"}); err != nil {
		t.Fatal(err)
	}
	if m := w.message(id); m.State != storage.MessageUnknown || m.KeptDeclined == nil {
		t.Errorf("%s, kept %+v", m.State, m.KeptDeclined)
	}
	if got := w.logged("outbox.redriven"); got != 1 {
		t.Errorf("outbox.redriven is logged %d times", got)
	}
}

// A late copy of the write that made a message dead does not bury it again once somebody has started it anew.
func TestLateDeathDoesNotBuryWhatWasRedriven(t *testing.T) {
	refuse := true
	w := newWorld(t, options{topic: settling(func(storage.Message, outbox.Outcome, *outbox.Settlement) error {
		if refuse {
			return errors.New("no answer")
		}
		return nil
	})})
	id := w.accept()
	var late faulty.Late
	w.store.On(faulty.PatchMessage, 1, late.Fault())
	w.deliver(id)
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 1)
	refuse = false
	for n := range 100 {
		w.store.On(faulty.Settle, n+1, faulty.Refuse(storage.ErrContention))
	}
	if state, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil || state != storage.MessageDead {
		t.Fatalf("in contention it is %s, %v", state, err)
	}
	w.store.Clear()
	if state, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil || state != storage.MessageDelivered {
		t.Fatalf("%s, %v", state, err)
	}
	if err := late.Deliver(t.Context()); err == nil {
		t.Error("the late write was applied")
	}
	w.drain(time.Hour)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

func (w *world) wantAlerts(alerts int, reason string) {
	w.Helper()
	letters := w.queue.Letters()
	if got := w.logged("outbox.dead"); got != alerts || len(letters) != alerts {
		w.Errorf("%d alarms, %d dead letters; want %d", got, len(letters), alerts)
	}
	for _, letter := range letters {
		if letter.Reason != reason {
			w.Errorf("the letter says %q, want %q", letter.Reason, reason)
		}
	}
}
