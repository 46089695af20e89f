package pgstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgtest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

var start = time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)

// reserved is a record as a reserve inserts it, in a scope of its own.
func reserved(t *testing.T) storage.Record {
	t.Helper()
	mint := storage.IDGenerator{Random: rand.Reader}
	key := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: rand.Text()}.RecordKey()
	id, idErr := mint.OperationID(key)
	revision, revisionErr := mint.Revision()
	owner, ownerErr := mint.Owner()
	if err := errors.Join(idErr, revisionErr, ownerErr); err != nil {
		t.Fatal(err)
	}
	return storage.Record{
		Key: key, State: storage.StateInProgress, OperationID: id, Epoch: 1, Owner: owner, Revision: revision,
		LeaseUntil: start.Add(time.Minute), Tenant: "tenant", Operation: "orders.create", Kind: storage.KindAtomic,
		CreatedAt: start, Retention: time.Hour, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
}

// completed is the record as its commit makes it.
func completed(r storage.Record) storage.Record {
	r.State, r.DoneAt, r.ExpiresAt, r.FreeAt = storage.StateCompleted, start, start.Add(time.Hour), start.Add(time.Hour)
	r.Response = storage.Response{Status: 201, Body: []byte("{}")}
	return r
}

// prepared is a commit of a new record that counts a row of its own.
func prepared(t *testing.T, store *pgstore.Store) (r storage.Record, row string, send func(context.Context) error) {
	t.Helper()
	r, row = completed(reserved(t)), rand.Text()
	write := pgstore.Exec(row, "insert into counters as c (key, n) values ($1, 1) on conflict (key) do update set n = c.n + 1", row)
	send, err := store.Prepare(storage.Commit{Record: r, Now: start, Writes: []storage.Write{write}, Token: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	return r, row, send
}

// wantStored demands the record and the count of its row.
func wantStored(t *testing.T, pool *pgxpool.Pool, key storage.RecordKey, row string, stored bool) {
	t.Helper()
	want := 0
	if stored {
		want = 1
	}
	r, err := newStore(t, pool, pgstore.Config{}).Get(t.Context(), key)
	n, countErr := harness(t, pool).CountRow(t.Context(), row)
	if err != nil || countErr != nil || (r != nil) != stored || n != want {
		t.Errorf("stored %+v and counted %d (%v, %v), want stored %t", r, n, err, countErr, stored)
	}
}

func TestOnPostgreSQLACommitWhoseReplyIsLostIsSentAgain(t *testing.T) {
	url := database(t)
	direct := pgtest.Pool(t, url(""))
	proxy := pgtest.NewProxy(t, pgtest.Server(t).Address)
	store := newStore(t, pgtest.Pool(t, url(proxy.Address)), pgstore.Config{})
	for name, c := range map[string]struct {
		loss     pgtest.Loss
		happened bool
	}{
		"the connection is cut between the commit and its reply": {pgtest.Loss{At: pgtest.AtCommit, Forward: true}, true},
		"the connection is cut before the commit arrives":        {pgtest.Loss{At: pgtest.AtCommit}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, row, send := prepared(t, store)
			proxy.Lose(&c.loss)
			var unknown *storage.OutcomeUnknownError
			if err := send(t.Context()); !errors.As(err, &unknown) {
				t.Errorf("got %v, want an OutcomeUnknownError", err)
			}
			wantStored(t, direct, r.Key, row, c.happened)
			if err := send(t.Context()); err != nil {
				t.Errorf("sent again: %v", err)
			}
			wantStored(t, direct, r.Key, row, true)
		})
	}
}

// A lost COMMIT may arrive after the same bytes were sent again: the second sending waits for the first, by its token.
func TestOnPostgreSQLACommitThatIsStillOnItsWayHappensOnce(t *testing.T) {
	url := database(t)
	direct := pgtest.Pool(t, url(""))
	proxy := pgtest.NewProxy(t, pgtest.Server(t).Address)
	store := newStore(t, pgtest.Pool(t, url(proxy.Address)), pgstore.Config{})
	r, row, send := prepared(t, store)
	held, release := make(chan struct{}), make(chan struct{})
	proxy.Lose(&pgtest.Loss{At: pgtest.AtCommit, Before: func() { close(held); <-release }, Forward: true})
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- send(t.Context()) }()
	<-held
	go func() { second <- send(t.Context()) }()
	waitForLock(t, direct)
	close(release)
	var unknown *storage.OutcomeUnknownError
	if err := <-first; !errors.As(err, &unknown) {
		t.Errorf("the first sending: %v, want an OutcomeUnknownError", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the second sending: %v", err)
	}
	wantStored(t, direct, r.Key, row, true)
}

// waitForLock returns when somebody waits for a lock of the database.
func waitForLock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for {
		var waiting bool
		err := pool.QueryRow(t.Context(), "select exists (select from pg_locks where not granted)").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if waiting {
			return
		}
		if err := idem.Pause(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// What the server says before COMMIT means that nothing happened; some of it that another try may help.
func TestOnPostgreSQLRefusalsHaveTheirMeaning(t *testing.T) {
	url := database(t)
	direct := pgtest.Pool(t, url(""))
	proxy := pgtest.NewProxy(t, pgtest.Server(t).Address)
	store := newStore(t, pgtest.Pool(t, url(proxy.Address)), pgstore.Config{})
	contention, throttle := "contention", "throttle"
	for code, want := range map[string]string{
		"40001": contention, "40P01": contention, "55P03": contention, "25P03": contention,
		"53000": throttle, "53100": throttle, "53200": throttle, "53300": throttle, "53400": throttle, "57014": throttle,
		"57P01": throttle, "57P02": throttle, "57P03": throttle,
		"":      throttle, // the connection is cut
		"42P01": "", "25006": "", "XX000": "",
	} {
		t.Run("code "+code, func(t *testing.T) {
			r, row, send := prepared(t, store)
			proxy.Lose(&pgtest.Loss{At: pgtest.AtBegin, Refuse: code})
			err := send(t.Context())
			got := ""
			switch {
			case errors.Is(err, storage.ErrThrottled):
				got = throttle
			case errors.Is(err, storage.ErrContention):
				got = contention
			}
			var unknown *storage.OutcomeUnknownError
			if err == nil || got != want || errors.As(err, &unknown) {
				t.Errorf("%v is %q, want %q", err, got, want)
			}
			wantStored(t, direct, r.Key, row, false)
			if err := send(t.Context()); err != nil {
				t.Errorf("sent again: %v", err)
			}
			wantStored(t, direct, r.Key, row, true)
		})
	}
}

// A deferred constraint is judged by COMMIT itself: its refusal is an answer, not a lost reply.
func TestOnPostgreSQLACommitThatADeferredConstraintRefusesDidNotHappen(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	if _, err := pool.Exec(t.Context(), "create table seats (id int, taken int unique deferrable initially deferred); insert into seats values (1, 7)"); err != nil {
		t.Fatal(err)
	}
	store, r := newStore(t, pool, pgstore.Config{}), completed(reserved(t))
	send, err := store.Prepare(storage.Commit{
		Record: r, Now: start, Token: rand.Text(), Writes: []storage.Write{pgstore.Exec("seats/2", "insert into seats values (2, 7)")},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = send(t.Context())
	var unknown *storage.OutcomeUnknownError
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "23505" || errors.As(err, &unknown) || errors.Is(err, storage.ErrContention) {
		t.Errorf("got %v, want the server's refusal", err)
	}
	wantStored(t, pool, r.Key, "none", false)
}

// Servers say the severity of an error in their own language, and once more in English.
func TestOnPostgreSQLACommitThatIsRefusedInAnotherLanguageDidNotHappen(t *testing.T) {
	url := database(t)
	proxy := pgtest.NewProxy(t, pgtest.Server(t).Address)
	r, row, send := prepared(t, newStore(t, pgtest.Pool(t, url(proxy.Address)), pgstore.Config{}))
	proxy.Lose(&pgtest.Loss{At: pgtest.AtCommit, Refuse: "40001"})
	var unknown *storage.OutcomeUnknownError
	if err := send(t.Context()); !errors.Is(err, storage.ErrContention) || errors.As(err, &unknown) {
		t.Errorf("got %v, want contention", err)
	}
	wantStored(t, pgtest.Pool(t, url("")), r.Key, row, false)
}

// Somebody who holds a row for too long is contention, and the wait for them ends.
func TestOnPostgreSQLAWaitForALockEnds(t *testing.T) {
	url := database(t)
	direct := pgtest.Pool(t, url(""))
	impatient := pgtest.Pool(t, url(""), func(cfg *pgxpool.Config) { cfg.ConnConfig.RuntimeParams["lock_timeout"] = "50" })
	store, r := newStore(t, impatient, pgstore.Config{}), reserved(t)
	if err := store.Insert(t.Context(), r, start); err != nil {
		t.Fatal(err)
	}
	holder, err := direct.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), "select from idem_records where key = $1 for update", string(r.Key)); err != nil {
		t.Fatal(err)
	}
	if err := store.Update(t.Context(), completed(r), storage.FenceOf(r)); !errors.Is(err, storage.ErrContention) {
		t.Errorf("got %v, want contention", err)
	}
}

// What Bound sets is what the connections have, also in a database that confirms before it writes.
func TestOnPostgreSQLBoundReachesTheServer(t *testing.T) {
	server := pgtest.Server(t)
	own := pgtest.Pool(t, server.URL("", "postgres"))
	for _, statement := range []string{"drop database if exists hasty", "create database hasty", "alter database hasty set synchronous_commit to off"} {
		if _, err := own.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	settings := func(changes ...func(*pgxpool.Config)) (idle, lock, confirmed string) {
		const query = "select current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout'), current_setting('synchronous_commit')"
		if err := pgtest.Pool(t, server.URL("", "hasty"), changes...).QueryRow(t.Context(), query).Scan(&idle, &lock, &confirmed); err != nil {
			t.Fatal(err)
		}
		return idle, lock, confirmed
	}
	if _, _, confirmed := settings(); confirmed != "off" {
		t.Fatalf("the database confirms with %s: the test shows nothing", confirmed)
	}
	if idle, lock, confirmed := settings(pgstore.Bound); idle != "10s" || lock != "4s" || confirmed != "on" {
		t.Errorf("a transaction may idle for %s, wait for %s, and is confirmed with %s, want 10s, 4s and on", idle, lock, confirmed)
	}
}

// A database that cannot be reached, and a time that is over, mean that nothing was sent.
func TestOnPostgreSQLWhatNeverLeftIsToldSo(t *testing.T) {
	url := database(t)
	proxy := pgtest.NewProxy(t, "127.0.0.1:1") // nobody listens there
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		address string
		ctx     context.Context
	}{"nobody listens": {proxy.Address, t.Context()}, "the time is over": {"", ended}} {
		t.Run(name, func(t *testing.T) {
			_, _, send := prepared(t, newStore(t, pgtest.Pool(t, url(c.address)), pgstore.Config{}))
			var notAsked *storage.NotAskedError
			if err := send(c.ctx); !errors.As(err, &notAsked) {
				t.Errorf("got %v, want a NotAskedError", err)
			}
		})
	}
}

// A machine that was suspended while a write waited sees in the wall clock alone that the deadline is over: the context goes by the
// other one. What the write is about may have expired meanwhile and be gone.
func TestOnPostgreSQLAWriteIsNotMadeAfterItsDeadlineByTheWallClock(t *testing.T) {
	url := database(t)
	direct := pgtest.Pool(t, url(""))
	proxy := pgtest.NewProxy(t, pgtest.Server(t).Address)
	var ahead atomic.Int64
	store := newStore(t, pgtest.Pool(t, url(proxy.Address)), pgstore.Config{Now: func() time.Time {
		return time.Now().Add(time.Duration(ahead.Load()))
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var notAsked *storage.NotAskedError
	t.Run("it waited for a connection", func(t *testing.T) {
		r, row, send := prepared(t, store)
		proxy.Lose(&pgtest.Loss{At: pgtest.AtBegin})
		ahead.Store(int64(time.Hour))
		defer ahead.Store(0)
		if err := send(ctx); !errors.As(err, &notAsked) {
			t.Errorf("got %v, want a NotAskedError", err)
		}
		if unmet := proxy.Lose(nil); !unmet {
			t.Error("a transaction was begun")
		}
		wantStored(t, direct, r.Key, row, false)
	})
	t.Run("it waited for a lock", func(t *testing.T) {
		r := reserved(t)
		if err := store.Insert(ctx, r, start); err != nil {
			t.Fatal(err)
		}
		holder, err := direct.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Rollback(context.WithoutCancel(ctx))
		if _, err := holder.Exec(ctx, "select from idem_records where key = $1 for update", string(r.Key)); err != nil {
			t.Fatal(err)
		}
		written := make(chan error, 1)
		go func() { written <- store.Update(ctx, completed(r), storage.FenceOf(r)) }()
		waitForLock(t, direct)
		ahead.Store(int64(time.Hour))
		defer ahead.Store(0)
		if err := holder.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-written; !errors.As(err, &notAsked) {
			t.Errorf("got %v, want a NotAskedError", err)
		}
		if stored, err := store.Get(ctx, r.Key); err != nil || stored.State != storage.StateInProgress {
			t.Errorf("stored %+v (%v), want what was there", stored, err)
		}
	})
}

// Transfers between two accounts in both directions at once wait for each other: the store orders their writes.
func TestOnPostgreSQLTransfersInBothDirectionsDoNotDeadlock(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	store := newStore(t, pool, pgstore.Config{})
	if _, err := pool.Exec(t.Context(), "insert into counters values ('a', 100), ('b', 100)"); err != nil {
		t.Fatal(err)
	}
	move := func(from, to string) error {
		send, err := store.Prepare(storage.Commit{Record: completed(reserved(t)), Now: start, Token: rand.Text(), Writes: []storage.Write{
			pgstore.ExecIf(from, idem.Retry(), "update counters set n = n - 1 where key = $1 and n >= 1", from),
			pgstore.Exec(to, "update counters set n = n + 1 where key = $1", to),
		}})
		if err != nil {
			return err
		}
		return send(t.Context())
	}
	done := make(chan error)
	for i := range 40 {
		go func() {
			if i%2 == 0 {
				done <- move("a", "b")
			} else {
				done <- move("b", "a")
			}
		}()
	}
	for range 40 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var counts string
	err := pool.QueryRow(t.Context(), "select string_agg(n::text, ' ' order by key) from counters where key in ('a', 'b')").Scan(&counts)
	if want := fmt.Sprint(100, " ", 100); err != nil || counts != want {
		t.Errorf("the accounts have %s (%v), want %s", counts, err, want)
	}
}
