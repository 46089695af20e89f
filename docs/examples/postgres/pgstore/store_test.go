package pgstore_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgtest"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestOnPostgreSQLTheContractHolds(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	newHarness := func(t *testing.T) storetest.Harness { return harness(t, pool) }
	storetest.Run(t, newHarness)
	t.Run("sealed", func(t *testing.T) { storetest.RunSealed(t, newHarness) })
	t.Run("removal", func(t *testing.T) { storetest.RunRemoval(t, newHarness) })
}

// database is one that also has the table of business rows.
func database(t *testing.T) func(address string) string {
	t.Helper()
	url := pgtest.Database(t)
	pool := pgtest.Pool(t, url(""))
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "create table counters (key text primary key, n integer not null)"); err != nil {
		t.Fatal(err)
	}
	return url
}

func newStore(t *testing.T, pool *pgxpool.Pool, cfg pgstore.Config) *pgstore.Store {
	t.Helper()
	store, err := pgstore.New(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// harness is what package storetest needs of a store: the store, and three ways to touch a business row.
func harness(t *testing.T, pool *pgxpool.Pool) storetest.Harness {
	t.Helper()
	store := newStore(t, pool, pgstore.Config{})
	return storetest.Harness{
		Store: store,
		InsertRow: func(key string, failure storage.Failure) storage.Write {
			return pgstore.ExecIf(key, failure, "insert into counters (key, n) values ($1, 1) on conflict do nothing", key)
		},
		AddRow: func(key string) storage.Write {
			return pgstore.Exec(key, "insert into counters as c (key, n) values ($1, 1) on conflict (key) do update set n = c.n + 1", key)
		},
		CountRow: func(ctx context.Context, key string) (n int, err error) {
			err = pool.QueryRow(ctx, "select n from counters where key = $1", key).Scan(&n)
			if errors.Is(err, pgx.ErrNoRows) {
				return 0, nil
			}
			return n, err
		},
		Remove: func(ctx context.Context, now time.Time) error {
			_, err := store.Purge(ctx, now)
			return err
		},
	}
}
