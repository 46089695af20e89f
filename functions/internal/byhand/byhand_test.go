package byhand_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/byhand"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/memlog"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a watch with a log and a clock of its own.
type world struct {
	*testing.T
	audit *memlog.Log
	now   time.Time
	out   bytes.Buffer
	watch *byhand.Watch
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, audit: memlog.New(), now: noon}
	w.restart()
	return w
}

func (w *world) restart() {
	w.watch = &byhand.Watch{Audit: w.audit, Logger: slog.New(slog.NewJSONHandler(&w.out, nil)), Now: func() time.Time { return w.now }}
}

func (w *world) entry(id, action string, at time.Time, state operator.EntryState) {
	w.Helper()
	e := operator.Entry{ID: id, At: at, Actor: "eve", Action: action, Subject: "op_a.1", Tenant: "acme", Reason: "none", State: operator.EntryIntended}
	if err := w.audit.Begin(w.Context(), e); err != nil {
		w.Fatal(err)
	}
	if state != operator.EntryIntended {
		w.end(e, state)
	}
}

func (w *world) end(e operator.Entry, state operator.EntryState) {
	w.Helper()
	e.State, e.DoneAt = state, e.At.Add(time.Second)
	if err := w.audit.End(w.Context(), e); err != nil {
		w.Fatal(err)
	}
}

// told runs the watch and returns what it says: a line's name, and the entry that it is of.
func (w *world) told() (said []string) {
	w.Helper()
	w.out.Reset()
	if err := w.watch.Run(w.Context()); err != nil {
		w.Fatal(err)
	}
	for decoder := json.NewDecoder(&w.out); decoder.More(); {
		var line struct {
			Msg, Entry, Actor, Tenant string
			Message                   string `json:"message_id"`
			Alarm                     bool
		}
		if err := decoder.Decode(&line); err != nil {
			w.Fatal(err)
		}
		if !line.Alarm || line.Actor != "eve" || line.Tenant != "acme" || line.Message != "op_a.1" {
			w.Errorf("line %+v", line)
		}
		said = append(said, line.Msg+" "+line.Entry)
	}
	return said
}

func (w *world) want(want ...string) {
	w.Helper()
	got := w.told()
	if len(got) != len(want) {
		w.Fatalf("told %v, want %v", got, want)
	}
	for n := range want {
		if got[n] != want[n] {
			w.Errorf("told %v, want %v", got, want)
		}
	}
}

// Each change that has an alarm is told of once, the newest first. What changed nothing, and other changes, are not.
func TestChangesByHandAreToldOnce(t *testing.T) {
	w := newWorld(t)
	w.want()
	w.entry("au_1", "redrive", noon.Add(-3*time.Second), operator.EntryDone)
	w.entry("au_2", "close", noon.Add(-2*time.Second), operator.EntryFailed) // its error may have come after the change
	w.entry("au_3", "close", noon.Add(-time.Second), operator.EntryRefused)
	w.entry("au_4", "resolve", noon, operator.EntryDone)
	w.want("outbox.closed au_2", "outbox.redriven au_1")
	w.now = noon.Add(time.Minute)
	w.want()
}

// A change that is under way is told of when it has ended, and one that stays without an end after a minute: it may have happened.
func TestAChangeWithoutAnEndIsToldOfLater(t *testing.T) {
	w := newWorld(t)
	w.entry("au_1", "redrive", noon, operator.EntryIntended)
	w.want()
	w.now = noon.Add(time.Minute)
	w.want("outbox.redriven au_1")
	w.now = noon.Add(2 * time.Minute)
	w.want()
}

// A run that comes late, and a process that has started anew, tell of what is as old as LookBack, and of nothing older. Another
// person's clock may be ahead.
func TestLateRunsTellOfTheLastQuarterOfAnHour(t *testing.T) {
	w := newWorld(t)
	w.entry("au_1", "close", noon, operator.EntryDone)
	w.now = noon.Add(byhand.LookBack)
	w.want("outbox.closed au_1")
	w.restart()
	w.want("outbox.closed au_1")
	w.restart()
	w.now = noon.Add(byhand.LookBack + time.Second)
	w.want()
	w.entry("au_2", "close", w.now.Add(byhand.ClockAhead-time.Second), operator.EntryDone)
	w.want("outbox.closed au_2")
	w.now = w.now.Add(byhand.LookBack)
	w.want()
}

// broken is an audit log that can't be read.
type broken struct{ operator.AuditLog }

var errBroken = errors.New("throttled")

func (broken) Entries(context.Context, time.Time, time.Time, string, int) ([]operator.Entry, error) {
	return nil, errBroken
}

// A run that could not look is an error, which has an alarm; what it missed is told of by the next.
func TestALogThatCannotBeReadIsAnError(t *testing.T) {
	w := newWorld(t)
	w.entry("au_1", "close", noon, operator.EntryDone)
	w.watch.Audit = broken{w.audit}
	if err := w.watch.Run(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("%v, want %v", err, errBroken)
	}
	w.watch.Audit = w.audit
	w.want("outbox.closed au_1")
}
