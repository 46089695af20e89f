package storetest

import (
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// touchTests: a lease is renewed, and a record postponed, without anything else of it changing.
var touchTests = []test{
	{"a renewal changes lease and revision, and nothing else", func(e *env) {
		for name, r := range ordered(map[string]storage.Record{"atomic": e.reserved(), "wrapped": e.wrapped(), "every field": e.full()}) {
			e.sub(name, func(e *env) {
				e.insert(r)
				e.wantRenewed(r, r)
			})
		}
	}},
	{"a renewal of what somebody parked keeps it parked, and where it stands", func(e *env) {
		r := e.insert(e.wrapped())
		parked := rewritten(r)
		parked.State, parked.LastError = storage.StateUnknown, "the lease ran out"
		e.ok(e.Store.Update(e.ctx, parked, storage.FenceOf(r)))
		want := e.wantRenewed(r, parked)
		e.wantQueuedRecords(storage.QueueUnknown, parked.LeaseUntil, []storage.RecordRef{recordRef(parked)}, r)
		e.wantQueuedRecords(storage.QueueLease, want.LeaseUntil.AddDate(1, 0, 0), nil, r)
	}},
	{"a renewed lease stands where it stood, and so does a second one", func(e *env) {
		r := e.insert(e.wrapped())
		once := e.wantRenewed(r, r)
		e.wantRenewed(once, once)
		e.wantQueuedRecords(storage.QueueLease, r.LeaseUntil, []storage.RecordRef{recordRef(r)}, r)
	}},
	{"a late renewal does nothing", func(e *env) {
		r := e.insert(e.wrapped())
		early, renewed := r, e.wantRenewed(r, r)
		early.LeaseUntil, early.Revision = renewed.LeaseUntil.Add(-time.Millisecond), e.revision()
		for _, until := range []time.Time{early.LeaseUntil, renewed.LeaseUntil} {
			early.LeaseUntil = until
			e.wantRecordConflict(e.Store.Renew(e.ctx, early, renewal(early)), &renewed)
		}
		e.wantRecord(r.Key, &renewed)
	}},
	{"a renewal by who does not hold the record any more does nothing", func(e *env) {
		for name, wrong := range ordered(e.wrongFences(e.key())) {
			e.sub(name, func(e *env) {
				r := e.insert(e.wrapped())
				next := r
				next.LeaseUntil = r.LeaseUntil.Add(lease)
				e.wantRecordConflict(e.Store.Renew(e.ctx, next, wrong(renewal(next))), &r)
				e.wantRecord(r.Key, &r)
			})
		}
	}},
	{"a renewal changes what a fence of the row before admits", func(e *env) {
		r := e.insert(e.wrapped())
		renewed := e.wantRenewed(r, r)
		e.wantRecordConflict(e.Store.Update(e.ctx, completed(r, "parked"), storage.FenceOf(r)), &renewed)
		done := completed(renewed, "own")
		e.ok(e.Store.Update(e.ctx, done, storage.FenceOfHolder(r)))
		e.wantRecord(r.Key, &done)
	}},
	{"a postponed record stands elsewhere, under the same revision, and nothing else changes", func(e *env) {
		for _, state := range []storage.State{storage.StateInProgress, storage.StateUnknown} {
			r := e.wrapped()
			r.State = state
			e.insert(r)
			queue, _, _ := r.Queue()
			later := r
			later.LookAt = r.LeaseUntil.Add(time.Hour)
			e.ok(e.Store.Postpone(e.ctx, later, storage.FenceOf(r)))
			e.wantRecord(r.Key, &later)
			e.wantQueuedRecords(queue, later.LookAt, []storage.RecordRef{recordRef(later)}, r)
			e.wantQueuedRecords(queue, later.LookAt.Add(-time.Millisecond), nil, r)
			done := completed(later, "late")
			done.LookAt = time.Time{}
			e.ok(e.Store.Update(e.ctx, done, storage.FenceOf(r))) // as it was seen before it was postponed
			e.wantRecord(r.Key, &done)
		}
	}},
	{"a record that changed since it was seen is not postponed", func(e *env) {
		r := e.insert(e.wrapped())
		renewed, later := e.wantRenewed(r, r), r
		later.LookAt = base.Add(time.Hour)
		e.wantRecordConflict(e.Store.Postpone(e.ctx, later, storage.FenceOf(r)), &renewed)
		e.wantRecord(r.Key, &renewed)
	}},
	{"what is written anew stands where it says", func(e *env) {
		r := e.insert(e.wrapped())
		renewed := e.wantRenewed(r, r)
		parked := rewritten(renewed)
		parked.State, parked.LookAt = storage.StateUnknown, base.Add(2*time.Hour)
		e.ok(e.Store.Update(e.ctx, parked, storage.FenceOf(renewed)))
		e.wantRecord(r.Key, &parked)
		e.wantQueuedRecords(storage.QueueUnknown, parked.LookAt, []storage.RecordRef{recordRef(parked)}, r)
		e.wantQueuedRecords(storage.QueueUnknown, parked.LookAt.Add(-time.Millisecond), nil, r)
	}},
	{"a record that is gone is neither renewed nor postponed, and stays gone", func(e *env) {
		r := e.wrapped()
		r.LookAt = base
		for _, touch := range []func() error{
			func() error { return e.Store.Renew(e.ctx, r, renewal(r)) },
			func() error { return e.Store.Renew(e.ctx, r, storage.FenceOf(r)) },
			func() error { return e.Store.Postpone(e.ctx, r, storage.FenceOf(r)) },
		} {
			e.wantRecordConflict(touch(), nil)
		}
		e.wantRecord(r.Key, nil)
	}},
	{"a fence that admits absence, and a place at no time, are refused", func(e *env) {
		r := e.insert(e.wrapped())
		later := r
		later.LookAt = base.Add(time.Hour)
		fence := storage.FenceOf(r)
		fence.FreeAt = base
		e.refused(e.Store.Renew(e.ctx, r, fence))
		e.refused(e.Store.Postpone(e.ctx, later, fence))
		e.refused(e.Store.Postpone(e.ctx, r, storage.FenceOf(r)))
		e.refused(e.Store.Renew(e.ctx, r, storage.Fence{}))
		e.wantRecord(r.Key, &r)
	}},
}

// renewal is the fence of a renewal: the holder's, of a lease that it makes longer.
func renewal(next storage.Record) storage.Fence {
	fence := storage.FenceOfHolder(next, storage.StateInProgress, storage.StateUnknown)
	fence.LeaseBefore = next.LeaseUntil
	return fence
}

// wantRenewed renews the lease of the record as its holder knows it, and demands that of what is stored nothing else changed.
func (e *env) wantRenewed(held, stored storage.Record) storage.Record {
	e.Helper()
	held.LeaseUntil, held.Revision = held.LeaseUntil.Add(lease), e.revision()
	fence := renewal(held)
	fence.States = append(fence.States, stored.State)
	e.ok(e.Store.Renew(e.ctx, held, fence))
	if _, at, queued := stored.Queue(); queued {
		stored.LookAt = at
	}
	stored.LeaseUntil, stored.Revision = held.LeaseUntil, held.Revision
	e.wantRecord(stored.Key, &stored)
	return stored
}

// isFinal says whether an error of a write is none that a write which was sent can have.
func isFinal(err error) bool {
	var unknown *storage.OutcomeUnknownError
	var notAsked *storage.NotAskedError
	var record *storage.RecordConflictError
	var write *storage.WriteFailedError
	return !errors.As(err, &unknown) && !errors.As(err, &notAsked) && !errors.As(err, &record) && !errors.As(err, &write) &&
		!errors.Is(err, storage.ErrContention)
}
