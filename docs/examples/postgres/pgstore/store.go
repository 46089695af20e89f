// Package pgstore is a store on PostgreSQL. It implements storage.Store and outbox.Store, and passes package storetest.
//
// Each write is one transaction: it locks the rows that it is about, judges their conditions as package storage does, and
// writes. Records and messages are locked in one order, so the store's own transactions do not deadlock. The isolation is
// READ COMMITTED, because every row that a condition is about is locked before it is judged. A business write's statement
// judges its own condition, on rows that it locks itself.
package pgstore

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Schema makes the store's tables, one of which is idem_records. [Create] runs it where they are not there yet.
//
//go:embed schema.sql
var Schema string

// Config is the store's configuration. The zero value of each field means its default.
type Config struct {
	// Now is the clock that client request tokens age by, and that the deadlines of writes are compared with. Default time.Now.
	Now func() time.Time
	// ResponseBytesMax is the largest response that is stored, headers included. Default 3.5 MiB.
	ResponseBytesMax int
}

// Store is a store on a PostgreSQL database. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	cfg  Config
}

// New makes a store on the pool, whose database has the tables of [Schema]. The pool's connections must reach the primary, and
// should be configured by [Bound].
func New(pool *pgxpool.Pool, cfg Config) (*Store, error) {
	if pool == nil {
		return nil, errors.New("pgstore: no pool")
	}
	if cfg.ResponseBytesMax < 0 {
		return nil, fmt.Errorf("pgstore: ResponseBytesMax is %d, must not be negative", cfg.ResponseBytesMax)
	}
	if cfg.ResponseBytesMax == 0 {
		cfg.ResponseBytesMax = 3584 << 10
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Store{pool, cfg}, nil
}

// Bound gives the pool's connections the bounds that the store relies on. A process that dies between two statements leaves a
// transaction that holds its locks: without the first bound every retry of its key waits until TCP gives up. The second ends
// a wait for such a lock sooner than the engine's call does. The third is for databases that have it off: a server that crashes
// would forget a claim that it had confirmed, and the provider would be called once more.
func Bound(cfg *pgxpool.Config) {
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "10s"
	cfg.ConnConfig.RuntimeParams["lock_timeout"] = "4s"
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// atomically runs do in one transaction of the database and commits it, unless do returns an error or the time is over. It is the
// one place where errors of a write are given their meaning.
func (s *Store) atomically(ctx context.Context, do func(tx pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return &storage.NotAskedError{Cause: err}
	}
	defer conn.Release()
	if err := s.late(ctx); err != nil { // the wait for a connection may have been long
		return &storage.NotAskedError{Cause: err}
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return uncommitted(err, conn.Conn().IsClosed())
	}
	err = do(tx)
	if err == nil {
		err = s.late(ctx) // an end that is seen here is known to come before COMMIT
	}
	if err != nil {
		lost := conn.Conn().IsClosed()
		_ = tx.Rollback(ctx) // a connection that can't roll back is closed, and the server rolls back
		return uncommitted(err, lost)
	}
	return committed(tx.Commit(ctx))
}

// late returns why a write must not happen any more, nil while it may. Its context ends by the monotonic clock, which stands still
// while a machine is suspended, so both clocks are asked. What the write is about may have expired meanwhile and be gone: its
// condition would hold, and it would be a second execution.
func (s *Store) late(ctx context.Context) error {
	deadline, bounded := ctx.Deadline()
	if now := s.cfg.Now(); bounded && (!now.Before(deadline) || !now.Round(0).Before(deadline.Round(0))) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// ResponseBytesMax implements storage.ResponseBound.
func (s *Store) ResponseBytesMax() int { return s.cfg.ResponseBytesMax }

// Get implements storage.Store.
func (s *Store) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	r, err := readRecord(ctx, s.pool, key, "")
	return r, wrapped("read record "+string(key), err)
}

var errSealed = errors.New("pgstore: the response is encrypted: read it through a seal.Store")

// LoadResponse implements storage.Store. A body lies in its row, however large, so every read has it.
func (s *Store) LoadResponse(ctx context.Context, r storage.Record) (storage.Record, error) {
	if r.Sealed {
		return storage.Record{}, errSealed
	}
	return r, ctx.Err()
}

// Insert implements storage.Store.
func (s *Store) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	return s.Update(ctx, r, storage.Fence{FreeAt: now})
}

// Update implements storage.Store.
func (s *Store) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	put, err := s.newPutRecord(r, fence)
	return s.write(ctx, "write record "+string(r.Key), put, err)
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, r storage.Record, fence storage.Fence) error {
	touch, err := newTouch(r.Key, fence, func(stored *storage.Record) {
		if _, at, queued := stored.Queue(); queued { // its place stays
			stored.LookAt = at
		}
		stored.LeaseUntil, stored.Revision = r.LeaseUntil, r.Revision
	})
	return s.write(ctx, "renew record "+string(r.Key), touch, err)
}

// Postpone implements storage.Store.
func (s *Store) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	touch, err := newTouch(r.Key, fence, func(stored *storage.Record) { stored.LookAt = r.LookAt })
	if r.LookAt.IsZero() {
		err = errors.New("pgstore: postpone a record: the time must not be zero")
	}
	return s.write(ctx, "postpone record "+string(r.Key), touch, err)
}

func copyResponse(r storage.Response) storage.Response {
	r.Header, r.Body = slices.Clone(r.Header), bytes.Clone(r.Body)
	return r
}

func copyKept(k *storage.Kept) *storage.Kept {
	if k == nil {
		return nil
	}
	return &storage.Kept{Reference: k.Reference, Evidence: bytes.Clone(k.Evidence)}
}
