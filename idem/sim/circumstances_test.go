package sim

import (
	"slices"
	"strings"
	"testing"
)

// circumstance is under what each call of a kind is cut.
type circumstance struct {
	plan
	// by begins the names of calls that must be among them: of people, of webhooks; "" where none must.
	by string
}

// circumstances are those of a kind. In each an operator looks in the end at what is left to decide.
func circumstances(t *testing.T, k kind) map[string]circumstance {
	t.Helper()
	there := plan{k, map[string]int{thereIsAnOperator: 1}}
	gone := there.with("client 1 of k1, try 1 gives up", 1)
	all := map[string]circumstance{"client there": {there, ""}, "client gone": {gone, ""}}
	switch {
	case k == pure:
		amended := there.with(thereAreAmenders, 1)
		all["taken out of use"] = circumstance{amended.with("amender of k1 busts", amenderBusts), "amender"}
		all["extended"] = circumstance{amended.with("amender of k1 busts", amenderBusts+1), "amender"}
	case k == atomicWrite:
		all["extended"] = circumstance{there.with(thereAreAmenders, 1), "amender"}
	case k == wrappedOperator, k == wrappedReleased:
		all["in doubt, made"] = circumstance{there.lost(t, "k1", callHasNoReply), "operator"}
		all["in doubt, not made"] = circumstance{there.lost(t, "k1", callNeverArrives), "operator"}
	}
	if k.topic() == "" {
		return all
	}
	all["wake-up lost"] = circumstance{gone.with("stream record of k1 to "+k.topic()+" 1", 1), ""}
	all["declined"] = circumstance{there.declined(), ""}
	all["webhook"] = circumstance{there.posted(t), "webhook"}
	switch once := there.with(oneAttempt, 1); {
	case k.chained():
		all["undoing refused"] = circumstance{there.declined().lost(t, undo, callRefused), "operator"}
	case k == keysAlone: // another attempt would bring certainty
		all["dead, made"] = circumstance{once.lost(t, k.topic(), callHasNoReply), "operator"}
		all["dead, closed"] = circumstance{once.lost(t, k.topic(), callNeverArrives).with(operatorsDo, operatorsClose), "operator"}
		all["dead, started anew"] = circumstance{once.lost(t, k.topic(), callNeverArrives).with(operatorsDo, operatorsRedrive), "operator"}
	case k.topic() == withNothing:
		all["in doubt, made"] = circumstance{there.lost(t, k.topic(), callHasNoReply), "operator"}
		all["in doubt, closed"] = circumstance{there.lost(t, k.topic(), callNeverArrives).with(operatorsDo, operatorsClose), "operator"}
	}
	return all
}

// declined is the plan in which the provider declines a message's call, or the second of a chain's.
func (p plan) declined() plan {
	topic := p.kind.topic()
	if p.kind.chained() {
		topic = second
	}
	name := "provider declines " + topic + " of k1"
	if !honours(topic) {
		name += " 1"
	}
	return p.with(name, 1)
}

// posted is the plan in which the client is gone, the first call's answer is lost, and the provider posts what became of it, and of
// each later one. Where it has no keys and no books, it posts only what it declined.
func (p plan) posted(t *testing.T) plan {
	t.Helper()
	if p.kind.topic() == withNothing {
		p = p.declined()
	}
	for _, topic := range []string{p.kind.topic(), second, undo} {
		p = p.with("webhook about "+topic+" of k1 1", 0)
	}
	return p.with("client 1 of k1, try 1 gives up", 1).lost(t, p.kind.topic(), callHasNoReply)
}

// lost is the plan in which the first call about something goes wrong so.
func (p plan) lost(t *testing.T, what string, way int) plan {
	t.Helper()
	_, calls := p.told(t)
	at := slices.IndexFunc(calls, func(c plannedCall) bool { return c.providers() && strings.Contains(c.name, " calls "+what) })
	if at < 0 {
		t.Fatalf("the provider is not called about %s", what)
	}
	return p.with(calls[at].name, way)
}

// acts says whether calls of those who must act are among the plan's.
func (c circumstance) acts(calls []plannedCall) bool {
	return slices.ContainsFunc(calls, c.theirs)
}

// theirs says whether a call is of those who must act; where nobody must, each is.
func (c circumstance) theirs(call plannedCall) bool { return strings.HasPrefix(call.name, c.by) }
