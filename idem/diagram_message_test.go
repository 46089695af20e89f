package idem_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

const messageProse = "A message is inserted with its record's commit, or by the settlement of the one before it. Inline first inserts it as claimed,\n" +
	"and refused calls with nothing open are given up by whoever meets the message next (ADR 0011, 0007). \"open\" is a call that may\n" +
	"have happened; \"over\" are attempts or age. \"settle\" and \"fail\" end the record in the same transaction.\n"

var allMessageStates = []idem.MessageState{
	idem.MessagePending, idem.MessageClaimed, idem.MessageUnknown, idem.MessageDead, idem.MessageDelivered, idem.MessageDeclined, idem.MessageCancelled,
}

// messageDimensions are the situations that a message can be in besides its state.
var messageDimensions = []dimension{
	{"due", []string{"yes", "no"}, only("due", "yes")},
	{"open", []string{"nothing", "a call", "for too long"}, sayOpen},
	{"still", []string{"a call", "for too long"}, only("open for too long", "for too long")},
	{"keys", []string{"honoured", "not honoured"}, func(seen []string) string { return "keys " + seen[0] }},
	{"over", []string{"no", "attempts", "age", "refused"}, func(seen []string) string {
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
	{"place", []string{"first", "later", "detached"}, only("the first message", "first")},
	{"absence", []string{"provable", "too early", "too late"}, func(seen []string) string {
		switch {
		case slices.Contains(seen, "too early"):
			return ""
		case slices.Contains(seen, "provable"):
			return "after the wait for absence"
		}
		return "after the last probe"
	}},
	{"before", []string{"no", "yes"}, func(seen []string) string {
		return map[string]string{"no": "no other call open", "yes": "another call open"}[seen[0]]
	}},
}

// messageSituations are the dimensions without "still", which is how "open" is said of what is open.
var messageSituations = slices.DeleteFunc(slices.Clone(messageDimensions), func(d dimension) bool { return d.name == "still" })

// arises says whether a message of the state can be in the situation: a claim opens a call, and only a claim does.
func arises(state idem.MessageState, situation map[string]string) bool {
	open, before := situation["open"] != "nothing", situation["before"] == "yes"
	switch {
	case open && situation["claim"] == "never", before && !open:
		return false
	case state == idem.MessageClaimed, state == idem.MessageUnknown:
		return open && situation["claim"] == "before"
	}
	return true
}

// telling drops what a state can't depend on: what is claimed or unknown has a call open, only what is to be offered is
// due, only a claim has another call beside its own, and only of what is parked can be proven that nothing happened.
func telling(situation map[string]string, state idem.MessageState) map[string]string {
	if state != idem.MessagePending && state != idem.MessageClaimed {
		delete(situation, "due")
	}
	if state != idem.MessageUnknown && state != idem.MessageDead {
		delete(situation, "absence")
	}
	if state != idem.MessageClaimed {
		delete(situation, "before")
	}
	if state == idem.MessageClaimed || state == idem.MessageUnknown {
		situation["still"] = situation["open"]
		delete(situation, "open")
	}
	return situation
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

func messageRules(situation map[string]string) outbox.Rules {
	return outbox.Rules{
		KeysHonoured: situation["keys"] == "honoured", KeyRetention: time.Hour, Margin: time.Minute, AbsentAfter: time.Minute,
		AttemptsMax: 3, AgeMax: 24 * time.Hour, AbandonAfter: 24 * time.Hour, UnknownMax: 24 * time.Hour, SweepGrace: 15 * time.Second,
		Probed: situation["probe"] == "yes",
	}
}

func messageIn(state idem.MessageState, situation map[string]string) idem.Message {
	m := idem.Message{
		ID: "op_1.1", Index: 1, OperationID: "op_1", Topic: "a.b", State: state, SchemaVersion: idem.SchemaVersion, CreatedAt: noon.Add(-2 * time.Hour),
		NextAttemptAt: noon, LeaseUntil: noon.Add(-time.Hour), Owner: "holder", Epoch: 3, Sealed: situation["sealed"] == "yes",
		Detached: situation["place"] == "detached",
	}
	if situation["due"] == "no" {
		m.NextAttemptAt, m.LeaseUntil = noon.Add(time.Second), noon.Add(time.Second)
	} else if situation["absence"] == "too early" {
		m.LeaseUntil = noon.Add(-time.Second)
	} else if situation["absence"] == "too late" {
		m.LeaseUntil = noon.Add(-25 * time.Hour)
	}
	if situation["place"] == "later" {
		m.ID, m.Index = "op_1.2", 2
	}
	if situation["claim"] == "before" {
		m.FirstClaimedAt = noon.Add(-2 * time.Hour)
	}
	switch situation["open"] {
	case "a call":
		m.OpenSince = noon.Add(-time.Minute)
	case "for too long":
		m.OpenSince = noon.Add(-2 * time.Hour)
	}
	switch situation["over"] {
	case "attempts":
		m.Attempts = 3
	case "age":
		m.CreatedAt = noon.Add(-25 * time.Hour)
	case "refused":
		m.LastOutcome = outbox.Refused{}.Name()
	}
	return m
}

// messageEvents are the events in each of their forms.
func messageEvents(situation map[string]string) map[string]outbox.Event {
	answer := outbox.Answered{Owner: "holder", Epoch: 3, OpenBefore: situation["before"] == "yes", Backoff: time.Second}
	of := func(o outbox.Outcome) outbox.Answered { answer.Outcome = o; return answer }
	stranger, stale := of(outbox.NotExecuted{}), of(outbox.NotExecuted{})
	stranger.Owner, stale.Epoch = "guest", 2
	events := map[string]outbox.Event{
		"woken":  outbox.Woken{Owner: "guest", LeaseUntil: noon.Add(time.Minute)},
		"absent": outbox.ProvenAbsent{Epoch: 3}, "absent (another epoch)": outbox.ProvenAbsent{Epoch: 2},
		"undecided": outbox.Undecided{Epoch: 3, Backoff: time.Minute}, "undecided (nobody to ask)": outbox.Undecided{Epoch: 3, Unasked: true, Backoff: time.Minute},
		"abandoned": outbox.Abandoned{}, "closed": outbox.Closed{}, "redriven": outbox.Redriven{},
		"not_executed (another owner)": stranger, "not_executed (another epoch)": stale,
		"answered with nothing": of(nil), "refused without proof": of(outbox.Refused{Unproven: true}),
	}
	for _, o := range allOutcomes {
		events[o.Name()+" (answer)"] = of(o)
		events[o.Name()+" (evidence)"] = outbox.Evidence{Outcome: o}
		events["unsettled ("+o.Name()+")"] = outbox.Unsettled{Outcome: o}
	}
	return events
}

var allOutcomes = []outbox.Outcome{outbox.Delivered{}, outbox.Declined{}, outbox.NotExecuted{}, outbox.Ambiguous{}, outbox.Refused{}}

// drawnMessages steps every event in every situation.
func drawnMessages() *diagram {
	d := &diagram{dimensions: messageDimensions}
	product(messageSituations, func(situation map[string]string) {
		events := messageEvents(situation)
		for _, state := range allMessageStates {
			if !arises(state, situation) {
				continue
			}
			m := messageIn(state, situation)
			for name, event := range events {
				next, effect, err := outbox.Step(m, event, messageRules(situation), noon)
				if err == nil && effect != outbox.EffectNone && effect != outbox.EffectWait {
					d.add(string(state), string(next.State), shortened(name)+" / "+effect.String(), telling(maps.Clone(situation), state))
				}
			}
		}
	})
	return d
}

func messageDiagram(t *testing.T) string {
	types, constants := declared(t, "outbox", "event")
	if len(constants) > 0 {
		t.Errorf("states of a message in package outbox: %v", constants)
	}
	_, constants = declared(t, ".", "event", "MessageState")
	outcomes, _ := declared(t, "outbox", "outcome")
	wantAll(t, "states of a message", constants, allMessageStates, func(s idem.MessageState) string { return string(s) })
	wantAll(t, "outcomes", outcomes, allOutcomes, typeName[outbox.Outcome])
	var events []outbox.Event
	for _, e := range messageEvents(nil) {
		events = append(events, e)
	}
	wantAll(t, "events of a message", types, events, typeName[outbox.Event])
	untouched(t)

	d := drawnMessages()
	d.add(begin, string(idem.MessagePending), "inserted", nil)
	return d.mermaid([]string{begin, "pending", "claimed", "unknown", "dead", "delivered", "declined", "cancelled"})
}

// untouched checks that a message is changed only where it is to be written.
func untouched(t *testing.T) {
	t.Helper()
	product(messageSituations, func(situation map[string]string) {
		for _, state := range allMessageStates {
			m := messageIn(state, situation)
			for _, event := range messageEvents(situation) {
				next, effect, err := outbox.Step(m, event, messageRules(situation), noon)
				idle := err != nil || effect == outbox.EffectNone || effect == outbox.EffectWait
				if idle && !reflect.DeepEqual(next, m) {
					t.Fatalf("%s %T changes a message that is not to be written, effect %v, %v", state, event, effect, err)
				}
			}
		}
	})
}

const begin = "[*]"

// shortened drops a form that makes no difference to where an arrow goes.
func shortened(name string) string {
	form := strings.Index(name, " (")
	if form < 0 {
		return name
	}
	return name[:form]
}
