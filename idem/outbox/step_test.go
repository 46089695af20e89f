package outbox_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

var update = flag.Bool("update", false, "rewrite golden files")

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	lease       = 10 * time.Second
	transitions = "testdata/transitions.txt"
)

func keyed() outbox.Rules {
	return outbox.Rules{
		KeysHonoured: true, KeyRetention: time.Hour, Margin: 72 * time.Second, AbsentAfter: 62 * time.Second,
		AttemptsMax: 3, AgeMax: 24 * time.Hour, AbandonAfter: 24 * time.Hour, UnknownMax: 24 * time.Hour, SweepGrace: 15 * time.Second,
	}
}

const transitionsProse = `# Every transition of a message, and no other (docs/semantics.md "Message states", docs/design.md "Messages").
#
# Each line is one call of Step: the message's state, whether a call is open, the event, and what came of it. Proves that
#   - only what is due is claimed: pending, or claimed with a dead lease; epoch + 1,
#   - open_since is set by a claim, kept by an ambiguous answer, and cleared only by the same claim's "not executed" with
#     nothing open before it, or by proven absence,
#   - evidence settles every state that is not final, and from no state is it refused for its epoch,
#   - backing off and parking need state claimed, owner and epoch; "absent" needs the epoch that was read,
#   - what probes leave undecided waits, and is dead when its time is over, unless there is nobody to ask,
#   - a record fails only with nothing open; else the message is dead and the record left alone,
#   - only a first message that was never claimed is abandoned; only a parked one is closed,
#   - only a dead one is redriven, epoch + 1: to unknown where a call is open, and never past evidence that it keeps.
# Rewrite with: go test ./idem/outbox -run TestStep -update
`

// stepMessages are the situations that a message can be in, as the table names them.
func stepMessages() []struct {
	name string
	m    idem.Message
} {
	base := idem.Message{
		ID: "op_1.1", Index: 1, OperationID: "op_1", Topic: "a.b", SchemaVersion: idem.SchemaVersion, CreatedAt: noon.Add(-time.Minute),
		NextAttemptAt: noon, SweepAt: noon, LeaseUntil: noon.Add(-2 * time.Minute), Owner: "holder", Epoch: 3, Attempts: 1,
		FirstClaimedAt: noon.Add(-3 * time.Minute),
	}
	with := func(state idem.MessageState, change func(*idem.Message)) idem.Message {
		m := base
		m.State = state
		if change != nil {
			change(&m)
		}
		return m
	}
	open := func(m *idem.Message) { m.OpenSince = noon.Add(-3 * time.Minute) }
	return []struct {
		name string
		m    idem.Message
	}{
		{"new", with(idem.MessagePending, func(m *idem.Message) {
			m.Owner, m.Epoch, m.Attempts, m.FirstClaimedAt, m.LeaseUntil = "", 0, 0, time.Time{}, time.Time{}
		})},
		{"closed calls", with(idem.MessagePending, nil)},
		{"not due", with(idem.MessagePending, func(m *idem.Message) { m.NextAttemptAt = noon.Add(time.Second) })},
		{"open call", with(idem.MessagePending, open)},
		{"open too long", with(idem.MessagePending, func(m *idem.Message) { m.OpenSince = noon.Add(-time.Hour + 72*time.Second) })},
		{"attempts over", with(idem.MessagePending, func(m *idem.Message) { m.Attempts = 3 })},
		{"attempts over, open", with(idem.MessagePending, func(m *idem.Message) { m.Attempts = 3; open(m) })},
		{"new, age over", with(idem.MessagePending, func(m *idem.Message) {
			m.Owner, m.Epoch, m.Attempts, m.FirstClaimedAt, m.LeaseUntil = "", 0, 0, time.Time{}, time.Time{}
			m.CreatedAt = noon.Add(-24 * time.Hour)
		})},
		{"age over", with(idem.MessagePending, func(m *idem.Message) { m.CreatedAt = noon.Add(-24 * time.Hour) })},
		{"live, only call", with(idem.MessageClaimed, func(m *idem.Message) { open(m); m.LeaseUntil = noon.Add(time.Second) })},
		{"dead claim", with(idem.MessageClaimed, open)},
		{"dead claim, last", with(idem.MessageClaimed, func(m *idem.Message) { open(m); m.Attempts = 2 })},
		{"parked", with(idem.MessageUnknown, open)},
		{"parked just now", with(idem.MessageUnknown, func(m *idem.Message) { open(m); m.LeaseUntil = noon.Add(-time.Minute) })},
		{"parked for a day", with(idem.MessageUnknown, func(m *idem.Message) { open(m); m.LeaseUntil = noon.Add(-25 * time.Hour) })},
		{"given up", with(idem.MessageDead, nil)},
		{"given up, open", with(idem.MessageDead, open)},
		{"given up, evidence", with(idem.MessageDead, func(m *idem.Message) { open(m); m.LastOutcome = outbox.Delivered{}.Name() })},
		{"final", with(idem.MessageDelivered, nil)},
		{"final", with(idem.MessageDeclined, nil)},
		{"final", with(idem.MessageCancelled, nil)},
	}
}

