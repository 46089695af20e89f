package protocol

import (
	"fmt"
	"strings"
)

// The names that the tables use: those of docs/semantics.md.

var kindNames = [...]string{"", "atomic", "optimistic", "deferred", "wrapped"}

var stateNames = [...]string{"absent", "in_progress", "pending", "completed", "failed", "failed_retryable", "unknown"}

var messageNames = [...]string{"absent", "pending", "claimed", "delivered", "declined", "unknown", "evidenced", "dead", "cancelled"}

var verbNames = [...]string{"", "read", "admit", "send", "run the handler", "wait", "ask the topic", "call the provider", "probe the provider", "tell an operator", "answer"}

var phaseNames = [...]string{
	"", "Looking", "Admitting", "Waiting", "Reserving", "TakingOver", "ParkingOther", "GivingBack", "Running", "Renewing",
	"Committing", "Storing", "Completing", "FencingOff", "Releasing", "Parking", "LastLook", "Ended",
}

var sayNames = [...]string{
	"", "executed", "replayed", "in progress", "outcome unknown", "mismatch", "gone", "vacant", "turned off", "unavailable", "no time",
	"the handler's own", "undeclared failure", "changed", "unchanged", "undecided", "stale", "inadmissible", "not live", "nothing to do", "another release's",
}

var outcomeNames = [...]string{
	"", "delivered", "declined", "not executed", "never left", "ambiguous", "refused", "refused, unproven", "absent", "unclear",
}

var alarmNames = []string{"message gone", "late evidence", "contradiction", "unsettled", "unfailed", "weak evidence", "refused to settle"}

func listed(names []string, bits uint16) string {
	var out []string
	for i, name := range names {
		if bits&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, " or ")
}

// told describes a fence.
func (f Fence) told(states []string) string {
	var any []string
	if f.Absent {
		any = append(any, "absent")
	}
	if f.Free != 0 {
		any = append(any, "absent or free")
	}
	if !f.Seen.None() {
		any = append(any, "as it was seen")
	}
	if f.States != 0 {
		epoch := ", owner, epoch"
		if f.AnyEpoch {
			epoch = ", owner"
		}
		any = append(any, "mine (operation"+epoch+") and "+listed(states, f.States))
	}
	if f.Open {
		any = append(any, "not final")
	}
	if f.Pending {
		any = append(any, "pending")
	}
	if f.Ended {
		any = append(any, "final, or another's")
	}
	out := strings.Join(any, ", or ")
	if f.LeaseBelow != 0 {
		out += ", its lease ending earlier"
	}
	if f.NotDead {
		out += ", not dead"
	}
	return out
}

// told describes a write.
func (w Write) told() string {
	var parts []string
	switch w.RecAs {
	case Put, End:
		parts = append(parts, fmt.Sprintf("record := %s if %s", stateNames[w.Rec.State], w.RecIf.told(stateNames[:])))
	case Renew:
		parts = append(parts, fmt.Sprintf("record's lease := later if %s", w.RecIf.told(stateNames[:])))
	case Check:
		parts = append(parts, fmt.Sprintf("record is %s", w.RecIf.told(stateNames[:])))
	}
	switch w.MsgAs {
	case Put, Patch:
		parts = append(parts, fmt.Sprintf("message %d := %s if %s", w.Msg.Index, messageNames[w.Msg.State], w.MsgIf.told(messageNames[:])))
	case Postpone:
		parts = append(parts, fmt.Sprintf("message %d is looked at later", w.Msg.Index))
	}
	switch {
	case w.Msg.Ended && w.Earlier != 0:
		parts = append(parts, fmt.Sprintf("messages 1 to %d may go", w.Msg.Index))
	case w.Msg.Ended:
		parts = append(parts, fmt.Sprintf("message %d may go", w.Msg.Index))
	}
	if w.Slot != 0 {
		parts = append(parts, "the handler's writes")
	}
	if w.Said != NotAsked {
		parts = append(parts, "the topic's writes")
	}
	if w.Next.State != NoMessage {
		what := "message"
		if w.Next.Undoes {
			what = "undoing message"
		}
		parts = append(parts, fmt.Sprintf("%s %d := %s", what, w.Next.Index, messageNames[w.Next.State]))
	}
	return strings.Join(parts, " + ")
}

// told describes an action.
func (a Action) told() string {
	switch a.Do {
	case Send:
		return "send " + a.Write.told()
	case Tell:
		out := "answer: " + sayNames[a.Say.Code]
		if a.Say.Carry.State != NoMessage {
			out += ", and deliver its message inline"
		}
		for i, name := range alarmNames {
			if a.Say.Alarms&(1<<i) != 0 {
				out += ", alarm: " + name
			}
		}
		return out
	}
	return verbNames[a.Do]
}
