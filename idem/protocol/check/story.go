//go:build prove

package check

import (
	"fmt"
	"strings"

	p "github.com/idem-go/idem-aws/idem/protocol"
)

var (
	phases = [...]string{"", "Looking", "Admitting", "Waiting", "Reserving", "TakingOver", "ParkingOther", "GivingBack", "Running", "Renewing",
		"Committing", "Storing", "Completing", "FencingOff", "Releasing", "Parking", "LastLook", "Ended"}
	errands = [...]string{"", "sweeper", "reconciler", "resolving operator", "freeing operator", "extension", "end of life", "cache-bust"}
	says    = [...]string{"", "executed", "replayed", "busy (409)", "outcome unknown (409)", "mismatch", "gone (410)", "vacant", "turned off",
		"unavailable (503)", "late (503)", "the handler's own answer", "a condition undeclared (500)", "changed", "unchanged", "undecided", "stale",
		"inadmissible", "not live", "quiet", "another release's"}
	purposes = [...]string{"", "worker", "message sweeper", "inline delivery", "message reconciler", "webhook", "judging operator", "closing operator",
		"redriving operator", "sweeper of the dead"}
	steps         = [...]string{"", "Opening", "Claiming", "Calling", "Asking", "Settling", "Keeping", "Failing", "Writing", "Probing", "Alerting", "Over"}
	messageStates = [...]string{"none", "due", "claimed", "delivered", "declined", "unknown", "evidenced", "dead", "cancelled"}
	states        = [...]string{"absent", "in_progress", "pending", "completed", "failed", "failed_retryable", "unknown"}
)

// line tells one step: who did what in which phase, what became of the record, and how it ended.
func (w *world) line(before, after *state, l label) string {
	var b strings.Builder
	fmt.Fprintf(&b, "t%d ", before.now)
	if l.who >= 0 {
		b.WriteString(w.name(before, l.who) + ": ")
		switch q := &before.procs[l.who]; {
		case !q.started || q.over:
		case w.machine(q, l.who) == Courier:
			b.WriteString(steps[q.d.Step] + ": ")
		case q.x.Phase != 0:
			b.WriteString(phases[q.x.Phase] + ": ")
		}
	}
	b.WriteString(l.what)
	if w.wrote != nil {
		fmt.Fprintf(&b, " [%s]", written(w.wrote))
	}
	if w.heard != nil && w.heard.Code == p.Refused {
		fmt.Fprintf(&b, "; refused: %s", conditions(w.heard.Conds))
	}
	if before.rec != after.rec {
		fmt.Fprintf(&b, "; record: %s", record(&after.rec))
	}
	for k := range after.msgs {
		if before.msgs[k] != after.msgs[k] {
			fmt.Fprintf(&b, "; %s", message(&after.msgs[k]))
		}
	}
	if l.who >= 0 {
		if q := &after.procs[l.who]; q.over && !before.procs[l.who].over {
			if e := after.end(l.who, q.run); e.said != 0 {
				fmt.Fprintf(&b, "; it ends: %s", says[e.said])
			}
		}
	}
	if after.bad != 0 && before.bad == 0 {
		fmt.Fprintf(&b, " ← %s", violations[after.bad])
	}
	return b.String()
}

// name is what a process is called: its role, its number and, where it comes again, which time this is.
func (w *world) name(s *state, i int) string {
	a := &w.sc.Actors[i]
	name := "client"
	switch a.Role {
	case Visitor:
		name = errands[a.Errand]
	case Operator:
		name = "operator"
	case Courier:
		name = purposes[a.Purpose]
	}
	if a.Runs > 1 && s.procs[i].run > 0 {
		return fmt.Sprintf("%s %d (again)", name, i)
	}
	return fmt.Sprintf("%s %d", name, i)
}

// written is what a write makes of the rows.
func written(wr *p.Write) string {
	var parts []string
	switch wr.RecAs {
	case p.Leave:
	case p.Check:
		parts = append(parts, "record checked")
	default:
		parts = append(parts, record(&wr.Rec))
	}
	if wr.MsgAs != p.Leave {
		parts = append(parts, message(&wr.Msg))
	}
	if wr.Next.State != p.NoMessage {
		parts = append(parts, "next "+message(&wr.Next))
	}
	return strings.Join(parts, ", ")
}

func message(m *p.Message) string {
	out := fmt.Sprintf("message %d %s", m.Index, messageStates[m.State])
	if m.State == p.Claimed {
		i, run := whose(m.Owner)
		out += fmt.Sprintf(" by %d.%d, epoch %d, lease %d", i, run, m.Epoch, m.Lease)
	}
	if m.Kept&p.KeptDelivered != 0 {
		out += ", kept delivered"
	}
	if m.Kept&p.KeptDeclined != 0 {
		out += ", kept declined"
	}
	if m.OpenSince != 0 && !m.State.Final() {
		out += ", open"
	}
	return out
}

func record(r *p.Record) string {
	out := states[r.State]
	switch r.State {
	case p.InProgress, p.Unknown:
		i, run := whose(r.Owner)
		out += fmt.Sprintf(" of %d.%d, epoch %d, lease %d", i, run, r.Epoch, r.Lease)
	case p.Completed, p.Failed, p.Pending:
		out += fmt.Sprintf(" answer %d", r.Answer)
		if r.Free != 0 {
			out += fmt.Sprintf(" until %d, free at %d", r.Expires, r.Free)
		}
	case p.Retryable:
		out += fmt.Sprintf(" epoch %d, free at %d", r.Epoch, r.Free)
	}
	return out
}

func conditions(c p.Conds) string {
	var names []string
	for k, n := range [...]string{"record", "message", "Reject", "Retry", "undeclared", "one not judged", "a Retry not judged", "next message"} {
		if c&(1<<k) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}
