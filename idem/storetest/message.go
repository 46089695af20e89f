package storetest

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// messageTests: a message's progress is written under exactly what was seen (design.md "Who may write what").
var messageTests = []test{
	{"an absent message reads as nothing", func(e *env) {
		e.wantMessage(e.reserved().OperationID.Message(1), nil)
	}},
	{"a claim is written where the fence admits the stored message", func(e *env) {
		_, m := e.deferred()
		claimed := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, claimed, storage.FenceOfMessage(m)))
		e.wantMessage(m.ID, &claimed)
	}},
	{"any one part of the fence that is wrong is a conflict and changes nothing", func(e *env) {
		_, m := e.deferred()
		held := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, held, storage.FenceOfMessage(m)))
		for _, fence := range ordered(e.messageFences(held)) {
			for name, wrong := range ordered(fence.wrong) {
				e.sub(name, func(e *env) {
					backed := held
					backed.State, backed.Owner, backed.Revision = storage.MessagePending, "", e.revision()
					e.wantMessageConflict(e.Store.UpdateMessage(e.ctx, backed, wrong), &held)
					e.wantMessageConflict(e.Store.PatchMessage(e.ctx, delivered(m), wrong), &held)
					e.wantMessageConflict(e.Store.PostponeMessage(e.ctx, m.ID, base.Add(time.Hour), wrong), &held)
					e.wantMessage(m.ID, &held)
				})
			}
		}
	}},
	{"a message is written where one of the fence's alternatives holds", func(e *env) {
		_, m := e.deferred()
		held := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, held, storage.FenceOfMessage(m)))
		for name := range ordered(e.messageFences(held)) {
			e.sub(name, func(e *env) {
				e.ok(e.Store.UpdateMessage(e.ctx, held, e.messageFences(held)[name].right))
				e.wantMessage(m.ID, &held)
			})
		}
	}},
	{"evidence finds every message that is not final, and with NotDead none that is dead", func(e *env) {
		for _, state := range []storage.MessageState{
			storage.MessagePending, storage.MessageClaimed, storage.MessageUnknown, storage.MessageEvidenced, storage.MessageDead,
			storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled,
		} {
			e.sub(string(state), func(e *env) {
				_, m := e.deferred()
				now := e.claimed(m)
				now.State = state
				e.ok(e.Store.UpdateMessage(e.ctx, now, storage.FenceOfMessage(m)))
				if err := e.Store.PatchMessage(e.ctx, delivered(m), storage.MessageFence{Open: true, NotDead: true}); state.Final() || state == storage.MessageDead {
					e.wantMessageConflict(err, &now)
				} else {
					e.ok(err)
					e.wantMessage(m.ID, ended(now, delivered(m)))
					return
				}
				if err := e.Store.PatchMessage(e.ctx, delivered(m), open); state.Final() {
					e.wantMessageConflict(err, &now)
				} else {
					e.ok(err)
				}
			})
		}
	}},
	{"a patch erases nothing of a claim that came meanwhile", func(e *env) {
		_, m := e.deferred()
		held := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, held, storage.FenceOfMessage(m)))
		kept := delivered(m)
		kept.State, kept.DoneAt, kept.SweepAt = storage.MessageEvidenced, time.Time{}, base.Add(time.Hour)
		kept.KeptDelivered = &storage.Kept{Reference: "ch_1", Evidence: []byte("yes")}
		e.ok(e.Store.PatchMessage(e.ctx, kept, open))
		e.wantMessage(m.ID, ended(held, kept))
		no := kept
		no.KeptDelivered, no.KeptDeclined, no.Unfailed = nil, &storage.Kept{}, true
		e.ok(e.Store.PatchMessage(e.ctx, no, open))
		both := ended(*ended(held, kept), no)
		e.wantMessage(m.ID, both)
		e.ok(e.Store.PatchMessage(e.ctx, kept, open))
		e.wantMessage(m.ID, ended(*both, kept))
	}},
	{"a message with the largest payload keeps evidence that contradicts itself", func(e *env) {
		for _, deliveredFirst := range []bool{true, false} {
			_, m := e.deferred()
			held := e.claimed(m)
			held.Payload = bytes.Repeat([]byte{0xfe}, storage.PayloadBytesMax)
			e.ok(e.Store.UpdateMessage(e.ctx, held, storage.FenceOfMessage(m)))
			name := strings.Repeat("x", outbox.ReferenceBytesMax)
			most := &storage.Kept{Reference: name, Evidence: make([]byte, outbox.EvidenceBytesMax)}
			one := delivered(m)
			one.State, one.DoneAt, one.SweepAt, one.Reference = storage.MessageEvidenced, time.Time{}, base.Add(time.Hour), name
			other := one
			if deliveredFirst {
				one.KeptDelivered, other.KeptDeclined = most, most
			} else {
				one.KeptDeclined, other.KeptDelivered = most, most
			}
			e.ok(e.Store.PatchMessage(e.ctx, one, open))
			e.ok(e.Store.PatchMessage(e.ctx, other, open))
			e.wantMessage(m.ID, ended(*ended(held, one), other))
		}
	}},
	{"a message that is postponed keeps everything else, its revision too", func(e *env) {
		_, m := e.deferred()
		later := m
		later.SweepAt = base.Add(time.Hour)
		e.ok(e.Store.PostponeMessage(e.ctx, m.ID, later.SweepAt, storage.FenceOfMessage(m)))
		e.wantMessage(m.ID, &later)
	}},
	{"a message is postponed to some time, and never to none", func(e *env) {
		_, m := e.deferred()
		if err := e.Store.PostponeMessage(e.ctx, m.ID, time.Time{}, storage.FenceOfMessage(m)); err == nil {
			e.Error("it was postponed to no time")
		}
		e.wantMessage(m.ID, &m)
	}},
	{"a fence that admits nothing is refused", func(e *env) {
		_, m := e.deferred()
		for _, err := range []error{
			e.Store.UpdateMessage(e.ctx, m, storage.MessageFence{}), e.Store.PatchMessage(e.ctx, delivered(m), storage.MessageFence{NotDead: true}),
			e.Store.PostponeMessage(e.ctx, m.ID, base, storage.MessageFence{}),
		} {
			var conflict *storage.MessageConflictError
			if err == nil || errors.As(err, &conflict) {
				e.Errorf("got %v, want another error", err)
			}
		}
		e.wantMessage(m.ID, &m)
	}},
	{"an absent message is a conflict with nothing, and stays absent", func(e *env) {
		m := message(e.reserved(), 1)
		e.wantMessageConflict(e.Store.UpdateMessage(e.ctx, e.claimed(m), storage.FenceOfMessage(m)), nil)
		e.wantMessage(m.ID, nil)
	}},
	{"every field round-trips, and fields that became empty are gone", func(e *env) {
		r, m := e.deferred()
		full := e.fullMessage(r)
		e.ok(e.Store.UpdateMessage(e.ctx, full, storage.FenceOfMessage(m)))
		e.wantMessage(m.ID, &full)
		bare := m
		bare.Payload, bare.NextAttemptAt = nil, time.Time{}
		e.ok(e.Store.UpdateMessage(e.ctx, bare, storage.FenceOfMessage(full)))
		e.wantMessage(m.ID, &bare)
	}},
	{"evidence is stored whatever its description is", func(e *env) {
		for name, text := range ordered(map[string]string{"not UTF-8": "502 \xff\xfe", "a NUL": "502 \x00"}) {
			e.sub(name, func(e *env) {
				_, m := e.deferred()
				kept := delivered(m)
				kept.State, kept.DoneAt, kept.SweepAt = storage.MessageEvidenced, time.Time{}, base.Add(time.Hour)
				kept.Reference, kept.LastOutcome = text, text
				kept.KeptDelivered = &storage.Kept{Reference: text, Evidence: []byte(text)}
				e.ok(e.Store.PatchMessage(e.ctx, kept, open))
				if got := e.message(m.ID); got.State != kept.State || got.KeptDelivered == nil || string(got.KeptDelivered.Evidence) != text {
					e.Errorf("got %+v, want it evidenced", got)
				}
			})
		}
	}},
	{"what nothing is known to have happened for loses its open_since, and nothing else of the claim's past", func(e *env) {
		_, m := e.deferred()
		held := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, held, storage.FenceOfMessage(m)))
		backed := held
		backed.State, backed.OpenSince, backed.LastOutcome = storage.MessagePending, time.Time{}, "not executed"
		backed.NextAttemptAt, backed.SweepAt = base.Add(time.Minute), base.Add(time.Minute)
		e.ok(e.Store.UpdateMessage(e.ctx, backed, storage.FenceOfMessage(held)))
		e.wantMessage(m.ID, &backed)
	}},
	{"a message of another release is returned, and says that it can't be read", func(e *env) {
		r := pending(e.reserved())
		schema, state := message(r, 1), message(r, 2)
		schema.SchemaVersion = storage.SchemaVersion + 1
		state.State, state.SweepAt = "suspended", time.Time{}
		e.ok(e.send(storage.Commit{Record: r, Now: base, Token: e.token(), Messages: []storage.Message{schema, state}}))
		for _, m := range []storage.Message{schema, state} {
			e.wantMessage(m.ID, &m)
			if got := e.message(m.ID); got != nil && got.Readable() {
				e.Errorf("a message with schema %d and state %s counts as readable", m.SchemaVersion, m.State)
			}
		}
	}},
	{"definite evidence settles no message of another release", func(e *env) {
		for _, change := range []func(*storage.Message){
			func(m *storage.Message) { m.SchemaVersion = storage.SchemaVersion + 1 },
			func(m *storage.Message) { m.State, m.SweepAt = "suspended", time.Time{} },
		} {
			_, m := e.deferred()
			changed := m
			change(&changed)
			e.ok(e.Store.UpdateMessage(e.ctx, changed, storage.FenceOfMessage(m)))
			ended := m
			ended.State = storage.MessageDelivered
			e.wantMessageConflict(e.Store.UpdateMessage(e.ctx, ended, open), &changed)
			e.wantMessage(m.ID, &changed)
		}
	}},
	{"a caller that changes its message in place changes nothing that is stored", func(e *env) {
		_, m := e.deferred()
		want, mine := m, m
		want.Payload, mine.Payload = []byte(`{"amount":2}`), []byte(`{"amount":2}`)
		e.ok(e.Store.UpdateMessage(e.ctx, mine, storage.FenceOfMessage(m)))
		copy(mine.Payload, "!!!")
		e.wantMessage(m.ID, &want)
		copy(e.message(m.ID).Payload, "!!!")
		e.wantMessage(m.ID, &want)
	}},
}

