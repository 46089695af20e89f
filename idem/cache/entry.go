package cache

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/clock"
)

// entry is what is held of one record.
type entry struct {
	// read is the record as Get returned it, and loaded as LoadResponse did; nil where that was not asked for.
	read, loaded *storage.Record
	// asked is when the older of the two was asked for.
	asked time.Time
	bytes int
}

// holdable says whether nothing but an operator can change the record until its expiry.
func holdable(r storage.Record) bool {
	return r.Readable() && r.State.Final() && !r.ExpiresAt.IsZero()
}

// same says whether two final records are of one execution. An operation id alone is not enough: a cache-bust may keep it.
func same(a, b storage.Record) bool {
	return a.OperationID == b.OperationID && a.Epoch == b.Epoch && a.Owner == b.Owner && a.State == b.State && a.DoneAt.Equal(b.DoneAt)
}

// record is either of the two: they are of one execution.
func (e entry) record() storage.Record {
	if e.read != nil {
		return *e.read
	}
	return *e.loaded
}

// stale says whether the record has to be read again.
func (e entry) stale(now time.Time, cfg Config) bool {
	return !clock.Within(now, e.asked, cfg.MaxAge) || !now.Before(e.record().ExpiresAt.Add(-cfg.ClockSkew))
}

// held looks for an entry that has what is asked for, and drops one that is stale.
func (s *Store) held(key storage.RecordKey, now time.Time, has func(entry) bool) (entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(key)
	if ok && e.stale(now, s.cfg) {
		s.entries.Remove(key)
		ok = false
	}
	if !ok || !has(e) {
		s.stats.Misses++
		return entry{}, false
	}
	s.stats.Hits++
	return e, true
}

// hold keeps what a read brought, together with the other half that is held of the same execution. Nothing is kept of a
// read that a write overtook, nor of one that was asked for before what is held.
func (s *Store) hold(e entry, by *reads) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := e.record(), s.cfg.Now()
	if !by.brought(r) {
		return
	}
	if other, ok := s.entries.Peek(r.Key); ok && !other.stale(now, s.cfg) {
		switch {
		case same(other.record(), r):
			e = e.joined(other)
		case other.asked.After(e.asked):
			return
		}
	}
	s.entries.Remove(r.Key)
	e.bytes = size(e.read) + size(e.loaded)
	if e.bytes > s.cfg.BytesMax || e.stale(now, s.cfg) {
		return
	}
	s.stats.Bytes += e.bytes
	s.entries.Add(r.Key, e)
	for s.stats.Bytes > s.cfg.BytesMax {
		s.entries.RemoveOldest()
	}
}

// joined is the newer of the two entries with the half that it lacks, and then as old as the other.
func (e entry) joined(other entry) entry {
	newer, older := e, other
	if other.asked.After(e.asked) {
		newer, older = other, e
	}
	whole := newer
	whole.read, whole.loaded = cmp.Or(newer.read, older.read), cmp.Or(newer.loaded, older.loaded)
	if whole.read != newer.read || whole.loaded != newer.loaded {
		whole.asked = older.asked
	}
	return whole
}

// clone shares no memory with the record: callers may change what they are given.
func clone(r storage.Record) storage.Record {
	r.Response.Header, r.Response.Body = slices.Clone(r.Response.Header), bytes.Clone(r.Response.Body)
	return r
}

// About what a record takes up besides its strings and its response, list and map included, and a header's two strings.
const (
	overheadBytes = 768
	headerBytes   = 32
)

func size(r *storage.Record) int {
	if r == nil {
		return 0
	}
	return overheadBytes + len(r.Key) + len(r.OperationID) + len(r.Owner) + len(r.Tenant) + len(r.Operation) + len(r.Principal) +
		len(r.LastError) + headerBytes*len(r.Response.Header) + r.Response.Bytes()
}
