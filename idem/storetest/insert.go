package storetest

import (
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// insertTests: reserve is one conditional write that wins, or returns what it lost against (design.md "One request, step
// by step").
var insertTests = []test{
	{"an absent key is inserted, and read back exactly", func(e *env) {
		r := e.reserved()
		e.wantRecord(r.Key, nil)
		e.insert(r)
		e.wantRecord(r.Key, &r)
	}},
	{"every field round-trips", func(e *env) {
		r := e.full()
		e.insert(r)
		e.wantRecord(r.Key, &r)
	}},
	{"times are kept in UTC and in milliseconds, whatever is finer is cut off", func(e *env) {
		east := time.FixedZone("east", 3600)
		r := e.reserved()
		finer := r
		finer.CreatedAt, finer.LeaseUntil = r.CreatedAt.Add(999_999*time.Nanosecond).In(east), r.LeaseUntil.Add(time.Microsecond).In(east)
		finer.Retention += time.Microsecond
		e.insert(finer)
		e.wantRecord(r.Key, &r)
	}},
	{"a lost race returns the stored record with every field", func(e *env) {
		r := e.insert(e.full())
		err := e.Store.Insert(e.ctx, e.again(r), base)
		e.wantRecordConflict(err, &r)
		e.wantRecord(r.Key, &r)
	}},
	{"one's own reserve whose reply was lost is recognised by its owner", func(e *env) {
		r := e.insert(e.reserved())
		e.wantRecordConflict(e.Store.Insert(e.ctx, r, base), &r)
	}},
	{"only completed and failed records expire, however old the others are (semantics.md \"States\")", func(e *env) {
		for _, state := range []storage.State{storage.StateInProgress, storage.StatePending, storage.StateFailedRetryable, storage.StateUnknown} {
			r := e.reserved()
			r.State = state
			e.insert(r)
			e.wantRecordConflict(e.Store.Insert(e.ctx, e.again(r), base.AddDate(10, 0, 0)), &r)
		}
	}},
	{"a final record is replaced from the millisecond of its expiry on, not before", func(e *env) {
		for _, state := range []storage.State{storage.StateCompleted, storage.StateFailed} {
			r := completed(e.reserved(), `{"first":true}`)
			r.State = state
			e.insert(r)
			next := e.again(r)
			e.wantRecordConflict(e.Store.Insert(e.ctx, next, r.ExpiresAt.Add(-time.Millisecond)), &r)
			e.ok(e.Store.Insert(e.ctx, next, r.ExpiresAt))
			e.wantRecord(r.Key, &next)
		}
	}},
	{"nothing of an expired incarnation is left in the next", func(e *env) {
		r := e.full()
		e.insert(r)
		bare := e.again(r)
		e.ok(e.Store.Insert(e.ctx, bare, r.FreeAt))
		e.wantRecord(r.Key, &bare)
	}},
	{"keys don't touch each other", func(e *env) {
		one, other := e.insert(e.reserved()), e.insert(e.reserved())
		e.wantRecord(one.Key, &one)
		e.wantRecord(other.Key, &other)
	}},
	{"a caller that changes its record in place changes nothing that is stored", func(e *env) {
		reserved := e.reserved()
		r, mine := completed(reserved, `{"n":1}`), completed(reserved, `{"n":1}`)
		e.insert(mine)
		scribble(mine.Response)
		e.wantRecord(r.Key, &r)
		scribble(e.record(r.Key).Response)
		e.wantRecord(r.Key, &r)
	}},
	{"a record of another release is returned, and says that it can't be read", func(e *env) {
		schema, state, kind := e.reserved(), e.reserved(), e.reserved()
		schema.SchemaVersion = storage.SchemaVersion + 1
		state.State = "suspended"
		kind.Kind = "durable"
		for _, r := range []storage.Record{schema, state, kind} {
			e.insert(r)
			e.wantRecord(r.Key, &r)
			if got := e.record(r.Key); got != nil && got.Readable() {
				e.Errorf("a record with schema %d, state %s, kind %s counts as readable", r.SchemaVersion, r.State, r.Kind)
			}
			e.wantRecordConflict(e.Store.Insert(e.ctx, e.again(r), base), &r)
		}
	}},
	{"a record of another release is not replaced, however long its key seems to be free", func(e *env) {
		for name, change := range ordered(map[string]func(*storage.Record){
			"later schema": func(r *storage.Record) { r.SchemaVersion = storage.SchemaVersion + 1 },
			"no schema":    func(r *storage.Record) { r.SchemaVersion = 0 },
			"kind":         func(r *storage.Record) { r.Kind = "durable" },
		}) {
			e.sub(name, func(e *env) {
				for _, state := range []storage.State{storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable} {
					r := completed(e.reserved(), "another's")
					if r.State = state; !state.Final() {
						r.ExpiresAt = time.Time{}
					}
					change(&r)
					e.insert(r)
					for _, insert := range ordered(e.inserters()) {
						e.wantRecordConflict(insert(e.again(r), r.FreeAt.AddDate(1, 0, 0)), &r)
					}
					e.wantRecord(r.Key, &r)
				}
			})
		}
	}},
	{"a context that is over writes nothing that nobody hears of", func(e *env) {
		r := e.reserved()
		ctx, cancel := canceled(e.ctx)
		defer cancel()
		if err := e.Store.Insert(ctx, r, base); err == nil {
			e.Fatal("an insert under a cancelled context succeeded")
		}
		if got := e.record(r.Key); got != nil {
			e.wantRecord(r.Key, &r)
		}
	}},
}