// messageFences are fences that admit the message as it is, each with the ways in which a part of it can be wrong alone.
func (e *env) messageFences(m storage.Message) map[string]struct {
	right storage.MessageFence
	wrong map[string]storage.MessageFence
} {
	type fences = map[string]storage.MessageFence
	wrong := func(f storage.MessageFence, change func(*storage.MessageFence)) storage.MessageFence {
		change(&f)
		return f
	}
	seen := storage.FenceOfMessage(m)
	held := storage.MessageFence{Owner: m.Owner, Epoch: m.Epoch, States: []storage.MessageState{storage.MessageDelivered, m.State}}
	other := e.owner()
	return map[string]struct {
		right storage.MessageFence
		wrong map[string]storage.MessageFence
	}{
		"seen": {seen, fences{"revision": {Revision: e.revision()}}},
		"held": {held, fences{
			"state":       wrong(held, func(f *storage.MessageFence) { f.States = []storage.MessageState{storage.MessagePending} }),
			"older epoch": wrong(held, func(f *storage.MessageFence) { f.Epoch-- }),
			"newer epoch": wrong(held, func(f *storage.MessageFence) { f.Epoch++ }),
			"owner":       wrong(held, func(f *storage.MessageFence) { f.Owner = other }),
			"no owner":    wrong(held, func(f *storage.MessageFence) { f.Owner = "" }),
		}},
		"either": {storage.MessageFence{Revision: e.revision(), Owner: m.Owner, Epoch: m.Epoch, States: []storage.MessageState{m.State}}, nil},
		"open":   {open, nil},
	}
}
