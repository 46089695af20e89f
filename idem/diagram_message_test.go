package idem_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

const messageProse = "A message is inserted by its record's commit, or by the settlement of the message before it. With\n" +
	"inline delivery it is inserted as claimed. A message whose call was refused and left nothing open is\n" +
	"given up by the worker that reads the message next (ADR 0011, 0007). Each arrow says what happened\n" +
	"to the message, and after the slash what is written:\n" +
	"\n" +
	"| written | means |\n" +
	"|---|---|\n" +
	"| settle, fail | the record ends in the same transaction |\n" +
	"| go on, undo | the next message, or the one that undoes an earlier one, is inserted in the same transaction |\n" +
	"| keep | evidence that cannot be settled is kept on the message |\n" +
	"| end | the message ends, and its record does not change |\n" +
	"| store, postpone | only the message changes; postpone changes only when somebody looks again |\n" +
	"\n" +
	"In brackets is what an arrow depends on. \"A call open\" means that a call may have happened. \"Over\"\n" +
	"means that attempts, dead claims or age have reached their limit.\n"

// messageStates are the states of a message, and how a row names them.
var messageStates = map[protocol.MessageState]storage.MessageState{
	protocol.Due: storage.MessagePending, protocol.Claimed: storage.MessageClaimed, protocol.InDoubt: storage.MessageUnknown,
	protocol.Evidenced: storage.MessageEvidenced, protocol.Dead: storage.MessageDead, protocol.Delivered: storage.MessageDelivered,
	protocol.Declined: storage.MessageDeclined, protocol.Cancelled: storage.MessageCancelled,
}

// messageDimensions are the situations that a message can be in besides its state.
var messageDimensions = []dimension{
	{"due", []string{"yes", "no"}, only("due", "yes")},
	{"open", []string{"nothing", "a call", "for too long"}, sayOpen},
	{"keys", []string{"honoured", "not honoured"}, func(seen []string) string { return "keys " + seen[0] }},
	{"over", []string{"no", "attempts", "refused"}, func(seen []string) string {
		if slices.Contains(seen, "no") {
			return ""
		}
		return "over or refused"
	}},
	{"probe", []string{"yes", "no"}, func(seen []string) string {
		return map[string]string{"yes": "probed", "no": "nobody to ask"}[seen[0]]
	}},
	{"sealed", []string{"no", "yes"}, only("sealed", "yes")},
	{"claim", []string{"never", "before"}, only("never claimed", "never")},
	{"place", []string{"first", "later", "undoes", "detached"}, func(seen []string) string {
		switch {
		case slices.Equal(seen, []string{"first"}):
			return "the first message"
		case slices.Equal(seen, []string{"undoes"}):
			return "it undoes"
		case slices.Equal(seen, []string{"later"}):
			return "a later message"
		}
		return ""
	}},
	{"absence", []string{"provable", "too early", "too late"}, func(seen []string) string {
		switch {
		case slices.Contains(seen, "too early"):
			return ""
		case slices.Contains(seen, "provable"):
			return "after the wait for absence"
		}
		return "after the last probe"
	}},
	{"kept", []string{"nothing", "delivered", "declined"}, func(seen []string) string {
		switch {
		case slices.Equal(seen, []string{"nothing"}):
			return "no evidence kept"
		case slices.Contains(seen, "nothing"):
			return ""
		}
		return "evidence kept"
	}},
}

func sayOpen(seen []string) string {
	switch {
	case slices.Equal(seen, []string{"nothing"}):
		return "nothing open"
	case slices.Contains(seen, "nothing"):
		return "not open for too long"
	}
	return "a call open"
}

// arises says whether a message of the state can be in the situation: a claim opens a call, and only a claim does.
func arises(state protocol.MessageState, situation map[string]string) bool {
	open := situation["open"] != "nothing"
	switch {
	case open && situation["claim"] == "never", situation["kept"] != "nothing" && state == protocol.Due:
		return false
	case state == protocol.Claimed, state == protocol.InDoubt:
		return open && situation["claim"] == "before" && situation["kept"] == "nothing"
	case state == protocol.Evidenced:
		return situation["kept"] != "nothing"
	case state.Final():
		return situation["kept"] == "nothing"
	}
	return true
}

