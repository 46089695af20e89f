package storetest

import (
	"github.com/idem-go/idem-aws/idem/storage"
)

// updateTests: nothing about a record is ever written without its fence (design.md "Who may write what").
var updateTests = []test{
	{"a record is replaced where the fence admits the stored one", func(e *env) {
		r := e.insert(e.reserved())
		next := completed(r, `{"n":1}`)
		e.ok(e.Store.Update(e.ctx, next, storage.FenceOf(r)))
		e.wantRecord(r.Key, &next)
	}},
	{"attributes that became empty are gone", func(e *env) {
		r := e.full()
		e.insert(r)
		bare := e.again(r)
		bare.OperationID = r.OperationID
		e.ok(e.Store.Update(e.ctx, bare, storage.FenceOf(r)))
		e.wantRecord(r.Key, &bare)
	}},
	{"any one part of the fence that is wrong is a conflict and changes nothing", func(e *env) {
		for name, fence := range ordered(e.wrongFences(e.key())) {
			e.sub(name, func(e *env) {
				r := e.insert(e.reserved())
				e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "zombie"), fence(storage.FenceOfHolder(r))), &r)
				e.wantRecord(r.Key, &r)
			})
		}
	}},
	{"each listed state is admitted: a wrapped completion settles from unknown too", func(e *env) {
		for _, state := range []storage.State{storage.StateInProgress, storage.StateUnknown} {
			r := e.reserved()
			r.Kind, r.State = storage.KindWrapped, state
			e.insert(r)
			next := completed(r, `{"late":true}`)
			e.ok(e.Store.Update(e.ctx, next, storage.FenceOfHolder(r, storage.StateInProgress, storage.StateUnknown)))
			e.wantRecord(r.Key, &next)
		}
	}},
	{"an absent record is a conflict with nothing, and stays absent", func(e *env) {
		r := e.reserved()
		e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "{}"), storage.FenceOf(r)), nil)
		e.wantRecord(r.Key, nil)
	}},
	{"a take-over fences the first holder off", func(e *env) {
		first := e.insert(e.reserved())
		second := rewritten(first)
		second.Owner, second.Epoch, second.LeaseUntil = e.owner(), 2, base.Add(2*lease)
		e.ok(e.Store.Update(e.ctx, second, storage.FenceOf(first)))
		e.wantRecordConflict(e.Store.Update(e.ctx, completed(first, "first"), storage.FenceOf(first)), &second)
		done := completed(second, "second")
		e.ok(e.Store.Update(e.ctx, done, storage.FenceOf(second)))
		e.wantRecord(first.Key, &done)
	}},
	{"a caller that changes its record in place changes nothing that is stored", func(e *env) {
		r := e.insert(e.reserved())
		want, mine := completed(r, `{"n":1}`), completed(r, `{"n":1}`)
		e.ok(e.Store.Update(e.ctx, mine, storage.FenceOf(r)))
		scribble(mine.Response)
		e.wantRecord(r.Key, &want)
	}},
}

// wrongFences are the ways in which one part of a fence can be wrong alone.
func (e *env) wrongFences(key storage.RecordKey) map[string]func(storage.Fence) storage.Fence {
	otherID, otherOwner := e.operationID(key), e.owner()
	return map[string]func(storage.Fence) storage.Fence{
		"operation id": func(f storage.Fence) storage.Fence { f.OperationID = otherID; return f },
		"owner":        func(f storage.Fence) storage.Fence { f.Owner = otherOwner; return f },
		"older epoch":  func(f storage.Fence) storage.Fence { f.Epoch--; return f },
		"newer epoch":  func(f storage.Fence) storage.Fence { f.Epoch++; return f },
		"state": func(f storage.Fence) storage.Fence {
			f.States = []storage.State{storage.StatePending, storage.StateUnknown, storage.StateCompleted}
			return f
		},
	}
}
