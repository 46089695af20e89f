package storetest

import (
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// settleTests: one transaction ends a message: with its business writes, and the record or the next message (design.md
// "Messages").
var settleTests = []test{
	{"message, record and rows change together", func(e *env) {
		r, m := e.deferred()
		held := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, held, storage.FenceOfMessage(m)))
		done, row := completed(r, `{"paid":true}`), e.rowKey()
		end := delivered(m)
		e.ok(e.settle(storage.Settlement{
			Message: end, Record: recordEnd(done), Token: e.token(),
			Writes: []storage.Write{e.InsertRow(row, rejects)},
		}))
		e.wantMessage(m.ID, ended(held, end))
		e.wantRecord(r.Key, &done)
		e.wantRow(row, 1)
	}},
	{"attributes that a settlement does not name stay as they are", func(e *env) {
		r := pending(e.full())
		r.Response, r.DoneAt, r.ExpiresAt = response(202, nil), time.Time{}, time.Time{}
		m := e.fullMessage(r)
		e.ok(e.send(storage.Commit{Record: r, Now: base, Token: e.token(), Messages: []storage.Message{m}}))
		end := delivered(m)
		failed := r
		failed.State, failed.Response = storage.StateFailed, response(502, []byte("{}"))
		failed.DoneAt, failed.ExpiresAt, failed.LastError = base.Add(time.Second), base.Add(time.Hour), "provider_unavailable"
		e.ok(e.settle(storage.Settlement{Message: end, Record: recordEnd(failed), Token: e.token()}))
		e.wantMessage(m.ID, ended(m, end))
		e.wantRecord(r.Key, &failed)
	}},
	{"a definite answer settles from any state that is not final, any epoch and any owner", func(e *env) {
		for _, state := range []storage.MessageState{storage.MessagePending, storage.MessageClaimed, storage.MessageUnknown, storage.MessageDead} {
			r, m := e.deferred()
			now := e.claimed(m)
			now.State, now.Epoch = state, 7
			e.ok(e.Store.UpdateMessage(e.ctx, now, storage.FenceOfMessage(m)))
			end, done := delivered(m), completed(r, "{}")
			e.ok(e.settle(storage.Settlement{Message: end, Record: recordEnd(done), Token: e.token()}))
			e.wantMessage(m.ID, ended(now, end))
			e.wantRecord(r.Key, &done)
		}
	}},
	{"nothing settles a final message again", func(e *env) {
		for _, state := range []storage.MessageState{storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled} {
			r, m := e.deferred()
			first := delivered(m)
			first.State = state
			e.ok(e.settle(storage.Settlement{Message: first, Token: e.token()}))
			row, second, next := e.rowKey(), delivered(m), message(r, 2)
			second.Reference = "ch_second"
			err := e.settle(storage.Settlement{
				Message: second, Record: recordEnd(completed(r, "{}")), Token: e.token(), Next: &next,
				Writes: []storage.Write{e.InsertRow(e.takenRow(), rejects), e.AddRow(row)}, // the message decides, not the write
			})
			e.wantMessageConflict(err, ended(m, first))
			e.wantMessage(m.ID, ended(m, first))
			e.wantNothing(r.Key, &r, next.ID, row)
		}
	}},
	{"the fence is demanded", func(e *env) {
		for kind := range ordered(e.messageFences(storage.Message{})) {
			e.sub(kind, func(e *env) {
				r, m := e.deferred()
				held := e.claimed(m)
				e.ok(e.Store.UpdateMessage(e.ctx, held, storage.FenceOfMessage(m)))
				end, row := delivered(m), e.rowKey()
				end.State = storage.MessageCancelled
				fence := e.messageFences(held)[kind]
				for _, wrong := range ordered(fence.wrong) {
					settlement := storage.Settlement{Message: end, Fence: wrong, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}
					e.wantMessageConflict(e.settle(settlement), &held)
					e.wantMessage(m.ID, &held)
					e.wantNothing(r.Key, &r, message(r, 2).ID, row)
				}
				e.ok(e.settle(storage.Settlement{Message: end, Fence: fence.right, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}))
				e.wantMessage(m.ID, ended(held, end))
				e.wantRow(row, 1)
			})
		}
	}},
	{"a record that is only checked decides, and stays as it is", func(e *env) {
		for name, c := range ordered(map[string]struct {
			final, another bool
			ended          bool
			ok             bool
		}{
			"pending": {ok: true}, "pending, wanted ended": {ended: true}, "ended": {final: true, ended: true, ok: true}, "ended, wanted pending": {final: true},
			"another": {final: true, another: true, ended: true, ok: true}, "another, wanted pending": {final: true, another: true},
		}) {
			e.sub(name, func(e *env) {
				r, m := e.deferred()
				now := r
				if c.final {
					now = completed(r, "{}")
					now.Revision = e.revision()
					e.ok(e.Store.Update(e.ctx, now, storage.FenceOf(r)))
				}
				if c.another {
					now = pending(e.again(r))
					e.ok(e.Store.Insert(e.ctx, now, base.Add(1000*time.Hour)))
				}
				whole := m
				whole.Epoch, whole.Revision = m.Epoch+1, e.revision()
				row := e.rowKey()
				err := e.settle(storage.Settlement{
					Message: delivered(m), Replace: &whole, Fence: storage.FenceOfMessage(m), Token: e.token(), Writes: []storage.Write{e.AddRow(row)},
					Check: &storage.RecordCheck{Key: r.Key, OperationID: r.OperationID, Ended: c.ended},
				})
				if e.wantRecord(r.Key, &now); !c.ok {
					e.wantRecordConflict(err, &now)
					e.wantMessage(m.ID, &m)
					e.wantRow(row, 0)
					return
				}
				e.ok(err)
				e.wantMessage(m.ID, &whole)
				e.wantRow(row, 1)
			})
		}
	}},
	{"a record that is gone is ended, and is not pending", func(e *env) {
		for name, ended := range ordered(map[string]bool{"wanted ended": true, "wanted pending": false}) {
			e.sub(name, func(e *env) {
				gone := e.reserved()
				orphan, row := message(gone, 1), e.rowKey()
				carrier := completed(e.reserved(), "{}")
				e.ok(e.send(storage.Commit{Record: carrier, Now: base, Token: e.token(), Messages: []storage.Message{orphan}}))
				err := e.settle(storage.Settlement{
					Message: delivered(orphan), Token: e.token(), Writes: []storage.Write{e.AddRow(row)},
					Check: &storage.RecordCheck{Key: gone.Key, OperationID: gone.OperationID, Ended: ended},
				})
				if ended {
					e.ok(err)
					e.wantRow(row, 1)
				} else {
					e.wantRecordConflict(err, nil)
					e.wantRow(row, 0)
				}
				e.wantRecord(gone.Key, nil)
			})
		}
	}},
	{"the end of a chain lets its earlier messages go, and changes nothing else of them", func(e *env) {
		r, first := e.deferred()
		second := message(r, 2)
		e.ok(e.settle(storage.Settlement{Message: delivered(first), Next: &second, Token: e.token()}))
		end, done := delivered(second), completed(r, "{}")
		end.RemoveAt = base.Add(48 * time.Hour).Truncate(time.Second)
		e.ok(e.settle(storage.Settlement{Message: end, Record: recordEnd(done), Earlier: []storage.MessageID{first.ID}, Token: e.token()}))
		e.wantMessage(second.ID, ended(second, end))
		earlier := ended(first, delivered(first))
		earlier.RemoveAt = end.RemoveAt
		e.wantMessage(first.ID, earlier)
	}},
	{"an earlier message that is gone stays gone, and the settlement happens all the same, once", func(e *env) {
		r, first := e.deferred()
		second, third := message(r, 2), message(r, 3)
		e.ok(e.settle(storage.Settlement{Message: delivered(first), Next: &third, Token: e.token()}))
		end, done, row := delivered(third), completed(r, "{}"), e.rowKey()
		end.RemoveAt = base.Add(48 * time.Hour).Truncate(time.Second)
		send, err := e.Store.PrepareSettle(storage.Settlement{
			Message: end, Fence: open, Record: recordEnd(done), Earlier: []storage.MessageID{first.ID, second.ID}, Token: e.token(),
			Writes: []storage.Write{e.AddRow(row)},
		})
		e.ok(err)
		for range 2 { // as after a lost reply
			e.ok(send(e.ctx))
			e.wantMessage(third.ID, ended(third, end))
			e.wantMessage(second.ID, nil)
			earlier := ended(first, delivered(first))
			earlier.RemoveAt = end.RemoveAt
			e.wantMessage(first.ID, earlier)
			e.wantRecord(r.Key, &done)
			e.wantRow(row, 1)
		}
	}},
	{"what was seen before does not open a final message", func(e *env) {
		_, m := e.deferred()
		first := delivered(m)
		e.ok(e.settle(storage.Settlement{Message: first, Token: e.token()}))
		final := ended(m, first)
		fence := storage.FenceOfMessage(m)
		e.wantMessageConflict(e.settle(storage.Settlement{Message: delivered(m), Fence: fence, Token: e.token()}), final)
	}},
	{"an absent message is a conflict with nothing", func(e *env) {
		r, row := pending(e.reserved()), e.rowKey()
		e.insert(r)
		m := message(r, 1)
		err := e.settle(storage.Settlement{Message: delivered(m), Record: recordEnd(completed(r, "{}")), Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.wantMessageConflict(err, nil)
		e.wantNothing(r.Key, &r, m.ID, row)
	}},
	{"a record that is final already is a conflict and nothing happens", func(e *env) {
		for _, state := range []storage.State{storage.StateCompleted, storage.StateFailed} {
			r, m := e.deferred()
			final := completed(r, "{}")
			final.State = state
			e.ok(e.Store.Update(e.ctx, final, storage.FenceOf(r)))
			e.settleRefused(m, recordEnd(completed(r, "late")), &final)
		}
	}},
	{"a record of another incarnation is untouched", func(e *env) {
		r, m := e.deferred()
		final := completed(r, "{}")
		e.ok(e.Store.Update(e.ctx, final, storage.FenceOf(r)))
		other := pending(e.again(r))
		other.Owner = r.Owner
		e.ok(e.Store.Insert(e.ctx, other, final.ExpiresAt))
		e.settleRefused(m, recordEnd(completed(r, "old")), &other)
	}},
	{"an absent record is a conflict with nothing", func(e *env) {
		other, _ := e.deferred()
		gone := e.reserved()
		orphan := message(gone, 1)
		carrier := completed(e.reserved(), "{}")
		e.ok(e.send(storage.Commit{Record: carrier, Now: base, Token: e.token(), Messages: []storage.Message{orphan}}))
		e.settleRefused(orphan, recordEnd(completed(gone, "{}")), nil)
		e.wantRecord(other.Key, &other)
	}},
	{"without a record part the record is left alone, whatever it is", func(e *env) {
		r, row := completed(e.reserved(), "{}"), e.rowKey()
		m := message(r, 1)
		m.Detached = true
		e.ok(e.send(storage.Commit{Record: r, Now: base, Token: e.token(), Messages: []storage.Message{m}}))
		end := delivered(m)
		e.ok(e.settle(storage.Settlement{Message: end, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}))
		e.wantMessage(m.ID, ended(m, end))
		e.wantRecord(r.Key, &r)
		e.wantRow(row, 1)
	}},
	{"the next message of the chain is inserted and the record stays pending", func(e *env) {
		r, m := e.deferred()
		end, next, row := delivered(m), message(r, 2), e.rowKey()
		next.State, next.Owner, next.Epoch = storage.MessageClaimed, e.owner(), 1
		e.ok(e.settle(storage.Settlement{Message: end, Next: &next, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}))
		e.wantMessage(m.ID, ended(m, end))
		e.wantMessage(next.ID, &next)
		e.wantRecord(r.Key, &r)
		e.wantRow(row, 1)
	}},
	{"a next message that is there already is a conflict and nothing happens", func(e *env) {
		r, m := e.deferred()
		_, there := e.deferred()
		row := e.rowKey()
		err := e.settle(storage.Settlement{Message: delivered(m), Next: &there, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.wantMessageConflict(err, &there)
		e.wantMessage(m.ID, &m)
		e.wantNothing(r.Key, &r, message(r, 2).ID, row)
	}},
	{"failed writes are named by their positions and nothing happens", func(e *env) {
		r, m := e.deferred()
		row, next := e.rowKey(), message(r, 2)
		err := e.settle(storage.Settlement{
			Message: delivered(m), Next: &next, Record: recordEnd(completed(r, "{}")), Token: e.token(),
			Writes: []storage.Write{e.InsertRow(e.takenRow(), rejects), e.AddRow(row), e.InsertRow(e.takenRow(), retries)},
		})
		e.wantWriteFailed(err, 0, 2)
		e.wantMessage(m.ID, &m)
		e.wantNothing(r.Key, &r, next.ID, row)
	}},
	{"evidence is kept, and no evidence removes none", func(e *env) {
		_, m := e.deferred()
		dead := delivered(m)
		dead.State, dead.DoneAt, dead.SweepAt = storage.MessageDead, time.Time{}, base.Add(time.Hour)
		dead.KeptDelivered = &storage.Kept{Evidence: []byte("\x00 the provider's answer")}
		e.ok(e.settle(storage.Settlement{Message: dead, Token: e.token()}))
		parked := ended(m, dead)
		e.wantMessage(m.ID, parked)
		end := delivered(m)
		e.ok(e.settle(storage.Settlement{Message: end, Token: e.token()}))
		e.wantMessage(m.ID, ended(*parked, end))
	}},
	{"a settlement is frozen when it is prepared", func(e *env) {
		r, m := e.deferred()
		done, mine := completed(r, `{"n":1}`), completed(r, `{"n":1}`)
		end, next, wantNext, row, other := delivered(m), message(r, 2), message(r, 2), e.rowKey(), e.rowKey()
		settlement := storage.Settlement{Message: end, Fence: open, Record: recordEnd(mine), Next: &next, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}
		send, err := e.Store.PrepareSettle(settlement)
		e.ok(err)
		scribble(mine.Response)
		settlement.Record.LastError = "scribbled"
		next.Topic = "scribbled"
		copy(next.Payload, "!!!")
		settlement.Writes[0] = e.AddRow(other)
		e.ok(send(e.ctx))
		e.wantRecord(r.Key, &done)
		e.wantMessage(m.ID, ended(m, end))
		e.wantMessage(next.ID, &wantNext)
		e.wantRow(row, 1)
		e.wantRow(other, 0)
	}},
}

// settleRefused demands that a settlement fails on its record, together with a write that fails too, and leaves no trace.
func (e *env) settleRefused(m storage.Message, end *storage.RecordEnd, existing *storage.Record) {
	e.Helper()
	row := e.rowKey()
	err := e.settle(storage.Settlement{
		Message: delivered(m), Record: end, Token: e.token(),
		Writes: []storage.Write{e.InsertRow(e.takenRow(), rejects), e.AddRow(row)},
	})
	e.wantRecordConflict(err, existing)
	e.wantMessage(m.ID, &m)
	e.wantNothing(end.Key, existing, m.OperationID.Message(2), row)
}

// delivered ends the message with the provider's answer.
func delivered(m storage.Message) storage.MessageEnd {
	return storage.MessageEnd{
		ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, State: storage.MessageDelivered, DoneAt: base.Add(2 * time.Second), Revision: named("ended", string(m.ID)),
		Reference: "ch_2", LastOutcome: "delivered", SettledBy: storage.SettledByWebhook,
	}
}

// ended is the message as the settlement leaves it.
func ended(m storage.Message, end storage.MessageEnd) *storage.Message {
	m.State, m.DoneAt, m.SweepAt = end.State, end.DoneAt, end.SweepAt
	m.Revision, m.Reference, m.LastOutcome, m.SettledBy = end.Revision, end.Reference, end.LastOutcome, end.SettledBy
	if end.KeptDelivered != nil {
		m.KeptDelivered = end.KeptDelivered
	}
	if end.KeptDeclined != nil {
		m.KeptDeclined = end.KeptDeclined
	}
	m.Unfailed = m.Unfailed || end.Unfailed
	if !end.RemoveAt.IsZero() {
		m.RemoveAt = end.RemoveAt
	}
	return &m
}

// recordEnd is what a settlement makes of a pending record so that it becomes done.
func recordEnd(done storage.Record) *storage.RecordEnd {
	return &storage.RecordEnd{
		Key: done.Key, OperationID: done.OperationID, State: done.State, Response: done.Response,
		Revision: done.Revision, DoneAt: done.DoneAt, ExpiresAt: done.ExpiresAt, FreeAt: done.FreeAt, Expiry: done.Expiry, LastError: done.LastError,
	}
}
