package pgstore_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgtest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A message that nobody announced is found by the sweep, and one whose outcome is unknown by the reconciler, on the store's own
// queues.
func TestOnPostgreSQLSweepAndReconcilerFindWhatIsDue(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	store := newStore(t, pool, pgstore.Config{})
	now := start
	clock := func() time.Time { return now }
	quiet := slog.New(slog.DiscardHandler)
	engine := must(idem.New(store, idem.Config{Now: clock, Logger: quiet}))(t)
	charge := must(engine.Register(idem.Operation{Name: "orders.charge", Kind: idem.KindDeferred, Policy: idem.IETF()}))(t)
	row := rand.Text()
	calls := 0
	topics := must(outbox.NewTopics(outbox.Config{Now: clock, Logger: quiet}, outbox.Topic{
		Name: "orders.charge",
		Call: func(context.Context, storage.Message) outbox.Outcome { calls++; return outbox.Ambiguous{} },
		Probe: func(context.Context, storage.Message) outbox.Finding {
			return outbox.Found{Outcome: outbox.Delivered{Reference: "ch_1", Evidence: []byte("{}")}}
		},
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			write := pgstore.Exec(row, "insert into counters as c (key, n) values ($1, 1) on conflict (key) do update set n = c.n + 1", row)
			return outbox.Settlement{Writes: []idem.Write{write}, Response: idem.Response{Status: 201, Body: []byte("charged")}}, nil
		},
	}))(t)
	queue := memqueue.New(clock)
	worker := must(outbox.NewWorker(store, topics, queue, queue))(t)
	runner := must(outbox.NewRunner(worker, engine, nil))(t)
	request := idem.Request{Tenant: "t", Key: rand.Text(), Input: canonical.Input{MediaType: "application/json", Body: []byte("{}")}}
	send := func(want int) {
		t.Helper()
		result := must(charge.Do(t.Context(), request, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Send("orders.charge", []byte("{}"))
			return idem.JSON(202, "pending")
		}))(t)
		if result.Response.Status != want {
			t.Errorf("got %d, want %d", result.Response.Status, want)
		}
	}

	send(202)
	for step := range 60 { // minutes
		now = now.Add(time.Minute)
		must(runner.Sweep(t.Context()))(t)
		for _, id := range queue.Take() {
			if err := worker.Deliver(t.Context(), id); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
		}
		must(runner.Reconcile(t.Context()))(t)
	}
	send(201)
	if n, err := harness(t, pool).CountRow(t.Context(), row); err != nil || n != 1 || calls != 1 {
		t.Errorf("settled %d times (%v) after %d calls, want once after one", n, err, calls)
	}
}

// must ends the test where there is an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
