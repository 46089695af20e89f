package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Names of rows of idem_values.
const (
	scopeMark    = "scope-mark"
	refuseBefore = "refuse-before"
	placePrefix  = "place."
)

// value reads a row of idem_values; "" where there is none.
func (s *Store) value(ctx context.Context, name string) (value string, err error) {
	err = s.pool.QueryRow(ctx, "select value from idem_values where name = $1", name).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return value, wrapped("read "+name, err)
}

// change writes in a transaction of its own, so that a lost reply is told from one that never left.
func (s *Store) change(ctx context.Context, name, sql string, args ...any) error {
	return wrapped("write "+name, s.atomically(ctx, func(tx pgx.Tx) error { return done(tx.Exec(ctx, sql, args...)) }))
}

// ScopeMark implements storage.Store.
func (s *Store) ScopeMark(ctx context.Context, keep string) (string, error) {
	kept, err := s.value(ctx, scopeMark)
	if err != nil || kept != "" || keep == "" {
		return kept, err
	}
	if err := s.change(ctx, scopeMark, "insert into idem_values (name, value) values ($1, $2) on conflict do nothing", scopeMark, keep); err != nil {
		return "", err
	}
	return s.value(ctx, scopeMark) // perhaps another's
}

// RefuseBefore implements storage.Loss.
func (s *Store) RefuseBefore(ctx context.Context) (time.Time, error) {
	text, err := s.value(ctx, refuseBefore)
	if err != nil || text == "" {
		return time.Time{}, err
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms).UTC(), wrapped("read "+refuseBefore, err)
}

// SetRefuseBefore implements storage.Loss.
func (s *Store) SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error) {
	at = at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
	if at.UnixMilli() <= 0 {
		return time.Time{}, fmt.Errorf("pgstore: RefuseBefore can't be %v: it must be after 1970", at)
	}
	const later = `insert into idem_values as stored (name, value) values ($1, $2)
		on conflict (name) do update set value = excluded.value where stored.value::bigint < excluded.value::bigint`
	if err := s.change(ctx, refuseBefore, later, refuseBefore, strconv.FormatInt(at.UnixMilli(), 10)); err != nil {
		return time.Time{}, err
	}
	return s.RefuseBefore(ctx)
}

// Place implements outbox.Store.
func (s *Store) Place(ctx context.Context, name string) (string, error) {
	return s.value(ctx, placePrefix+name)
}

// SetPlace implements outbox.Store.
func (s *Store) SetPlace(ctx context.Context, name, cursor string) error {
	return s.change(ctx, placePrefix+name, "insert into idem_values (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value", placePrefix+name, cursor)
}
