package outbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

const (
	operation = "orders.create"
	tenant    = "t"
	// recordAbsentAfter is when absence is proven, from the lease's end: the defaults of LongestRequest, of the engine's
	// FreezeAllowance, and of ClockSkew.
	recordAbsentAfter = 122 * time.Second
	// skew is the default of ClockSkew: a dead lease is parked that much later.
	skew = 2 * time.Second
	day  = 24 * time.Hour
)

var mint = storage.IDGenerator{Random: rand.Reader}

// recordWorld is an engine on the reference store with its sweep, in a bubble whose clock the test owns.
type recordWorld struct {
	*testing.T
	mem    *memstore.Store
	store  *faulty.Store
	engine *idem.Engine
	orders *idem.Registered
	cfg    outbox.Config
	log    *log
	// runs counts executions.
	runs int
}

// log is safe for concurrent use.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func bubble(t *testing.T, cfg outbox.Config, test func(t *testing.T, w *recordWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mem, err := memstore.New(memstore.Config{Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		w := &recordWorld{T: t, mem: mem, store: faulty.New(mem), log: &log{}, cfg: cfg}
		w.cfg.Logger = slog.New(slog.NewJSONHandler(w.log, nil))
		w.engine, err = idem.New(w.store, idem.Config{Logger: w.cfg.Logger})
		w.ok(err)
		w.orders, err = w.engine.Register(idem.Operation{Name: operation, Kind: idem.KindWrapped, UnknownToOperator: true, Policy: idem.IETF()})
		w.ok(err)
		test(t, w)
	})
}

func (w *recordWorld) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *recordWorld) swept(r *outbox.Runner, want outbox.Counts) {
	w.Helper()
	if got, err := r.Sweep(w.Context()); err != nil || got != (outbox.Report{Records: want}) {
		w.Errorf("sweep: %+v, %v, want %+v", got, err, want)
	}
}

// runner asks the probe about orders; nil registers none.
func (w *recordWorld) runner(probe outbox.Probe) *outbox.Runner {
	w.Helper()
	probes := map[string]outbox.Probe{}
	if probe != nil {
		probes[operation] = probe
	}
	return w.runnerOn(w.store, probes)
}

func (w *recordWorld) runnerOn(store outbox.Store, probes map[string]outbox.Probe) *outbox.Runner {
	w.Helper()
	r, err := newRunner(store, w.engine, probes, w.cfg)
	w.ok(err)
	return r
}

// newRunner makes a runner without topics.
func newRunner(store outbox.Store, engine *idem.Engine, probes map[string]outbox.Probe, cfg outbox.Config) (*outbox.Runner, error) {
	topics, err := outbox.NewTopics(cfg)
	if err != nil {
		return nil, err
	}
	queue := memqueue.New(time.Now)
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	if err != nil {
		return nil, err
	}
	return outbox.NewRunner(worker, engine, probes)
}

func (w *recordWorld) reconciled(r *outbox.Runner, want outbox.Counts) {
	w.Helper()
	if got, err := r.Reconcile(w.Context()); err != nil || got != (outbox.Report{Records: want}) {
		w.Errorf("reconcile: %+v, %v, want %+v", got, err, want)
	}
}

// reserved inserts a record as the reserve of a process does that died then; its lease begins now.
func (w *recordWorld) reserved(key string, change ...func(*storage.Record)) storage.Record {
	w.Helper()
	r := reserved(w.T, key, time.Now())
	for _, f := range change {
		f(&r)
	}
	w.ok(w.mem.Insert(w.Context(), r, time.Now()))
	return w.record(r.Key)
}

func reserved(t *testing.T, key string, now time.Time) storage.Record {
	t.Helper()
	pk := idem.Scope{Tenant: tenant, Operation: operation, Key: key}.RecordKey()
	id, err := mint.OperationID(pk)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := mint.Owner()
	if err != nil {
		t.Fatal(err)
	}
	return storage.Record{
		Key: pk, State: storage.StateInProgress, OperationID: id, Epoch: 1, Owner: owner, Revision: storage.Revision(owner), LeaseUntil: now.Add(lease),
		Tenant: tenant, Operation: operation, Kind: idem.KindWrapped, CreatedAt: now, Retention: day, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
}

// parked inserts a record that is unknown, its lease over now.
func (w *recordWorld) parked(key string, change ...func(*storage.Record)) storage.Record {
	w.Helper()
	return w.reserved(key, append([]func(*storage.Record){func(r *storage.Record) {
		r.State, r.LeaseUntil, r.LastError = storage.StateUnknown, time.Now(), "the lease ran out"
	}}, change...)...)
}

func (w *recordWorld) record(key storage.RecordKey) storage.Record {
	w.Helper()
	r, err := w.mem.Get(w.Context(), key)
	w.ok(err)
	if r == nil {
		w.Fatal("the record is gone")
	}
	loaded, err := w.mem.LoadResponse(w.Context(), *r)
	w.ok(err)
	return loaded
}

func (w *recordWorld) want(r storage.Record, state storage.State, status int, epoch int64) {
	w.Helper()
	if got := w.record(r.Key); got.State != state || got.Response.Status != status || got.Epoch != epoch {
		w.Errorf("%s with status %d in epoch %d, want %s, %d, %d", got.State, got.Response.Status, got.Epoch, state, status, epoch)
	}
}

// request asks with the key, as any client; the handler answers 201 with the number of its run.
func (w *recordWorld) request(key string) *idem.Result {
	w.Helper()
	result, err := w.orders.Do(w.Context(), asking(key), func(context.Context, *idem.Tx) (idem.Response, error) {
		w.runs++
		return idem.JSON(201, w.runs)
	})
	w.ok(err)
	return result
}

func asking(key string) idem.Request {
	return idem.Request{Tenant: tenant, Key: key, Input: canonical.Input{MediaType: "application/json", Body: []byte("{}")}}
}

// lines counts the log's lines of an event, and those among them that raise an alarm.
func (w *recordWorld) lines(event string) (n, alarms int) {
	w.Helper()
	for line := range strings.Lines(w.log.String()) {
		var told struct {
			Msg   string `json:"msg"`
			Alarm bool   `json:"alarm"`
		}
		w.ok(json.Unmarshal([]byte(line), &told))
		if told.Msg == event {
			n++
			if told.Alarm {
				alarms++
			}
		}
	}
	return n, alarms
}

// asked counts a probe's calls and answers each with the finding.
type asked struct {
	n       atomic.Int64
	finding outbox.Finding
}

func (a *asked) probe(context.Context, storage.Record) outbox.Finding {
	a.n.Add(1)
	return a.finding
}

func (a *asked) want(t *testing.T, n int) {
	t.Helper()
	if got := a.n.Load(); got != int64(n) {
		t.Errorf("asked %d times, want %d", got, n)
	}
}

var executed201 = outbox.Executed{Response: idem.Response{Status: 201, Body: []byte("charged")}}

func keyOf(i int) string { return fmt.Sprintf("key-%d", i) }
