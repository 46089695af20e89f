// Package memstore is a store in memory, for tests, examples and simulations. It implements [storage.Store] and the
// store of package outbox, so a test runs the same engine, handlers and workers as production does. It is also the
// reference that package storetest compares other stores with.
//
// Do not use it in production: everything is lost when the process ends, and other processes cannot see it. Use
// package dynamo there. Handlers write rows of the store's own by [Write]; Config.Translate turns writes that were
// made for another store into those. Package storetest/faulty adds faults, and package idemtest uses both to test
// handlers.
//
// It is simple on purpose: one mutex, maps, and copies of everything that goes in or out. It behaves as DynamoDB
// does: reads are strong, a write is conditional on one item, and all conditions of a transaction are judged on the
// state before it. Client request tokens are remembered for ten minutes, indexes have shards, native TTL removes
// items late, and large bodies need a second read.
package memstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/clock"
)

// Config is the store's configuration. The zero value of each field means its default.
type Config struct {
	// Translate turns an application's own business write into a native one. Default: the write is a [Write] already.
	Translate func(storage.Write) (Write, error)
	// Now is the clock that client request tokens age by; nothing else does. Default time.Now.
	Now func() time.Time
	// Shards is the number of shards that each queue has. Default 4.
	Shards int
	// InlineBytesMax is the largest body that is read together with its record; larger ones are what LoadResponse is for.
	// Default 4 KiB.
	InlineBytesMax int
	// ResponseBytesMax is the largest response that is stored, headers included. Default 3.5 MiB.
	ResponseBytesMax int
}

// Store is a store in memory. It implements storage.Store and outbox.Store, and is safe for concurrent use.
type Store struct {
	cfg Config
	// clock is the one that contexts go by, whatever Config.Now says.
	clock func() time.Time

	mu       sync.Mutex
	records  map[storage.RecordKey]storage.Record
	messages map[storage.MessageID]storage.Message
	rows     map[string][]byte
	tokens   map[string]sent
	// refuseBefore is the instant before which data may have been lost.
	refuseBefore time.Time
	mark         string
	// places are where runs of sweeps and reconcilers stopped.
	places map[string]string
}

// New makes an empty store. It returns an error for a negative number in the configuration.
func New(cfg Config) (*Store, error) {
	for _, n := range []struct {
		field    *int
		fallback int
	}{{&cfg.Shards, 4}, {&cfg.InlineBytesMax, 4 << 10}, {&cfg.ResponseBytesMax, 3584 << 10}} {
		if *n.field < 0 {
			return nil, fmt.Errorf("memstore: %d in the configuration, must not be negative", *n.field)
		}
		if *n.field == 0 {
			*n.field = n.fallback
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Translate == nil {
		cfg.Translate = native
	}
	return &Store{
		cfg: cfg, clock: time.Now, records: map[storage.RecordKey]storage.Record{}, messages: map[storage.MessageID]storage.Message{},
		rows: map[string][]byte{}, tokens: map[string]sent{}, places: map[string]string{},
	}, nil
}

// ResponseBytesMax implements storage.ResponseBound.
func (s *Store) ResponseBytesMax() int { return s.cfg.ResponseBytesMax }

// Get implements storage.Store.
func (s *Store) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen(key), nil
}

// ScopeMark implements storage.Store.
func (s *Store) ScopeMark(ctx context.Context, keep string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mark != "" || keep == "" {
		return s.mark, nil
	}
	if err := s.late(ctx); err != nil {
		return "", &storage.NotAskedError{Cause: err}
	}
	s.mark = keep
	return s.mark, nil
}

// LoadResponse implements storage.Store.
func (s *Store) LoadResponse(ctx context.Context, r storage.Record) (storage.Record, error) {
	if err := ctx.Err(); err != nil {
		return storage.Record{}, err
	}
	if r.Sealed {
		return storage.Record{}, errSealed
	}
	if r.Chunks == 0 {
		return r, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, ok := s.records[r.Key]
	if !ok || stored.OperationID != r.OperationID || stored.State != r.State || digest(stored) != r.ChunksDigest {
		return storage.Record{}, storage.ErrChunksMissing
	}
	r.Response.Body, r.Chunks, r.ChunksDigest = copyResponse(stored.Response).Body, 0, ""
	return r, nil
}

var errSealed = errors.New("memstore: the response is encrypted: read it through a seal.Store")

// Insert implements storage.Store.
func (s *Store) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	return s.Update(ctx, r, storage.Fence{FreeAt: now})
}

// Update implements storage.Store.
func (s *Store) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.write(ctx, putRecord{Record: r, Fence: copyFence(fence)})
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.write(ctx, touchRecord{Key: r.Key, Fence: copyFence(fence), change: func(stored *storage.Record) {
		if _, at, queued := stored.Queue(); queued { // its place stays
			stored.LookAt = at
		}
		stored.LeaseUntil, stored.Revision = r.LeaseUntil, r.Revision
	}})
}

// Postpone implements storage.Store.
func (s *Store) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	if r.LookAt.IsZero() {
		return errors.New("memstore: postpone a record: the time must not be zero")
	}
	return s.write(ctx, touchRecord{Key: r.Key, Fence: copyFence(fence), change: func(stored *storage.Record) { stored.LookAt = r.LookAt }})
}

// write makes one conditional write that is no transaction; applying it copies.
func (s *Store) write(ctx context.Context, i item) error {
	if err := s.late(ctx); err != nil {
		return &storage.NotAskedError{Cause: err}
	}
	if err := i.validate(s); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := i.judge(s); err != nil {
		return err
	}
	i.apply(s)
	return nil
}

// late returns why a write must not happen any more, nil while it may. The time of its context may be over by the wall clock alone.
func (s *Store) late(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && clock.Over(deadline, s.clock()) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// chunkBytes is about the size of the items that a body too large for its record would lie in.
const chunkBytes = 300 << 10

// digest tells a record's body from any other.
func digest(r storage.Record) string {
	sum := sha256.Sum256(r.Response.Body)
	return string(sum[:])
}

// seen is the record as a read of its one item finds it: without a large body. The lock is held.
func (s *Store) seen(key storage.RecordKey) *storage.Record {
	stored, ok := s.records[key]
	if !ok {
		return nil
	}
	r := stored
	if size := len(r.Response.Body); size > s.cfg.InlineBytesMax {
		r.Response.Body, r.Chunks, r.ChunksDigest = nil, 1+(size-1)/chunkBytes, digest(stored)
	}
	r = copyRecord(r)
	return &r
}
