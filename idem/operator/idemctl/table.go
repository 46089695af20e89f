package idemctl

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
)

// show writes an answer as JSON, or as the table says.
func (s *session) show(answer any, as func(*table)) error {
	t := &table{out: s.out}
	if s.cli.Output == "json" {
		t.json(answer)
	} else {
		as(t)
	}
	return t.err
}

// table writes for people, and keeps the first error.
type table struct {
	out io.Writer
	err error
}

func (t *table) json(answer any) {
	encoder := json.NewEncoder(t.out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); t.err == nil {
		t.err = err
	}
}

func (t *table) line(format string, args ...any) {
	if _, err := fmt.Fprintf(t.out, format+"\n", args...); t.err == nil {
		t.err = err
	}
}

// columns writes rows below their header; there is nothing to see where there are none.
func (t *table) columns(header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	if err := w.Flush(); t.err == nil {
		t.err = err
	}
}

func at(when time.Time) string {
	if when.IsZero() {
		return "-"
	}
	return when.UTC().Format(time.RFC3339)
}

func or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// status is a response's; there is none yet where it is 0.
func status(code int) string {
	if code == 0 {
		return "-"
	}
	return fmt.Sprint(code)
}

func (t *table) result(r operator.Result) {
	if r.DryRun {
		t.line("dry run: would %s %s: %s (add --write)", r.Action, r.Subject, r.Outcome)
		return
	}
	t.line("%s %s: %s, %s (audit %s)", r.Action, r.Subject, r.State, r.Outcome, r.Entry)
}

func (t *table) loss(l operator.Loss) {
	if l.RefuseBefore.IsZero() {
		t.line("never set: no key is refused for its age")
		return
	}
	t.line("%s: nothing is executed for keys that are not proven younger", l.RefuseBefore.Format(time.RFC3339Nano))
}

func (t *table) story(s operator.Story) {
	t.line("operation %s", s.Operation)
	if r := s.Record; r != nil {
		t.columns([]string{"RECORD", "TENANT", "OPERATION", "KIND", "ATTEMPTS", "STATUS", "CREATED", "DONE", "EXPIRES", "SEEN"}, [][]string{{
			string(r.State), r.Tenant, r.Operation, string(r.Kind), fmt.Sprint(r.Attempts), status(r.ResponseStatus),
			at(r.CreatedAt), at(r.DoneAt), at(r.ExpiresAt), string(r.Seen),
		}})
		if r.LastError != "" {
			t.line("last error: %s", r.LastError)
		}
	} else {
		t.line("record: removed")
	}
	rows := make([][]string, len(s.Messages))
	for i, m := range s.Messages {
		rows[i] = messageRow(m)
	}
	t.columns(messageHeader, rows)
	if s.Application != nil {
		t.line("application")
		t.json(s.Application)
	}
	t.entries(s.Audit)
	for _, next := range s.Next {
		t.line("→ %s", next)
	}
}

var messageHeader = []string{"MESSAGE", "STATE", "TOPIC", "ATTEMPTS", "LAST OUTCOME", "OPEN SINCE", "LEASE UNTIL", "REFERENCE", "SEEN"}

func messageRow(m operator.MessageView) []string {
	return []string{
		string(m.ID), string(m.State), m.Topic, fmt.Sprint(m.Attempts), or(m.LastOutcome), at(m.OpenSince), at(m.LeaseUntil),
		or(m.Reference), string(m.Seen),
	}
}

func (t *table) list(l operator.List) {
	rows := make([][]string, len(l.Rows))
	for i, row := range l.Rows {
		rows[i] = []string{at(row.At), row.Tenant}
		switch {
		case row.Message != nil:
			rows[i] = append(rows[i], string(row.Message.ID), string(row.Message.State), row.Message.Topic, or(row.Message.LastOutcome), string(row.Message.Seen))
		case row.Record != nil:
			rows[i] = append(rows[i], string(row.Operation), string(row.Record.State), row.Record.Operation, or(row.Record.LastError), string(row.Record.Seen))
		}
	}
	t.columns([]string{"AT", "TENANT", "ID", "STATE", "TOPIC OR OPERATION", "LAST", "SEEN"}, rows)
	switch {
	case l.Next != "":
		t.line("%d shown; there are more: --after %s", len(rows), l.Next)
	case len(rows) == 0:
		t.line("nothing")
	}
}

func (t *table) entries(entries []operator.Entry) {
	rows := make([][]string, len(entries))
	for i, e := range entries {
		rows[i] = []string{at(e.At), e.Actor, e.Action, e.Subject, string(e.State), or(e.Outcome), e.Reason}
	}
	t.columns([]string{"AUDIT", "ACTOR", "ACTION", "SUBJECT", "STATE", "OUTCOME", "REASON"}, rows)
}