// telling drops what a state can't depend on: only what is to be offered is due, and only of what is parked can be proven
// that nothing happened.
func telling(situation map[string]string, state protocol.MessageState) map[string]string {
	if state != protocol.Due && state != protocol.Claimed && state != protocol.Evidenced {
		delete(situation, "due")
	}
	if state != protocol.InDoubt && state != protocol.Dead {
		delete(situation, "absence")
	}
	if state != protocol.Dead {
		delete(situation, "kept")
	}
	if state == protocol.Claimed || state == protocol.InDoubt {
		delete(situation, "claim")
	}
	return situation
}

const (
	second = protocol.Millis(1000)
	minute = 60 * second
	hour   = 60 * minute
)

var atNoon = protocol.Instant(noon.UnixMilli())

func messageConfig(situation map[string]string) *protocol.Config {
	return &protocol.Config{ContentionMax: 3, Topic: protocol.Topic{
		KeysHonoured: situation["keys"] == "honoured", KeyRetention: hour, Margin: minute, AbsentAfter: minute, Probed: situation["probe"] == "yes",
		AttemptsMax: 3, AgeMax: 24 * hour, AbandonAfter: hour, UnknownMax: 24 * hour, ClaimLease: 10 * second, SettleMargin: 2 * second,
		CallFor: 5 * second, SettleFor: 10 * second, KeepFor: minute, SweepGrace: 15 * second,
	}}
}

func messageIn(state protocol.MessageState, situation map[string]string) protocol.Message {
	m := protocol.Message{
		State: state, Index: 1, Op: protocol.ID{1, 1}, Owner: protocol.ID{2, 2}, Revision: protocol.ID{3, 3}, Epoch: 3, Created: atNoon - 2*hour,
		NextAttempt: atNoon, LookAt: atNoon, Lease: atNoon - hour, Sealed: situation["sealed"] == "yes",
		Detached: situation["place"] == "detached", Undoes: situation["place"] == "undoes",
	}
	if situation["due"] == "no" {
		m.NextAttempt, m.LookAt, m.Lease = atNoon+second, atNoon+second, atNoon+second
	} else if situation["absence"] == "too early" {
		m.Lease = atNoon - second
	} else if situation["absence"] == "too late" {
		m.Lease = atNoon - 25*hour
	}
	if situation["place"] == "later" || m.Undoes {
		m.Index = 2
	}
	if situation["claim"] == "before" {
		m.FirstClaimed = atNoon - 2*hour
	}
	switch situation["open"] {
	case "a call":
		m.OpenSince = atNoon - minute
	case "for too long":
		m.OpenSince = atNoon - 2*hour
	}
	switch situation["over"] {
	case "attempts":
		m.Attempts = 3
	case "refused":
		m.Refused = true
	}
	switch situation["kept"] {
	case "delivered":
		m.Kept = protocol.KeptDelivered
	case "declined":
		m.Kept = protocol.KeptDeclined
	}
	return m
}

// stimulus is what happens to a message, with what the topic and the provider answer on the way.
type stimulus struct {
	errand   protocol.MessageErrand
	evidence protocol.Outcome
	answer   protocol.Outcome
	meant    protocol.Meant
}

var stimuli = func() map[string]stimulus {
	all := map[string]stimulus{
		"woken": {errand: protocol.Wake}, "woken, can't be told": {errand: protocol.Wake, meant: protocol.Meant{Fails: true}},
		"woken, to be undone": {errand: protocol.Wake, meant: protocol.Meant{Continues: true}},
		"closed":              {errand: protocol.Close}, "redriven": {errand: protocol.Redrive}, "reminded of": {errand: protocol.Remind},
	}
	for name, o := range map[string]protocol.Outcome{"delivered": protocol.OutDelivered, "declined": protocol.OutDeclined} {
		all[name] = stimulus{errand: protocol.Tidings, evidence: o}
		all[name+", more to do"] = stimulus{errand: protocol.Tidings, evidence: o, meant: protocol.Meant{Continues: true}}
		all[name+", can't be settled"] = stimulus{errand: protocol.Tidings, evidence: o, meant: protocol.Meant{Fails: true}}
	}
	for name, o := range map[string]protocol.Outcome{
		"not executed": protocol.OutNotExecuted, "never sent": protocol.OutUncalled, "ambiguous": protocol.OutAmbiguous,
		"refused": protocol.OutRefused, "refused without proof": protocol.OutRefusedOpen,
	} {
		all[name] = stimulus{errand: protocol.Carry, answer: o}
	}
	for name, o := range map[string]protocol.Outcome{"absent": protocol.OutAbsent, "undecided": protocol.OutUnclear} {
		all[name] = stimulus{errand: protocol.Question, answer: o}
	}
	return all
}()

