package storetest

import (
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// tombstone is how long the records of these tests are kept after they have expired.
const tombstone = 72 * time.Hour

// expiryTests: when a final record frees its key, and what changes that (semantics.md "expired").
var expiryTests = []test{
	{"a tombstone holds its key until the millisecond it was kept for (peers.md H12)", func(e *env) {
		for path, insert := range ordered(e.inserters()) {
			e.sub(path, func(e *env) {
				r := expiring(completed(e.reserved(), "{}"), storage.Expiry{KeepFor: tombstone, Gone: true})
				e.insert(r)
				next := e.again(r)
				for _, at := range []time.Time{r.ExpiresAt, r.ExpiresAt.Add(tombstone - time.Millisecond)} {
					e.wantRecordConflict(insert(next, at), &r)
				}
				e.ok(insert(next, r.ExpiresAt.Add(tombstone)))
				e.wantRecord(r.Key, &next)
			})
		}
	}},
	{"a record that is kept for an audit frees its key when it expires", func(e *env) {
		for path, insert := range ordered(e.inserters()) {
			e.sub(path, func(e *env) {
				r := expiring(completed(e.reserved(), "{}"), storage.Expiry{KeepFor: tombstone})
				e.insert(r)
				next := e.again(r)
				e.wantRecordConflict(insert(next, r.ExpiresAt.Add(-time.Millisecond)), &r)
				e.ok(insert(next, r.ExpiresAt))
				e.wantRecord(r.Key, &next)
			})
		}
	}},
	{"a record that is backed by a resource holds its key until it is ended", func(e *env) {
		for path, insert := range ordered(e.inserters()) {
			e.sub(path, func(e *env) {
				r := expiring(completed(e.reserved(), "{}"), storage.Expiry{ResourceBacked: true})
				r.ExpiresAt, r.FreeAt = time.Time{}, time.Time{}
				e.insert(r)
				next, later := e.again(r), base.AddDate(50, 0, 0)
				e.wantRecordConflict(insert(next, later), &r)
				ended := e.until(r, later)
				e.ok(e.Store.Update(e.ctx, ended, storage.FenceOf(r)))
				e.wantRecordConflict(insert(next, later.Add(-time.Millisecond)), &ended)
				e.ok(insert(next, later))
				e.wantRecord(r.Key, &next)
			})
		}
	}},
	{"a settlement ends the record as its message says", func(e *env) {
		for name, expiry := range ordered(map[string]storage.Expiry{
			"tombstone": {KeepFor: tombstone, Gone: true}, "audit": {KeepFor: tombstone}, "resource": {ResourceBacked: true},
		}) {
			e.sub(name, func(e *env) {
				held := expiring(pending(e.reserved()), expiry)
				m := message(held, 1)
				m.Expiry = expiry
				e.ok(e.send(storage.Commit{Record: held, Now: base, Messages: []storage.Message{m}, Token: e.token()}))
				e.wantMessage(m.ID, &m)
				done := completed(held, "{}")
				if expiry.ResourceBacked {
					done.ExpiresAt, done.FreeAt = time.Time{}, time.Time{}
				}
				e.ok(e.settle(storage.Settlement{Message: delivered(m), Record: recordEnd(done), Token: e.token()}))
				e.wantRecord(held.Key, &done)
				if free := done.FreeAt; !free.IsZero() {
					e.wantRecordConflict(e.Store.Insert(e.ctx, e.again(held), free.Add(-time.Millisecond)), &done)
					e.ok(e.Store.Insert(e.ctx, e.again(held), free))
				}
			})
		}
	}},
	{"of two amendments one sees the other", func(e *env) {
		for name, expiry := range ordered(map[string]storage.Expiry{"plain": {}, "tombstone": {KeepFor: tombstone, Gone: true}}) {
			e.sub(name, func(e *env) {
				r := expiring(completed(e.reserved(), "{}"), expiry)
				e.insert(r)
				longer, shorter := r, r
				longer, shorter = e.until(longer, r.ExpiresAt.Add(48*time.Hour)), e.until(shorter, r.ExpiresAt.Add(24*time.Hour))
				e.ok(e.Store.Update(e.ctx, longer, storage.FenceOf(r)))
				e.wantRecordConflict(e.Store.Update(e.ctx, shorter, storage.FenceOf(r)), &longer)
				e.wantRecord(r.Key, &longer)
			})
		}
	}},
	{"an extended record keeps its large response (peers.md H13)", func(e *env) {
		r := completed(e.reserved(), "")
		r.Response.Body = random(1 << 20)
		e.insert(r)
		longer := e.until(*e.record(r.Key), r.ExpiresAt.Add(idem.RetentionMax))
		e.ok(e.Store.Update(e.ctx, longer, storage.FenceOf(r)))
		e.wantRecord(r.Key, &longer)
		e.wantRecordConflict(e.Store.Insert(e.ctx, e.again(r), r.ExpiresAt), &longer)
	}},
}

// inserters are the writes that replace what has expired.
func (e *env) inserters() map[string]func(r storage.Record, now time.Time) error {
	return map[string]func(r storage.Record, now time.Time) error{
		"insert": func(r storage.Record, now time.Time) error { return e.Store.Insert(e.ctx, r, now) },
		"commit": func(r storage.Record, now time.Time) error {
			return e.send(storage.Commit{Record: r, Now: now, Token: e.token()})
		},
	}
}

func expiring(r storage.Record, expiry storage.Expiry) storage.Record {
	r.Expiry, r.FreeAt = expiry, expiry.FreeAt(r.ExpiresAt)
	return r
}

// until is the record with another end of its life, as a write of its own.
func (e *env) until(r storage.Record, expires time.Time) storage.Record {
	e.Helper()
	r.Revision, r.ExpiresAt, r.FreeAt = e.revision(), expires, r.Expiry.FreeAt(expires)
	return r
}
