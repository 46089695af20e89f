package storetest

import (
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// removalTests: what the contract lets go is removed, and nothing else (storage.Record.RemoveAfter).
var removalTests = []test{
	{"a record goes when it may, not before, and one that may not never goes", func(e *env) {
		for name, change := range ordered(removable()) {
			e.sub(name, func(e *env) {
				r := e.reserved()
				change(&r)
				e.insert(r)
				e.wantRemoved(&r)
			})
		}
	}},
	{"a record goes as its last write says", func(e *env) {
		for name, change := range ordered(map[string]func(r *storage.Record) error{
			"updated": func(r *storage.Record) error {
				before := *r
				*r = completed(before, "{}")
				return e.Store.Update(e.ctx, *r, storage.FenceOf(before))
			},
			"committed": func(r *storage.Record) error {
				fence := storage.FenceOf(*r)
				*r = completed(*r, "{}")
				return e.send(storage.Commit{Record: *r, Fence: &fence, Now: base, Token: e.token()})
			},
			"renewed": func(r *storage.Record) error {
				*r = e.wantRenewed(*r, *r)
				return nil
			},
		}) {
			e.sub(name, func(e *env) {
				r := e.insert(e.reserved())
				e.ok(change(&r))
				e.wantRemoved(&r)
			})
		}
	}},
	{"what a settlement ends goes, and its messages a day later", func(e *env) {
		r, m := e.deferred()
		e.remove(base.AddDate(20, 0, 0))
		e.wantRecord(r.Key, &r) // pending
		e.wantMessage(m.ID, &m)
		done, end := completed(r, "{}"), delivered(m)
		end.RemoveAt = m.RemovedAfter(done.ExpiresAt)
		e.ok(e.settle(storage.Settlement{Message: end, Record: recordEnd(done), Token: e.token()}))
		e.wantRemoved(&done)
		e.remove(end.RemoveAt.Add(-time.Second))
		e.wantMessage(m.ID, ended(m, end))
		e.remove(end.RemoveAt)
		e.wantMessage(m.ID, nil)
	}},
	{"a message that is not final stays, whatever it says", func(e *env) {
		_, m := e.deferred()
		dead := m
		dead.State, dead.RemoveAt = storage.MessageDead, base.Truncate(time.Second)
		e.ok(e.Store.UpdateMessage(e.ctx, dead, storage.FenceOfMessage(m)))
		e.remove(base.AddDate(20, 0, 0))
		e.wantMessage(m.ID, &dead)
	}},
	{"an earlier message of a chain goes with the last one", func(e *env) {
		r, first := e.deferred()
		second := message(r, 2)
		e.ok(e.settle(storage.Settlement{Message: delivered(first), Next: &second, Token: e.token()}))
		e.remove(base.AddDate(20, 0, 0))
		e.wantMessage(first.ID, ended(first, delivered(first)))
		done, end := completed(r, "{}"), delivered(second)
		end.RemoveAt = second.RemovedAfter(done.ExpiresAt)
		e.ok(e.settle(storage.Settlement{Message: end, Record: recordEnd(done), Earlier: []storage.MessageID{first.ID}, Token: e.token()}))
		e.remove(end.RemoveAt)
		e.wantMessage(first.ID, nil)
		e.wantMessage(second.ID, nil)
	}},
}

// removable are records in every state, with the ways in which their lives end.
func removable() map[string]func(*storage.Record) {
	all := map[string]func(*storage.Record){
		"a tombstone": func(r *storage.Record) {
			*r = expiring(completed(*r, "{}"), storage.Expiry{KeepFor: tombstone, Gone: true})
		},
		"kept for an audit":                func(r *storage.Record) { *r = expiring(completed(*r, "{}"), storage.Expiry{KeepFor: tombstone}) },
		"final without an end":             func(r *storage.Record) { *r = completed(*r, "{}"); r.ExpiresAt, r.FreeAt = time.Time{}, time.Time{} },
		"failed_retryable, its key free":   func(r *storage.Record) { r.State, r.FreeAt = storage.StateFailedRetryable, base.Add(time.Hour) },
		"wrapped, in progress, safe again": func(r *storage.Record) { r.Kind, r.SafeToRunAgain = storage.KindWrapped, true },
	}
	for _, state := range []storage.State{
		storage.StateInProgress, storage.StatePending, storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable, storage.StateUnknown,
	} {
		for _, kind := range []storage.Kind{storage.KindAtomic, storage.KindWrapped} {
			all[fmt.Sprintf("%s, %s", state, kind)] = func(r *storage.Record) {
				if state.Final() {
					*r = completed(*r, "{}")
				}
				r.State, r.Kind = state, kind
			}
		}
	}
	return all
}

// remove has the store remove what may go at the instant.
func (e *env) remove(now time.Time) {
	e.Helper()
	e.ok(e.Remove(e.ctx, now))
}

// removalSlack is how long after its time a record may stay: native TTL has seconds.
const removalSlack = time.Second

// wantRemoved demands that the record goes when [storage.Record.RemoveAfter] says so.
func (e *env) wantRemoved(r *storage.Record) {
	e.Helper()
	after, may := r.RemoveAfter()
	if !may {
		e.remove(base.AddDate(20, 0, 0))
		e.wantRecord(r.Key, r)
		return
	}
	e.remove(after.Add(-time.Millisecond))
	e.wantRecord(r.Key, r)
	e.remove(after.Add(removalSlack))
	e.wantRecord(r.Key, nil)
}