// firstWrite performs the delivery up to its first write, which is none where there is nothing to write, or where the topic
// was not asked for the answer that the stimulus is about.
func (s stimulus) firstWrite(m protocol.Message, c *protocol.Config) protocol.Write {
	asked := s.meant == (protocol.Meant{})
	d := protocol.Delivery{Errand: s.errand, Seed: protocol.ID{9, 9}, Held: m, Evidence: s.evidence, OpenBefore: false}
	in := protocol.Input{What: protocol.Begin, Now: atNoon}
	if s.errand == protocol.Carry { // its claim is fresh
		d.Held.Lease = atNoon + 10*second
	}
	for {
		var a protocol.Action
		if d, a = d.Next(in, c); a.Do == protocol.Tell {
			return protocol.Write{}
		}
		switch a.Do {
		case protocol.Send:
			if !asked {
				return protocol.Write{}
			}
			return a.Write
		case protocol.Ask:
			asked = true
			in = protocol.Input{What: protocol.Answered, Meant: s.meant}
		case protocol.Call:
			in = protocol.Input{What: protocol.Called, Outcome: s.answer, Backoff: second}
		case protocol.Probe:
			in = protocol.Input{What: protocol.Probed, Outcome: s.answer, Backoff: minute}
		case protocol.Alert:
			in = protocol.Input{What: protocol.Alerted}
		default:
			panic(fmt.Sprintf("a delivery asks for %d, which nobody draws", a.Do))
		}
		in.Now = atNoon
	}
}

func effectOf(w protocol.Write) string {
	switch {
	case w.RecAs == protocol.End && w.Rec.State == protocol.Failed:
		return "fail"
	case w.RecAs == protocol.End:
		return "settle"
	case w.Next.Undoes:
		return "undo"
	case w.Next.State != protocol.NoMessage:
		return "go on"
	case w.MsgAs == protocol.Patch && w.Msg.Kept != 0:
		return "keep"
	case w.MsgAs == protocol.Patch:
		return "end"
	case w.MsgAs == protocol.Postpone:
		return "postpone"
	}
	return "store"
}

// eachFirstWrite performs every stimulus in every situation, and visits the first write that it made.
func eachFirstWrite(visit func(state protocol.MessageState, situation map[string]string, event string, s stimulus, w protocol.Write)) {
	product(messageDimensions, func(situation map[string]string) {
		c := messageConfig(situation)
		for state := range messageStates {
			if !arises(state, situation) {
				continue
			}
			m := messageIn(state, situation)
			for event, s := range stimuli {
				if s.errand == protocol.Carry && state != protocol.Claimed || s.meant.Continues && m.Detached {
					continue
				}
				if w := s.firstWrite(m, c); w != (protocol.Write{}) {
					visit(state, situation, event, s, w)
				}
			}
		}
	})
}

// drawnMessages draws them.
func drawnMessages() *diagram {
	d := &diagram{dimensions: messageDimensions}
	eachFirstWrite(func(state protocol.MessageState, situation map[string]string, event string, _ stimulus, w protocol.Write) {
		from, to := string(messageStates[state]), string(messageStates[w.Msg.State])
		d.add(from, to, event+" / "+effectOf(w), telling(maps.Clone(situation), state))
	})
	return d
}

func messageDiagram(t *testing.T) string {
	_, constants := declared(t, "storage", "event", "MessageState")
	wantAll(t, "states of a message", constants, slices.Collect(maps.Values(messageStates)), func(s storage.MessageState) string { return string(s) })
	d := drawnMessages()
	d.add(begin, string(storage.MessagePending), "inserted", nil)
	return d.mermaid([]string{begin, "pending", "claimed", "unknown", "evidenced", "dead", "delivered", "declined", "cancelled"})
}

const begin = "[*]"
