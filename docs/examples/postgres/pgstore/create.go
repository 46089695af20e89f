package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Create runs the statements of a schema in one transaction, unless the table is there. The table is one that they make. Any
// number of instances may start at once: one creates, and the others wait for it.
//
// A service that runs "create table if not exists" at each start does harm. Two first starts at once collide in PostgreSQL's
// catalogue, and one of them fails. "create index if not exists" waits for every transaction that writes to the table, and all
// later ones wait behind it, also where the index is there.
func Create(ctx context.Context, pool *pgxpool.Pool, table, statements string) error {
	return wrapped("create "+table, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtext('pgstore.Create'))"); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, "select to_regclass($1) is not null", table).Scan(&exists); err != nil || exists {
			return err
		}
		_, err := tx.Exec(ctx, statements)
		return err
	}))
}
