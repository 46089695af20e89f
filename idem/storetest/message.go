package storetest

import (
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// messageTests: a message's progress is written under exactly what was seen (design.md "Messages").
var messageTests = []test{
	{"an absent message reads as nothing", func(e *env) {
		e.wantMessage(e.reserved().OperationID.Message(1), nil)
	}},
	{"a claim is written where the fence admits the stored message", func(e *env) {
		_, m := e.deferred()
		claimed := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, claimed, idem.FenceOfMessage(m)))
		e.wantMessage(m.ID, &claimed)
	}},
	{"any one part of the fence that is wrong is a conflict and changes nothing", func(e *env) {
		for name, wrong := range ordered(e.wrongMessageFences()) {
			e.sub(name, func(e *env) {
				_, m := e.deferred()
				held := e.claimed(m)
				e.ok(e.Store.UpdateMessage(e.ctx, held, idem.FenceOfMessage(m)))
				backed := held
				backed.State, backed.Owner = idem.MessagePending, ""
				e.wantMessageConflict(e.Store.UpdateMessage(e.ctx, backed, wrong(idem.FenceOfMessage(held))), &held)
				e.wantMessage(m.ID, &held)
			})
		}
	}},
	{"an absent message is a conflict with nothing, and stays absent", func(e *env) {
		m := message(e.reserved(), 1)
		e.wantMessageConflict(e.Store.UpdateMessage(e.ctx, e.claimed(m), idem.FenceOfMessage(m)), nil)
		e.wantMessage(m.ID, nil)
	}},
	{"every field round-trips, and fields that became empty are gone", func(e *env) {
		r, m := e.deferred()
		full := e.fullMessage(r)
		e.ok(e.Store.UpdateMessage(e.ctx, full, idem.FenceOfMessage(m)))
		e.wantMessage(m.ID, &full)
		bare := m
		bare.Payload, bare.NextAttemptAt = nil, time.Time{}
		e.ok(e.Store.UpdateMessage(e.ctx, bare, idem.FenceOfMessage(full)))
		e.wantMessage(m.ID, &bare)
	}},
	{"what nothing is known to have happened for loses its open_since, and nothing else of the claim's past", func(e *env) {
		_, m := e.deferred()
		held := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, held, idem.FenceOfMessage(m)))
		backed := held
		backed.State, backed.OpenSince, backed.LastOutcome = idem.MessagePending, time.Time{}, "not executed"
		backed.NextAttemptAt, backed.SweepAt = base.Add(time.Minute), base.Add(time.Minute)
		e.ok(e.Store.UpdateMessage(e.ctx, backed, idem.FenceOfMessage(held)))
		e.wantMessage(m.ID, &backed)
	}},
	{"a message of another release is returned, and says that it can't be read (peers.md H17)", func(e *env) {
		r := pending(e.reserved())
		schema, state := message(r, 1), message(r, 2)
		schema.SchemaVersion = idem.SchemaVersion + 1
		state.State, state.SweepAt = "suspended", time.Time{}
		e.ok(e.send(idem.Commit{Record: r, Now: base, Token: e.token(), Messages: []idem.Message{schema, state}}))
		for _, m := range []idem.Message{schema, state} {
			e.wantMessage(m.ID, &m)
			if got := e.message(m.ID); got != nil && got.Readable() {
				e.Errorf("a message with schema %d and state %s counts as readable", m.SchemaVersion, m.State)
			}
		}
	}},
	{"a caller that changes its message in place changes nothing that is stored (peers.md P7)", func(e *env) {
		_, m := e.deferred()
		want, mine := m, m
		want.Payload, mine.Payload = []byte(`{"amount":2}`), []byte(`{"amount":2}`)
		e.ok(e.Store.UpdateMessage(e.ctx, mine, idem.FenceOfMessage(m)))
		copy(mine.Payload, "!!!")
		e.wantMessage(m.ID, &want)
		copy(e.message(m.ID).Payload, "!!!")
		e.wantMessage(m.ID, &want)
	}},
}

// wrongMessageFences are the ways in which one part of a message's fence can be wrong alone.
func (e *env) wrongMessageFences() map[string]func(idem.MessageFence) idem.MessageFence {
	other := e.owner()
	return map[string]func(idem.MessageFence) idem.MessageFence{
		"state":       func(f idem.MessageFence) idem.MessageFence { f.State = idem.MessagePending; return f },
		"older epoch": func(f idem.MessageFence) idem.MessageFence { f.Epoch--; return f },
		"newer epoch": func(f idem.MessageFence) idem.MessageFence { f.Epoch++; return f },
		"owner":       func(f idem.MessageFence) idem.MessageFence { f.Owner = other; return f },
		"no owner":    func(f idem.MessageFence) idem.MessageFence { f.Owner = ""; return f },
	}
}
