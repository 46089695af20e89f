package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// dying are the ways in which a message comes before an operator.
var dying = map[string]struct {
	options options
	script  []string
	state   storage.State
	reason  string
}{
	"attempts over, a call open":   {options{topic: unprobed}, []string{"500 before", "500 before", "500 before"}, storage.StatePending, "attempts over"},
	"attempts over, nothing open":  {options{}, []string{"429", "429", "429"}, storage.StateFailed, "attempts over"},
	"refused, and a call is open":  {options{topic: unprobed}, []string{"500 before", "409"}, storage.StatePending, "refused"},
	"its answer can't be settled":  {options{topic: settling(unsettled)}, nil, storage.StatePending, "settlement failed"},
	"nothing happened, unsettled":  {options{topic: settling(unsettled)}, []string{"400"}, storage.StatePending, "settlement failed"},
	"refused, and nothing is open": {options{}, []string{"400"}, storage.StateFailed, "refused"},
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
	id := w.accept()
	if lost {
		w.loseDeath(id)
	}
	_ = w.worker.Deliver(t.Context(), id) // where the reply is lost this is trouble with the store
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
// that they were.
func TestDeadIsToldOfEveryDay(t *testing.T) {
	w, id := deceased(t, "attempts over, a call open", false)
	for _, step := range []struct {
		wait   time.Duration
		alerts int
	}{{23 * time.Hour, 1}, {time.Hour + time.Minute, 2}, {23 * time.Hour, 2}, {2 * time.Hour, 3}} {
		w.clock.Add(step.wait)
		_, err := w.sweep(t.Context())
		w.ok(err)
		w.wantAlerts(step.alerts, "attempts over")
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
	w.wantAlerts(4, "attempts over")
	w.store.Clear()
	w.rewrite(id, func(m *storage.Message) { m.Topic = "retired" })
	did, err = w.sweep(t.Context())
	w.ok(err)
	if did.Reminded != 1 {
		t.Errorf("sweep of a retired topic's: %+v", did)
	}
	if text := w.log.String(); !strings.Contains(text, `"reason":"topic is not registered"`) || w.logged("outbox.unknown_topic") != 0 {
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
