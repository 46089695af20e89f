package storetest

import "github.com/idem-go/idem-aws/idem"

// updateTests: nothing about a record is ever written without its fence (design.md "Commit").
var updateTests = []test{
	{"a record is replaced where the fence admits the stored one", func(e *env) {
		r := e.insert(e.reserved())
		next := completed(r, `{"n":1}`)
		e.ok(e.Store.Update(e.ctx, next, idem.FenceOf(r)))
		e.wantRecord(r.Key, &next)
	}},
	{"attributes that became empty are gone", func(e *env) {
		r := e.full()
		e.insert(r)
		bare := e.again(r)
		bare.OperationID = r.OperationID
		e.ok(e.Store.Update(e.ctx, bare, idem.FenceOf(r)))
		e.wantRecord(r.Key, &bare)
	}},
	{"any one part of the fence that is wrong is a conflict and changes nothing", func(e *env) {
		for name, fence := range ordered(e.wrongFences(e.key())) {
			e.sub(name, func(e *env) {
				r := e.insert(e.reserved())
				e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "zombie"), fence(idem.FenceOfHolder(r))), &r)
				e.wantRecord(r.Key, &r)
			})
		}
	}},
	{"each listed state is admitted: a wrapped completion settles from unknown too", func(e *env) {
		for _, state := range []idem.State{idem.StateInProgress, idem.StateUnknown} {
			r := e.reserved()
			r.Kind, r.State = idem.KindWrapped, state
			e.insert(r)
			next := completed(r, `{"late":true}`)
			e.ok(e.Store.Update(e.ctx, next, idem.FenceOfHolder(r, idem.StateInProgress, idem.StateUnknown)))
			e.wantRecord(r.Key, &next)
		}
	}},
	{"an absent record is a conflict with nothing, and stays absent", func(e *env) {
		r := e.reserved()
		e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "{}"), idem.FenceOf(r)), nil)
		e.wantRecord(r.Key, nil)
	}},
	{"a take-over fences the first holder off", func(e *env) {
		first := e.insert(e.reserved())
		second := rewritten(first)
		second.Owner, second.Epoch, second.LeaseUntil = e.owner(), 2, base.Add(2*lease)
		e.ok(e.Store.Update(e.ctx, second, idem.FenceOf(first)))
		e.wantRecordConflict(e.Store.Update(e.ctx, completed(first, "first"), idem.FenceOf(first)), &second)
		done := completed(second, "second")
		e.ok(e.Store.Update(e.ctx, done, idem.FenceOf(second)))
		e.wantRecord(first.Key, &done)
	}},
	{"a caller that changes its record in place changes nothing that is stored", func(e *env) {
		r := e.insert(e.reserved())
		want, mine := completed(r, `{"n":1}`), completed(r, `{"n":1}`)
		e.ok(e.Store.Update(e.ctx, mine, idem.FenceOf(r)))
		scribble(mine.Response)
		e.wantRecord(r.Key, &want)
	}},
}

// wrongFences are the ways in which one part of a fence can be wrong alone.
func (e *env) wrongFences(key idem.RecordKey) map[string]func(idem.Fence) idem.Fence {
	otherID, otherOwner := e.operationID(key), e.owner()
	return map[string]func(idem.Fence) idem.Fence{
		"operation id": func(f idem.Fence) idem.Fence { f.OperationID = otherID; return f },
		"owner":        func(f idem.Fence) idem.Fence { f.Owner = otherOwner; return f },
		"older epoch":  func(f idem.Fence) idem.Fence { f.Epoch--; return f },
		"newer epoch":  func(f idem.Fence) idem.Fence { f.Epoch++; return f },
		"state": func(f idem.Fence) idem.Fence {
			f.States = []idem.State{idem.StatePending, idem.StateUnknown, idem.StateCompleted}
			return f
		},
	}
}
