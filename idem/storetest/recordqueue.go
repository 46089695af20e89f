package storetest

import (
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// recordQueueTests: a wrapped record stands in a queue from its reserve until it is decided, and no other record ever does:
// what is safe to run again needs no sweep. As with messages, each test waits for what it demands of an index.
var recordQueueTests = []test{
	{"a wrapped record stands in the lease's queue, then in that of what is unknown, and then in none", func(e *env) {
		for _, end := range []storage.State{storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable} {
			r := e.insert(e.wrapped())
			at := r.LeaseUntil
			e.wantQueuedRecords(storage.QueueLease, at, []storage.RecordRef{recordRef(r)}, r)
			e.wantQueuedRecords(storage.QueueUnknown, at.AddDate(1, 0, 0), nil, r)
			unknown := rewritten(r)
			unknown.State, unknown.LastError = storage.StateUnknown, "the lease ran out"
			e.ok(e.Store.Update(e.ctx, unknown, storage.FenceOf(r)))
			e.wantQueuedRecords(storage.QueueUnknown, at, []storage.RecordRef{recordRef(r)}, r)
			e.wantQueuedRecords(storage.QueueLease, at.AddDate(1, 0, 0), nil, r)
			decided := completed(unknown, "{}")
			decided.State = end
			if !end.Final() {
				decided.Response, decided.DoneAt, decided.ExpiresAt, decided.FreeAt = storage.Response{}, time.Time{}, time.Time{}, time.Time{}
				decided.LeaseUntil = at
				decided.Epoch++
			}
			e.ok(e.Store.Update(e.ctx, decided, storage.FenceOf(unknown)))
			for _, queue := range []string{storage.QueueLease, storage.QueueUnknown} {
				e.wantQueuedRecords(queue, at.AddDate(1, 0, 0), nil, r)
			}
		}
	}},
	{"a wrapped record that completes at once leaves its queue", func(e *env) {
		r := e.insert(e.wrapped())
		e.wantQueuedRecords(storage.QueueLease, r.LeaseUntil, []storage.RecordRef{recordRef(r)}, r)
		e.ok(e.Store.Update(e.ctx, completed(r, "{}"), storage.FenceOf(r)))
		e.wantQueuedRecords(storage.QueueLease, r.LeaseUntil.AddDate(1, 0, 0), nil, r)
	}},
	{"no other record stands in a queue", func(e *env) {
		safe := e.wrapped()
		safe.SafeToRunAgain = true
		records := []storage.Record{e.insert(safe)}
		for _, kind := range []storage.Kind{storage.KindAtomic, storage.KindOptimistic, storage.KindDeferred} {
			r := e.reserved()
			r.Kind = kind
			records = append(records, e.insert(r))
		}
		deferred, _ := e.deferred()
		records = append(records, deferred)
		for _, queue := range []string{storage.QueueLease, storage.QueueUnknown} {
			e.wantQueuedRecords(queue, base.AddDate(1, 0, 0), nil, records...)
		}
	}},
	{"a record is due from its millisecond on, not before", func(e *env) {
		r := e.insert(e.wrapped())
		e.wantQueuedRecords(storage.QueueLease, r.LeaseUntil, []storage.RecordRef{recordRef(r)}, r)
		e.wantQueuedRecords(storage.QueueLease, r.LeaseUntil.Add(-time.Millisecond), nil, r)
	}},
	{"pages of records are bounded, oldest first, and miss nothing in any shard", func(e *env) {
		var records []storage.Record
		var want []storage.RecordRef
		for i := range 8 + 4*e.Store.Shards() {
			r := e.wrapped()
			r.LeaseUntil = base.Add(time.Duration(i*7%5) * time.Millisecond) // out of order, some at the same time
			records, want = append(records, e.insert(r)), append(want, recordRef(r))
		}
		e.wantQueuedRecords(storage.QueueLease, base.Add(time.Second), want, records...)
		for _, limit := range []int{1, 3} {
			if diff := e.recordIndex().differs(e, storage.QueueLease, base.Add(time.Second), limit, want, ids(records, recordID)); diff != "" {
				e.Errorf("in pages of %d: %s", limit, diff)
			}
		}
	}},
	{"a listing refuses a shard that does not exist, a limit below 1 and a cursor that no page returned", func(e *env) {
		for _, call := range []struct {
			shard, limit int
			cursor       string
		}{{-1, 1, ""}, {e.Store.Shards(), 1, ""}, {0, 0, ""}, {0, 1, "yesterday"}} {
			if _, _, err := e.Store.QueuedRecords(e.ctx, storage.QueueLease, call.shard, base, call.limit, call.cursor); err == nil {
				e.Errorf("records: %+v was answered", call)
			}
			if _, _, err := e.Store.QueuedMessages(e.ctx, storage.QueueOffer, call.shard, base, call.limit, call.cursor); err == nil {
				e.Errorf("messages: %+v was answered", call)
			}
		}
	}},
}

// wrapped is a record as a reserve of a wrapped operation inserts it.
func (e *env) wrapped() storage.Record {
	e.Helper()
	r := e.reserved()
	r.Kind = storage.KindWrapped
	return r
}

func recordRef(r storage.Record) storage.RecordRef {
	_, at, _ := r.Queue()
	return storage.RecordRef{Key: r.Key, OperationID: r.OperationID, Tenant: r.Tenant, At: at}
}

// recordIndex is the sparse index of records.
func (e *env) recordIndex() index[storage.RecordRef] {
	return index[storage.RecordRef]{e.Store.QueuedRecords, func(r storage.RecordRef) (string, time.Time) { return string(r.Key), r.At }}
}

// wantQueuedRecords waits until exactly want of the given records are due in the queue.
func (e *env) wantQueuedRecords(queue string, until time.Time, want []storage.RecordRef, records ...storage.Record) {
	e.Helper()
	e.recordIndex().want(e, queue, until, want, ids(records, recordID))
}

func recordID(r storage.Record) string { return string(r.Key) }
