package pgstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgtest"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A token covers an hour and no more: then the condition decides again.
func TestOnPostgreSQLATokenIsKeptForAnHour(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	store := newStore(t, pool, pgstore.Config{Now: func() time.Time { return start }})
	send, err := store.Prepare(storage.Commit{Record: completed(reserved(t)), Now: start, Token: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, send(t.Context()), false)
	purged(t, store, start.Add(time.Hour-time.Millisecond), 0)
	wantErr(t, send(t.Context()), false)
	purged(t, store, start.Add(time.Hour), 1)
	wantErr(t, send(t.Context()), true)
}

func wantErr(t *testing.T, err error, conflict bool) {
	t.Helper()
	var found *storage.RecordConflictError
	if errors.As(err, &found) != conflict || err != nil && !conflict {
		t.Errorf("got %v, want a conflict: %t", err, conflict)
	}
}

func purged(t *testing.T, store *pgstore.Store, now time.Time, want int) {
	t.Helper()
	if deleted, err := store.Purge(t.Context(), now); err != nil || deleted != want {
		t.Errorf("%d rows were deleted (%v), want %d", deleted, err, want)
	}
}

// A row that somebody is about to change is left to the next run, which looks at what it has become.
func TestOnPostgreSQLPurgeLeavesARowThatIsHeld(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	store, r := newStore(t, pool, pgstore.Config{}), completed(reserved(t))
	if err := store.Insert(t.Context(), r, start); err != nil {
		t.Fatal(err)
	}
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), "select from idem_records where key = $1 for update", string(r.Key)); err != nil {
		t.Fatal(err)
	}
	late := start.AddDate(1, 0, 0)
	purged(t, store, late, 0)
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	purged(t, store, late, 1)
}

// More rows than one statement deletes go all the same.
func TestOnPostgreSQLPurgeDeletesAllThatMayGo(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	store := newStore(t, pool, pgstore.Config{})
	if _, err := pool.Exec(t.Context(), "insert into idem_tokens select n::text, '', $1 from generate_series(1, 2500) n", start); err != nil {
		t.Fatal(err)
	}
	purged(t, store, start.Add(time.Hour), 2500)
}

// Two releases run side by side: what the later one keeps in a column of its own survives a write of this one, and does not
// survive its incarnation.
func TestOnPostgreSQLColumnsOfALaterReleaseStay(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	store, r := newStore(t, pool, pgstore.Config{}), reserved(t)
	if err := store.Insert(t.Context(), r, start); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "alter table idem_records add column later text"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "update idem_records set later = 'kept'"); err != nil {
		t.Fatal(err)
	}
	done := completed(r)
	if err := store.Update(t.Context(), done, storage.FenceOf(r)); err != nil {
		t.Fatal(err)
	}
	wantLater(t, pool, r.Key, "kept")
	next := reserved(t)
	next.Key = r.Key
	if err := store.Insert(t.Context(), next, done.FreeAt); err != nil {
		t.Fatal(err)
	}
	wantLater(t, pool, r.Key, "")
}

func wantLater(t *testing.T, pool *pgxpool.Pool, key storage.RecordKey, want string) {
	t.Helper()
	var got string
	err := pool.QueryRow(t.Context(), "select coalesce(later, '') from idem_records where key = $1", string(key)).Scan(&got)
	if err != nil || got != want {
		t.Errorf("the column is %q (%v), want %q", got, err, want)
	}
}
