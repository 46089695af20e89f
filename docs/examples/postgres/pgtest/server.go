// Package pgtest gives tests a PostgreSQL server of their own, and a proxy that loses what is on the wire.
package pgtest

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// server is the one of this process: initdb takes a second.
var server struct {
	sync.Mutex
	running *localtool.PostgreSQL
}

// Main runs a package's tests and stops the server that they started. It is what TestMain passes to os.Exit.
func Main(m *testing.M) int {
	defer func() {
		server.Lock()
		defer server.Unlock()
		if server.running != nil {
			server.running.Stop()
		}
	}()
	return m.Run()
}

// Server returns the server of this process, which it starts where it is not running yet. Where no PostgreSQL is installed the
// test is skipped, and with CI=true it fails.
func Server(t testing.TB) *localtool.PostgreSQL {
	t.Helper()
	server.Lock()
	defer server.Unlock()
	if server.running != nil {
		return server.running
	}
	running, err := localtool.OpenPostgreSQL(context.WithoutCancel(t.Context()))
	switch {
	case errors.Is(err, localtool.ErrNoPostgreSQL) && os.Getenv("CI") != "true":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	server.running = running
	return running
}

var schemas atomic.Int64

// Database makes tables of the store that no other test has, in a schema of their own, and returns how to connect to them. An
// address is where to connect, such as a proxy's; "" is the server itself.
func Database(t testing.TB) func(address string) (url string) {
	t.Helper()
	url := Schema(t)
	pool := Pool(t, url(""))
	defer pool.Close()
	if err := pgstore.Create(t.Context(), pool, "idem_records", pgstore.Schema); err != nil {
		t.Fatal(err)
	}
	return url
}

// Schema makes a schema of its own that has no tables yet, and returns how to connect to it, as Database does.
func Schema(t testing.TB) func(address string) (url string) {
	t.Helper()
	running := Server(t)
	schema := "test" + strconv.FormatInt(schemas.Add(1), 10)
	url := func(address string) string { return running.URL(address, "postgres") + "&search_path=" + schema }
	pool := Pool(t, url(""))
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "create schema "+schema); err != nil {
		t.Fatal(err)
	}
	return url
}

// Pool opens a pool, with changes, which is closed when the test ends. Its waits for locks are long: on a busy machine a test must
// not be told of contention that it did not make.
func Pool(t testing.TB, url string, changes ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 16
	cfg.ConnConfig.RuntimeParams["lock_timeout"] = "60s"
	for _, change := range changes {
		change(cfg)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
