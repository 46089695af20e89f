package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

var errQueue = errors.New("queue: no permission")

// refusing is a queue of wake-ups that takes none.
type refusing struct{}

func (refusing) Schedule(context.Context, string, idem.MessageID, time.Duration) error {
	return errQueue
}

// failed demands that a change is neither done nor refused, and that the log has it so.
func (w *world) failed(result operator.Result, err, want error) {
	w.Helper()
	if !errors.Is(err, want) || operator.Refused(err) || result.State != operator.EntryFailed {
		w.Errorf("%+v, %v, want %v", result, err, want)
	}
	if e := w.audit.entries[len(w.audit.entries)-1]; e.State != operator.EntryFailed || e.Outcome != err.Error() {
		w.Errorf("the log has %+v", e)
	}
}

// A sweep whose wake-ups the queue refuses has not done what was asked for, and says how much of it failed.
func TestASweepThatFailsIsNotDone(t *testing.T) {
	w := newWorld(t)
	w.message("acme", func(*storage.Message) {})
	w.message("bolt", func(*storage.Message) {})
	w.record(idem.KindWrapped, storage.StateInProgress)
	w.cfg.WakeUps = refusing{}
	desk, err := operator.New(w.cfg)
	w.ok(err)
	w.now = noon.Add(time.Hour)
	result, err := desk.Sweep(t.Context(), because(""))
	var swept *operator.SweepError
	if !errors.As(err, &swept) || swept.Report.Messages.Errors != 2 || swept.Report.Records.Parked != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	w.failed(result, err, err)
	for _, want := range []string{"2 of what", "messages errors: 2", "records parked: 1"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "{") {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// One row of another release fails each sweep. The error says that it is only that: nothing that is in the log can be removed.
func TestASweepThatComesToAnotherReleasesRowsSaysSo(t *testing.T) {
	w := newWorld(t)
	other := w.message("acme", func(m *storage.Message) { m.Topic = "other.topic" })
	w.message("bolt", func(*storage.Message) {})
	w.now = noon.Add(time.Hour)
	result, err := w.desk.Sweep(t.Context(), because(""))
	var swept *operator.SweepError
	if !errors.As(err, &swept) || !swept.OfOtherRelease() || swept.Report.Messages.Offered != 1 || !strings.Contains(err.Error(), "came to 1 that another release wrote") ||
		!strings.Contains(err.Error(), "messages other release: 1") {
		t.Errorf("%+v, %v", result, err)
	}
	w.failed(result, err, err)
	if got := w.stateOf(other.ID); got != storage.MessagePending {
		t.Errorf("it is %s", got)
	}
	w.cfg.WakeUps = refusing{}
	desk, err := operator.New(w.cfg)
	w.ok(err)
	if _, err = desk.Sweep(t.Context(), because("")); !errors.As(err, &swept) || swept.OfOtherRelease() || !strings.Contains(err.Error(), "2 of what") {
		t.Errorf("beside trouble: %v", err)
	}
}

// A question that decides nothing, or that leaves the message dead, is not done either: who asked may be a program.
func TestAQuestionThatDecidesNothingIsNotDone(t *testing.T) {
	unclear, declined := outbox.Unclear{Cause: errors.New("down")}, outbox.Found{Outcome: outbox.Declined{}}
	for name, c := range map[string]struct {
		after   time.Duration
		finding outbox.Finding
		change  func(*storage.Message)
		want    error
		becomes storage.MessageState
	}{
		"the provider is down":      {time.Hour, unclear, unknown, operator.ErrUndecided, storage.MessageUnknown},
		"the provider is down long": {48 * time.Hour, unclear, unknown, operator.ErrDied, storage.MessageDead},
		"it can't be settled":       {time.Hour, declined, func(m *storage.Message) { unknown(m); m.Undoes = true }, operator.ErrUnsettled, storage.MessageDead},
		"too early for a proof":     {time.Second, outbox.Absent{}, unknown, nil, storage.MessageUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.message("acme", c.change)
			w.now, w.finding = noon.Add(c.after), c.finding
			result, err := w.desk.ReconcileMessage(t.Context(), m.ID, because(""))
			if c.want != nil {
				w.failed(result, err, c.want)
			} else if err != nil || result.State != operator.EntryDone {
				t.Errorf("%+v, %v", result, err)
			}
			if state := w.stateOf(m.ID); state != c.becomes {
				t.Errorf("the message is %s", state)
			}
		})
	}
	w := newWorld(t)
	r := w.record(idem.KindWrapped, storage.StateUnknown)
	w.now, w.wrapped = noon.Add(time.Hour), unclear
	result, err := w.desk.ReconcileRecord(t.Context(), r.OperationID, because(""))
	w.failed(result, err, operator.ErrUndecided)
}

// Where nobody can be asked, that is refused: nothing is written, and nobody is told once more.
func TestAQuestionThatNobodyCanAnswerIsRefused(t *testing.T) {
	for _, dry := range []bool{true, false} {
		w := newWorld(t)
		m := w.message("acme", func(m *storage.Message) { unknown(m); m.Topic = keylessName })
		r := w.record(idem.KindWrapped, storage.StateUnknown, func(r *storage.Record) { r.Operation = "orders.export" })
		w.now = noon.Add(time.Hour)
		before, ch := w.everything(), because("")
		ch.DryRun = dry
		_, ofMessage := w.desk.ReconcileMessage(t.Context(), m.ID, ch)
		_, ofRecord := w.desk.ReconcileRecord(t.Context(), r.OperationID, ch)
		if !errors.Is(ofMessage, operator.ErrRefused) || !errors.Is(ofRecord, operator.ErrRefused) || w.everything() != before {
			t.Errorf("dry %v: %v, %v; %s became %s", dry, ofMessage, ofRecord, before, w.everything())
		}
	}
}

func TestTheCountsOfASweepAreToldInWords(t *testing.T) {
	for outcome, want := range map[string]string{
		`{"messages":{},"records":{}}`:                                        "nothing was due",
		`{"messages":{"offered":3,"unfinished":true},"records":{"parked":1}}`: "messages offered: 3, more messages are due, records parked: 1",
		`{"messages":{"offered":"3"},"records":{}}`:                           `{"messages":{"offered":"3"},"records":{}}`,
		`{"letters":{"gone":1}}`:                                              `{"letters":{"gone":1}}`,
		"delivered":                                                           "delivered",
	} {
		if got := operator.InWords(outcome); got != want {
			t.Errorf("%s: %q, want %q", outcome, got, want)
		}
	}
}
