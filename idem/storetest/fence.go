package storetest

import (
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// fenceTests: each alternative of a fence admits what it says and nothing else, whichever write it guards.
var fenceTests = []test{
	{"a revision admits exactly the row that was seen", func(e *env) {
		for write, put := range ordered(e.fenced()) {
			e.sub(write, func(e *env) {
				r := e.insert(e.reserved())
				other := rewritten(r)
				e.ok(put(other, storage.FenceOf(r)))
				e.wantRecordConflict(put(completed(r, "late"), storage.FenceOf(r)), &other)
				e.wantRecord(r.Key, &other)
			})
		}
	}},
	{"a revision under another operation id admits nothing (peers.md H6)", func(e *env) {
		r := e.insert(e.reserved())
		fence := storage.FenceOf(r)
		fence.OperationID = e.operationID(r.Key)
		e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "zombie"), fence), &r)
		e.wantRecord(r.Key, &r)
	}},
	{"a row without a revision is admitted by none", func(e *env) {
		r := e.reserved()
		r.Revision = ""
		e.insert(r)
		e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "late"), storage.Fence{OperationID: r.OperationID, Revision: "any"}), &r)
		e.ok(e.Store.Update(e.ctx, completed(r, "own"), storage.FenceOfHolder(r)))
	}},
	{"the holder is admitted in any epoch where the fence says so, and still only as the owner, in a listed state", func(e *env) {
		r := e.reserved()
		r.Kind, r.State, r.Epoch = storage.KindWrapped, storage.StateFailedRetryable, 3 // freed by others, and fenced off twice
		e.insert(r)
		first := r
		first.Epoch = 1
		any := storage.FenceOfHolder(first, storage.StateInProgress, storage.StateUnknown, storage.StateFailedRetryable)
		e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "late"), any), &r)
		any.AnyEpoch = true
		for name, wrong := range ordered(map[string]func(storage.Fence) storage.Fence{
			"owner":        func(f storage.Fence) storage.Fence { f.Owner = e.owner(); return f },
			"operation id": func(f storage.Fence) storage.Fence { f.OperationID = e.operationID(r.Key); return f },
			"state":        func(f storage.Fence) storage.Fence { f.States = f.States[:2]; return f },
		}) {
			e.sub(name, func(e *env) {
				e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "late"), wrong(any)), &r)
			})
		}
		done := completed(r, "late")
		e.ok(e.Store.Update(e.ctx, done, any))
		e.wantRecord(r.Key, &done)
	}},
	{"a record frees its key at the millisecond that it says, in the three states that do, and in no other", func(e *env) {
		for _, c := range []struct {
			state storage.State
			frees bool
		}{
			{storage.StateCompleted, true}, {storage.StateFailed, true}, {storage.StateFailedRetryable, true},
			{storage.StateInProgress, false}, {storage.StatePending, false}, {storage.StateUnknown, false}, {"suspended", false},
		} {
			for path, insert := range ordered(e.inserters()) {
				e.sub(string(c.state)+", "+path, func(e *env) {
					r, free := e.reserved(), base.Add(time.Hour)
					r.State, r.FreeAt = c.state, free
					e.insert(r)
					next := e.again(r)
					e.wantRecordConflict(insert(next, free.Add(-time.Millisecond)), &r)
					if !c.frees {
						e.wantRecordConflict(insert(next, free.AddDate(1, 0, 0)), &r)
						return
					}
					e.ok(insert(next, free))
					e.wantRecord(r.Key, &next)
				})
			}
		}
	}},
	{"a record that does not say when it frees its key never does", func(e *env) {
		for _, state := range []storage.State{storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable} {
			r := completed(e.reserved(), "{}")
			r.State, r.FreeAt = state, time.Time{}
			e.insert(r)
			e.wantRecordConflict(e.Store.Insert(e.ctx, e.again(r), base.AddDate(50, 0, 0)), &r)
		}
	}},
	{"one alternative is enough: a give-back meets nothing, an old row, or its own reserve, and no other's", func(e *env) {
		for write, put := range ordered(e.fenced()) {
			e.sub(write, func(e *env) {
				mine := e.reserved()
				back := rewritten(mine)
				back.State, back.FreeAt = storage.StateFailedRetryable, base.Add(time.Hour)
				fence := storage.FenceOfHolder(mine, storage.StateInProgress, storage.StateUnknown)
				fence.FreeAt = base
				e.ok(put(back, fence)) // the reserve has not arrived
				e.wantRecord(mine.Key, &back)

				arrived := e.insert(e.reserved())
				back = rewritten(arrived)
				back.State = storage.StateFailedRetryable
				fence = storage.FenceOfHolder(arrived, storage.StateInProgress, storage.StateUnknown)
				fence.FreeAt = base
				e.ok(put(back, fence))
				e.wantRecord(arrived.Key, &back)

				others := e.insert(e.reserved())
				late := e.again(others)
				fence = storage.FenceOfHolder(late)
				fence.FreeAt = base
				e.wantRecordConflict(put(rewritten(late), fence), &others)
				e.wantRecord(others.Key, &others)
			})
		}
	}},
	{"a lease that must end before another is demanded besides each alternative", func(e *env) {
		for write, put := range ordered(e.fenced()) {
			for alternative, fence := range ordered(map[string]func(storage.Record) storage.Fence{
				"revision": storage.FenceOf, "holder": func(r storage.Record) storage.Fence { return storage.FenceOfHolder(r) },
				"free": func(r storage.Record) storage.Fence { return storage.Fence{FreeAt: r.FreeAt} },
				"holder, or revision, or free": func(r storage.Record) storage.Fence {
					f := storage.FenceOfHolder(r)
					f.Revision, f.FreeAt = r.Revision, r.FreeAt
					return f
				},
			}) {
				e.sub(write+", "+alternative, func(e *env) {
					r := e.reserved()
					r.State, r.FreeAt = storage.StateFailedRetryable, base
					e.insert(r)
					f, next := fence(r), rewritten(r)
					f.LeaseBefore = r.LeaseUntil
					e.wantRecordConflict(put(next, f), &r)
					f.LeaseBefore = r.LeaseUntil.Add(time.Millisecond)
					e.ok(put(next, f))
					e.wantRecord(r.Key, &next)
				})
			}
		}
	}},
	{"a lease before another is no obstacle where there is no lease, or no row", func(e *env) {
		r := pending(e.reserved())
		e.insert(r)
		fence := storage.FenceOf(r)
		fence.LeaseBefore = base
		done := completed(r, "{}")
		e.ok(e.Store.Update(e.ctx, done, fence))
		absent := e.reserved()
		e.ok(e.Store.Update(e.ctx, absent, storage.Fence{FreeAt: base, LeaseBefore: base}))
		e.wantRecord(absent.Key, &absent)
	}},
	{"a fence that admits nothing is refused", func(e *env) {
		for name, wrong := range ordered(map[string]func(storage.Record) storage.Fence{
			"zero": func(storage.Record) storage.Fence { return storage.Fence{} },
			"no alternative": func(r storage.Record) storage.Fence {
				return storage.Fence{OperationID: r.OperationID, Owner: r.Owner, Epoch: 1}
			},
			"no operation id": func(r storage.Record) storage.Fence {
				f := storage.FenceOfHolder(r)
				f.OperationID = ""
				return f
			},
			"only a lease": func(r storage.Record) storage.Fence { return storage.Fence{LeaseBefore: base.AddDate(1, 0, 0)} },
		}) {
			for write, put := range ordered(e.fenced()) {
				e.sub(name+", "+write, func(e *env) {
					r := e.insert(e.reserved())
					e.refused(put(rewritten(r), wrong(r)))
					e.wantRecord(r.Key, &r)
				})
			}
		}
	}},
}

// fenced are the writes of a whole record that a fence guards.
func (e *env) fenced() map[string]func(r storage.Record, fence storage.Fence) error {
	return map[string]func(r storage.Record, fence storage.Fence) error{
		"update": func(r storage.Record, fence storage.Fence) error { return e.Store.Update(e.ctx, r, fence) },
		"commit": func(r storage.Record, fence storage.Fence) error {
			return e.send(storage.Commit{Record: r, Fence: &fence, Now: base, Token: e.token()})
		},
	}
}

// refused demands an error that is none of those that a write which was sent can have.
func (e *env) refused(err error) {
	e.Helper()
	if err == nil || !isFinal(err) {
		e.Errorf("got error %v, want a refusal", err)
	}
}
