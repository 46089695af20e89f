package cache

import (
	"github.com/idem-go/idem-aws/idem/storage"
)

// reads are the reads of one key that are under way. What they bring may be older than a write of this process that ended
// meanwhile, and must not be held then.
type reads struct {
	n int
	// overtaken says that the record was written, or may have been, since they began.
	overtaken bool
	// stands is the record that a lost write met since they began: only what reads the same is held.
	stands *storage.Record
}

// begin is called before the store is asked for the record or its chunks, and end when what it answered is held or not.
func (s *Store) begin(key storage.RecordKey) *reads {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reads[key]
	if r == nil {
		r = &reads{}
		s.reads[key] = r
	}
	r.n++
	return r
}

func (s *Store) end(key storage.RecordKey, r *reads) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.n--; r.n == 0 && s.reads[key] == r {
		delete(s.reads, key)
	}
}

// brought says whether a read's answer may still be held. The lock is held.
func (r *reads) brought(record storage.Record) bool {
	return !r.overtaken && (r.stands == nil || asStored(record, *r.stands))
}

// drop forgets a record that was written, and what is being read of it. A read that begins from now on is not concerned.
func (s *Store) drop(key storage.RecordKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries.Remove(key)
	if r := s.reads[key]; r != nil {
		r.overtaken = true
		delete(s.reads, key)
	}
}

// dropUnless forgets what is not as a lost write met it, held already or being read: the writer that lost reads again.
func (s *Store) dropUnless(stored storage.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries.Peek(stored.Key); ok && !asStored(e.record(), stored) {
		s.entries.Remove(stored.Key)
	}
	switch r := s.reads[stored.Key]; {
	case r == nil:
	case r.stands == nil:
		r.stands = &stored
	case !asStored(*r.stands, stored): // which of the two is the newer one can't be told
		r.overtaken = true
		delete(s.reads, stored.Key)
	}
}

// asStored says whether a record is of the execution that is stored and expires when that does.
func asStored(a, stored storage.Record) bool {
	return same(a, stored) && a.ExpiresAt.Equal(stored.ExpiresAt)
}