func stepLine(m idem.Message, situation, name string, event outbox.Event) string {
	line := fmt.Sprintf("%-9s %-19s %-24s → ", m.State, situation, name)
	next, effect, err := outbox.Step(m, event, keyed(), noon)
	switch {
	case err != nil:
		var refused *outbox.TransitionError
		if !errors.As(err, &refused) {
			return line + err.Error()
		}
		return line + "refused"
	case effect == outbox.EffectNone || effect == outbox.EffectWait:
		return line + effect.String()
	}
	return line + fmt.Sprintf("%s: %s", effect, difference(m, next))
}

// difference says what a step changed that other steps judge by.
func difference(m, next idem.Message) string {
	parts := []string{string(next.State)}
	if next.Epoch != m.Epoch || next.Owner != m.Owner {
		parts = append(parts, fmt.Sprintf("epoch %+d owner %s", next.Epoch-m.Epoch, next.Owner))
	}
	if next.Attempts != m.Attempts {
		parts = append(parts, fmt.Sprintf("attempts %d", next.Attempts))
	}
	switch {
	case m.OpenSince.IsZero() && !next.OpenSince.IsZero():
		parts = append(parts, "open")
	case !m.OpenSince.IsZero() && next.OpenSince.IsZero():
		parts = append(parts, "nothing open")
	}
	if len(next.Evidence) > 0 {
		parts = append(parts, "evidence kept")
	}
	return strings.Join(parts, ", ")
}

func TestStepEveryTransitionAndNoOther(t *testing.T) {
	answer := func(o outbox.Outcome, before bool) outbox.Event {
		return outbox.Answered{Owner: "holder", Epoch: 3, OpenBefore: before, Outcome: o, Backoff: time.Second}
	}
	evidence := outbox.Delivered{Reference: "ch_1", Evidence: []byte("{}")}
	events := []struct {
		name  string
		event outbox.Event
	}{
		{"woken", outbox.Woken{Owner: "guest", LeaseUntil: noon.Add(lease)}},
		{"not executed", answer(outbox.NotExecuted{}, false)},
		{"not executed, open", answer(outbox.NotExecuted{}, true)},
		{"ambiguous", answer(outbox.Ambiguous{}, false)},
		{"refused", answer(outbox.Refused{}, false)},
		{"refused, open", answer(outbox.Refused{}, true)},
		{"refused, unproven", answer(outbox.Refused{Unproven: true}, false)},
		{"answer of another owner", outbox.Answered{Owner: "guest", Epoch: 3, Outcome: outbox.NotExecuted{}}},
		{"answer of another epoch", outbox.Answered{Owner: "holder", Epoch: 2, Outcome: outbox.NotExecuted{}}},
		{"answer with evidence", answer(evidence, false)},
		{"delivered", outbox.Evidence{Outcome: evidence}},
		{"declined", outbox.Evidence{Outcome: outbox.Declined{}}},
		{"evidence of nothing", outbox.Evidence{Outcome: outbox.Ambiguous{}}},
		{"unsettled", outbox.Unsettled{Outcome: evidence}},
		{"absent", outbox.ProvenAbsent{Epoch: 3}},
		{"absent, older epoch", outbox.ProvenAbsent{Epoch: 2}},
		{"undecided", outbox.Undecided{Epoch: 3, Backoff: time.Minute}},
		{"undecided, older epoch", outbox.Undecided{Epoch: 2, Backoff: time.Minute}},
		{"nobody to ask", outbox.Undecided{Epoch: 3, Unasked: true, Backoff: time.Minute}},
		{"abandoned", outbox.Abandoned{}},
		{"closed", outbox.Closed{}},
		{"redriven", outbox.Redriven{}},
	}
	var b strings.Builder
	b.WriteString(transitionsProse)
	for _, s := range stepMessages() {
		b.WriteString("\n")
		for _, e := range events {
			b.WriteString(strings.TrimRight(stepLine(s.m, s.name, e.name, e.event), " ") + "\n")
		}
	}
	golden(t, transitions, b.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		if g, w := at(gotLines, i), at(wantLines, i); g != w {
			t.Fatalf("%s line %d:\n got %s\nwant %s", path, i+1, g, w)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

func TestStepLeavesWhatItCannotRead(t *testing.T) {
	for _, m := range []idem.Message{
		{State: idem.MessagePending, SchemaVersion: idem.SchemaVersion + 1},
		{State: "delegated", SchemaVersion: idem.SchemaVersion},
	} {
		_, _, err := outbox.Step(m, outbox.Woken{}, keyed(), noon)
		var unreadable *outbox.UnreadableError
		if !errors.As(err, &unreadable) || unreadable.State != m.State || unreadable.SchemaVersion != m.SchemaVersion {
			t.Errorf("schema %d state %q: %v, want an UnreadableError (peers.md H17)", m.SchemaVersion, m.State, err)
		}
	}
}

// TestStepScenarios runs testdata/step/*.txt: files that open with prose on what they prove, then commands, each followed
// by what came of it ("> …").
func TestStepScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/step/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := &scenario{rules: keyed(), now: noon}
			var b strings.Builder
			for line := range strings.Lines(string(raw)) {
				line = strings.TrimRight(line, "\n")
				if strings.HasPrefix(line, ">") {
					continue
				}
				b.WriteString(line + "\n")
				if line != "" && !strings.HasPrefix(line, "#") {
					b.WriteString("> " + s.run(t, strings.Fields(line)) + "\n")
				}
			}
			golden(t, path, b.String())
		})
	}
}
