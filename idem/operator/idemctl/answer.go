package idemctl

import (
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

func (t *table) result(r operator.Result) {
	if r.DryRun {
		t.line("dry run: would %s %s: %s", r.Action, visible(r.Subject), visible(r.Outcome))
		t.line("nothing was changed; add --write to do it")
		return
	}
	t.line("%s %s: %s, %s (audit %s)", r.Action, visible(r.Subject), t.hue(string(r.State)), visible(operator.InWords(r.Outcome)), r.Entry)
}

func (t *table) loss(l operator.Loss) {
	switch {
	case l.NotDated:
		t.line("not set, though data was lost: nothing is executed, and nothing is changed before it is set")
		return
	case l.Instant().IsZero():
		t.line("never set: no key is refused for its age")
		return
	case l.ByConfiguration():
		t.line("%s, by the instances' configuration: nothing is executed for keys that are not proven younger", l.Configured.UTC().Format(time.RFC3339Nano))
		if !l.RefuseBefore.IsZero() {
			t.line("the table says an earlier time: %s", l.RefuseBefore.Format(time.RFC3339Nano))
		}
		return
	}
	t.line("%s: nothing is executed for keys that are not proven younger", l.RefuseBefore.Format(time.RFC3339Nano))
}

func (t *table) story(s operator.Story) {
	t.line("operation %s", s.Operation)
	switch {
	case s.Record != nil:
		t.record(*s.Record)
	case s.RecordMayBeLost:
		t.line("record: not there: it has expired, or was lost")
	default:
		t.line("record: removed")
	}
	for _, m := range s.Messages {
		t.message(m)
	}
	if s.Application != nil {
		t.line("application")
		t.json(s.Application)
	}
	if s.ApplicationError != "" {
		for _, line := range t.sentence("application: not all that it knows could be read: " + s.ApplicationError) {
			t.line("%s", line)
		}
	}
	t.entries(s.Audit)
	for _, next := range s.Advice(t.moment) {
		for i, line := range t.sentence(next) {
			t.line("%s%s", map[bool]string{true: "→ ", false: "  "}[i == 0], line)
		}
	}
}

func (t *table) sentence(text string) []string {
	text = visible(text)
	if t.wide {
		return []string{text}
	}
	return wrap(text, widthMax-len("→ "))
}

func (t *table) record(r operator.RecordView) {
	t.line("%s", t.paint(bold, "record"))
	t.fields(
		field{"state", string(r.State)}, field{"tenant", r.Tenant}, field{"operation", r.Operation}, field{"kind", string(r.Kind)},
		field{"observed", observed(r)},
		field{"executions", fmt.Sprint(r.Executions)}, field{"status", number(r.ResponseStatus)},
		field{"created", t.at(r.CreatedAt)}, field{"lease until", t.at(r.LeaseUntil)}, field{"done", t.at(r.DoneAt)}, field{"expires", t.at(r.ExpiresAt)},
		field{dueFor(r.State == storage.StateUnknown), t.at(r.LookAt)}, field{"trace", r.TraceID},
		field{"last error", r.LastError}, field{"seen", string(r.Seen)},
	)
}

// observed says whether a policy in observe mode made the record; "" where none did.
func observed(r operator.RecordView) string {
	switch {
	case r.OnlyObserved:
		return "yes, and it has not ended"
	case r.Observed:
		return "yes"
	}
	return ""
}

func (t *table) message(m operator.MessageView) {
	undoes := ""
	if m.Undoes {
		undoes = "an earlier message"
	}
	sealed := ""
	if m.Sealed {
		sealed = "it can't be opened here"
	}
	lease, next := t.at(m.LeaseUntil), ""
	switch {
	case m.State.Final(): // nobody holds it, and nobody comes
		lease = ""
	case m.State == storage.MessagePending: // in other states nobody calls again at that time
		next = t.at(m.NextAttemptAt)
	}
	t.line("%s %s", t.paint(bold, "message"), m.ID)
	t.fields(
		field{"state", string(m.State)}, field{"topic", m.Topic}, field{"undoes", undoes}, field{"sealed", sealed},
		field{"calls without a definite answer", calls(m)}, field{"claims that expired", number(m.DiedClaims)},
		field{"last outcome", m.LastOutcome}, field{"settled by", string(m.SettledBy)}, field{"reference", m.Reference}, field{"keeps the answer", strings.Join(m.Kept, ", ")},
		field{"created", t.at(m.CreatedAt)}, field{"first claimed", t.at(m.FirstClaimedAt)}, field{"outcome open since", t.at(m.OpenSince)},
		field{"proven absent", t.at(m.ClearedAt)}, field{"lease until", lease}, field{"next attempt", next}, field{dueFor(m.State == storage.MessageUnknown), t.at(m.LookAt)},
		field{"redriven", t.at(m.RedrivenAt)}, field{"done", t.at(m.DoneAt)}, field{"seen", string(m.Seen)},
	)
}

// calls is how many calls gave no definite answer, and how many may before the message is dead.
func calls(m operator.MessageView) string {
	if m.State.Final() || m.CallsMax == 0 {
		return fmt.Sprint(m.UnansweredCalls)
	}
	return fmt.Sprintf("%d of at most %d", m.UnansweredCalls, m.CallsMax)
}

// dueFor names who looks next at what stands in a queue.
func dueFor(unknown bool) string {
	if unknown {
		return "due for the reconciler"
	}
	return "due for the sweep"
}

// listed are the cells of a row of a list. Seen begins with the state.
func (t *table) listed(row operator.Listed, short func(string) string) []string {
	cells := []string{t.at(row.At), row.Tenant, short(row.ID())}
	switch m, r := row.Message, row.Record; {
	case m != nil:
		return append(cells, m.Topic, or(m.LastOutcome), string(m.Seen))
	case r != nil:
		return append(cells, r.Operation, or(r.LastError), string(r.Seen))
	}
	return append(cells, "can't be read", row.Unreadable, or(""))
}

func (t *table) list(l operator.List) {
	ids := make([]string, len(l.Rows))
	for i, row := range l.Rows {
		ids[i] = row.ID()
	}
	short := t.shortening(ids)
	rows := make([][]string, len(l.Rows))
	for i, row := range l.Rows {
		rows[i] = t.listed(row, short)
	}
	t.columnsOf([]column{{"WHEN", false}, {"TENANT", true}, {"ID", false}, {"TOPIC OR OPERATION", true}, {"LAST", true}, {"SEEN", false}}, rows, besideTokenMin)
	switch {
	case l.Next != "":
		t.line("%d shown; there are more: --after %s", len(rows), l.Next)
	case len(rows) == 0:
		t.line("nothing")
	}
}

// shortening shortens ids, but for --wide.
func (t *table) shortening(ids []string) func(string) string {
	if t.wide {
		return func(id string) string { return id }
	}
	return shortener(ids)
}

// outcome is what came of a change. It begins with the subject, whose short id is enough.
func (t *table) outcome(e operator.Entry, short func(string) string) string {
	return strings.ReplaceAll(packages.ReplaceAllString(operator.InWords(e.Outcome), "$1"), e.Subject, short(e.Subject))
}

func (t *table) entries(entries []operator.Entry) {
	subjects := make([]string, len(entries))
	for i, e := range entries {
		subjects[i] = e.Subject
	}
	short := t.shortening(subjects)
	rows := make([][]string, len(entries))
	for i, e := range entries {
		rows[i] = []string{t.at(e.At), e.Actor, e.Action, short(e.Subject), string(e.State), or(t.outcome(e, short)), e.Reason}
	}
	t.columns([]column{{"AUDIT", false}, {"ACTOR", true}, {"ACTION", false}, {"SUBJECT", false}, {"STATE", false}, {"OUTCOME", true}, {"REASON", true}}, rows)
}
