package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Store is a store behind a cache of final records. It implements storage.Store and is safe for concurrent use.
type Store struct {
	inner storage.Store
	cfg   Config

	mu      sync.Mutex
	entries *simplelru.LRU[storage.RecordKey, entry]
	// reads has the keys that the store is being asked for now.
	reads map[storage.RecordKey]*reads
	stats Stats
}

// Stats is what a cache holds and what came of it.
type Stats struct {
	// Entries and Bytes are what is held now.
	Entries, Bytes int
	// Hits and Misses count the reads that were answered from memory, and those that the store was asked for.
	Hits, Misses int64
}

// New returns an empty cache in front of the store, or an [*idem.ConfigError].
func New(inner storage.Store, cfg Config) (*Store, error) {
	if inner == nil {
		return nil, &idem.ConfigError{Field: "inner", Value: nil, Rule: "must be given"}
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Store{inner: inner, cfg: cfg, reads: map[storage.RecordKey]*reads{}}
	entries, err := simplelru.NewLRU(cfg.EntriesMax, func(_ storage.RecordKey, e entry) { s.stats.Bytes -= e.bytes })
	if err != nil {
		return nil, err
	}
	s.entries = entries
	return s, nil
}

// Stats tells what the cache holds and what came of it.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Entries = s.entries.Len()
	return stats
}

// ResponseBytesMax implements storage.ResponseBound, as the store within does.
func (s *Store) ResponseBytesMax() int { return storage.ResponseBytesMaxOf(s.inner) }

// Decrypts implements storage.Decrypter, as the store within does.
func (s *Store) Decrypts() bool { return storage.Decrypts(s.inner) }

// RefuseBefore implements storage.Loss, as the store within does. Nothing of it is held.
func (s *Store) RefuseBefore(ctx context.Context) (time.Time, error) {
	return s.inner.RefuseBefore(ctx)
}

// SetRefuseBefore implements storage.Loss, as the store within does.
func (s *Store) SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error) {
	return s.inner.SetRefuseBefore(ctx, at)
}

// CacheAge implements storage.CachingStore: Config.MaxAge, or the age of a cache within, if that is longer.
func (s *Store) CacheAge() time.Duration { return max(s.cfg.MaxAge, storage.CacheAgeOf(s.inner)) }

// Get implements storage.Store: from memory where the record is held, else strongly as the store does.
func (s *Store) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	asked := s.cfg.Now()
	if e, ok := s.held(key, asked, func(e entry) bool { return e.read != nil }); ok {
		r := clone(*e.read)
		return &r, nil
	}
	reads := s.begin(key)
	defer s.end(key, reads)
	r, err := s.inner.Get(ctx, key)
	if err == nil && r != nil && holdable(*r) {
		read := clone(*r)
		s.hold(entry{read: &read, asked: asked}, reads)
	}
	return r, err
}

// ScopeMark implements storage.Store, as the store within does.
func (s *Store) ScopeMark(ctx context.Context, keep string) (string, error) {
	return s.inner.ScopeMark(ctx, keep)
}

// LoadResponse implements storage.Store. A sealed response is always opened by the store. A record whose chunks are missing is held no
// longer: another execution may have written over them.
func (s *Store) LoadResponse(ctx context.Context, r storage.Record) (storage.Record, error) {
	if r.Sealed || r.Chunks == 0 || !holdable(r) {
		return s.load(ctx, r)
	}
	asked := s.cfg.Now()
	if e, ok := s.held(r.Key, asked, func(e entry) bool { return e.loaded != nil && same(*e.loaded, r) }); ok {
		loaded := clone(*e.loaded)
		r.Response, r.Chunks, r.ChunksDigest = loaded.Response, loaded.Chunks, loaded.ChunksDigest
		return r, nil
	}
	reads := s.begin(r.Key)
	defer s.end(r.Key, reads)
	loaded, err := s.load(ctx, r)
	if err == nil {
		kept := clone(loaded)
		s.hold(entry{loaded: &kept, asked: asked}, reads)
	}
	return loaded, err
}

func (s *Store) load(ctx context.Context, r storage.Record) (storage.Record, error) {
	loaded, err := s.inner.LoadResponse(ctx, r)
	if errors.Is(err, storage.ErrChunksMissing) {
		s.drop(r.Key)
	}
	return loaded, err
}

// Insert implements storage.Store.
func (s *Store) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	return s.changing(r.Key, func() error { return s.inner.Insert(ctx, r, now) })
}

// Update implements storage.Store.
func (s *Store) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.changing(r.Key, func() error { return s.inner.Update(ctx, r, fence) })
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.changing(r.Key, func() error { return s.inner.Renew(ctx, r, fence) })
}

// Postpone implements storage.Store.
func (s *Store) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.changing(r.Key, func() error { return s.inner.Postpone(ctx, r, fence) })
}

// Prepare implements storage.Store.
func (s *Store) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	inner, err := s.inner.Prepare(c)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return s.changing(c.Record.Key, func() error { return inner(ctx) })
	}, nil
}

// changing makes a write of the record and drops what is held of it, also where there was no reply. A read that overlaps
// the write is not held either. Only a lost condition may show that what is held still stands.
func (s *Store) changing(key storage.RecordKey, write func() error) error {
	err := write()
	var conflict *storage.RecordConflictError
	if errors.As(err, &conflict) && conflict.Existing != nil {
		s.dropUnless(*conflict.Existing)
	} else {
		s.drop(key)
	}
	return err
}
