package outbox_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// hold is how long the handler of [TestAHandlerThatRunsLongStaysAlone] runs. From a minute on its lease is the engine's default;
// below it is less than half of that: a machine that stands for some seconds ends no shorter one.
var hold = flag.Duration("hold", 21*time.Second, "how long the wrapped handler runs; with -short 5 s")

// A wrapped handler in a container runs for more than two leases (with -short for about one), because each is renewed. It stays alone
// while two processes sweep and reconcile all the time, and its client repeats the request: one effect, 409 until it ends, then its answer.
func TestAHandlerThatRunsLongStaysAlone(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		client := dynamotest.Client(url, wirefault.Patiently)
		tables, err := dynamotest.CreateTables(t.Context(), client, "long")
		if err != nil {
			t.Fatal(err)
		}
		inner, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
		if err != nil {
			t.Fatal(err)
		}
		l := &long{T: t, store: faulty.New(inner), log: &log{}, hold: *hold}
		if testing.Short() {
			l.hold = 5 * time.Second
		}
		l.run()
	})
}

// long is a service in a container, with two runners beside it.
type long struct {
	*testing.T
	store   *faulty.Store
	log     *log
	hold    time.Duration
	url     string
	engine  *idem.Engine
	effects atomic.Int64
	waits   atomic.Int64 // retries that got 409
	// key is the record's, from within the handler.
	key atomic.Pointer[storage.RecordKey]
}

const runnerPeriod = 100 * time.Millisecond

func (l *long) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *long) run() {
	l.serve()
	stop := l.runners()
	first := make(chan answer, 1)
	go func() { first <- l.post() }()
	for l.key.Load() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	for begun := time.Now(); len(first) == 0; time.Sleep(200 * time.Millisecond) {
		again := l.post()
		if again.replayed {
			break
		}
		l.waits.Add(1)
		if again.status != http.StatusConflict || again.said != "in_progress" || again.retryAfter == "" || !strings.Contains(again.body, header.CodeInProgress) {
			l.Fatalf("after %v a retry got %+v", time.Since(begun), again)
		}
	}
	got := <-first
	stop()
	again := l.post()
	if got.status != http.StatusCreated || got.said != "executed" || again.status != got.status || !again.replayed || again.body != got.body {
		l.Errorf("the first request got %+v, a retry after it %+v", got, again)
	}
	record, err := l.store.Get(l.Context(), *l.key.Load())
	l.ok(err)
	if n := l.effects.Load(); n != 1 || record.State != storage.StateCompleted || record.Attempts != 1 {
		l.Errorf("%d effects, the record is %s after %d attempts", n, record.State, record.Attempts)
	}
	beset, seen := l.beset()
	if strings.Contains(l.log.String(), `"msg":"idempotency.swept"`) || !beset {
		l.Errorf("%s; log:\n%s", seen, l.log)
	}
	l.Logf("held for %v at least: %s", l.hold, seen)
}

// beset says that the handler was renewed, asked for and looked for so often that its staying alone proves something.
func (l *long) beset() (yes bool, seen string) {
	renewals, waits, listings := l.store.Count(faulty.Renew), int(l.waits.Load()), l.store.Count(faulty.QueuedRecords)
	seen = fmt.Sprintf("%d renewals, %d retries got 409, %d listings of records", renewals, waits, listings)
	// Four loops list, each slower than its period by what a round takes.
	return renewals >= 3 && waits >= int(l.hold/time.Second) && listings >= int(l.hold/runnerPeriod), seen
}

// serve begins the service, whose handler writes for itself, at its end.
func (l *long) serve() {
	cfg := idem.Config{}
	if l.hold < time.Minute {
		cfg = engineConfig
		cfg.ExecutionMax, cfg.CallTimeout = 10*time.Second, 2*time.Second
	}
	cfg.Logger = slog.New(slog.NewJSONHandler(l.log, nil))
	var err error
	l.engine, err = idem.New(l.store, cfg)
	l.ok(err)
	mw, err := middleware.New(l.engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: tenant}, nil
	}})
	l.ok(err)
	op := idem.Operation{Name: operation, Probed: true, Policy: idem.IETF()}
	service, err := mw.Wrap(op, middleware.Route{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := idem.Scope{Tenant: tenant, Operation: operation, Key: "k"}.RecordKey()
		l.key.Store(&key)
		for began, yes := time.Now(), false; time.Since(began) < l.hold || !yes && time.Since(began) < 10*l.hold; yes, _ = l.beset() {
			if err := idem.Pause(r.Context(), 50*time.Millisecond); err != nil { // a machine that is slow takes longer to beset it
				l.Errorf("the handler's context ended: %v", err)
				return
			}
		}
		n := l.effects.Add(1)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "order %d", n)
	}))
	l.ok(err)
	server := httptest.NewServer(service)
	l.Cleanup(server.Close)
	l.url = server.URL
}

// runners sweep and reconcile all the time. Their probe finds nothing, as long as there is no effect: who parks the record, frees it.
func (l *long) runners() (stop func()) {
	cfg := outboxConfig
	cfg.Logger = slog.New(slog.NewJSONHandler(l.log, nil))
	topics, err := outbox.NewTopics(cfg)
	l.ok(err)
	ctx, end := context.WithCancel(l.Context())
	var running sync.WaitGroup
	for range 2 {
		queue := memqueue.New(time.Now)
		worker, err := outbox.NewWorker(l.store, topics, queue, queue)
		l.ok(err)
		runner, err := outbox.NewRunner(worker, l.engine, map[string]outbox.Probe{operation: func(context.Context, storage.Record) outbox.Finding {
			return outbox.Absent{}
		}})
		l.ok(err)
		running.Go(func() {
			if err := runner.Run(ctx, outbox.RunConfig{Queue: queue, Period: runnerPeriod}); err != nil {
				l.Errorf("run: %v", err)
			}
		})
	}
	return func() { end(); running.Wait() }
}

// answer is what a client was answered.
type answer struct {
	status                 int
	said, retryAfter, body string
	replayed               bool
}

func (l *long) post() answer {
	request, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.url+"/orders", strings.NewReader("{}"))
	if err != nil {
		l.Error(err)
		return answer{}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", `"k"`)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.Error(err)
		return answer{}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		l.Error(err)
	}
	return answer{
		status: response.StatusCode, said: response.Header.Get("Idempotency-Status"), retryAfter: response.Header.Get("Retry-After"),
		body: string(body), replayed: response.Header.Get("Idempotent-Replayed") == "true",
	}
}
