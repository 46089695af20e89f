package sequences

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// beginning is when every sequence begins: after 2100, so that no native TTL removes anything.
var beginning = time.Date(2101, 2, 3, 4, 5, 6, 0, time.UTC)

const topicName = "orders.charge"

// world is an application on the store, with one topic. Its clock is that of the bubble.
type world struct {
	*testing.T
	storetest.Harness
	store    *preparing
	engine   *idem.Engine
	provider *provider
	worker   *outbox.Worker
	operator *outbox.Operator
	inline   *outbox.Inline
	// own names the key and the business rows of this sequence.
	own string
	// runs counts executions of the handlers that world makes.
	runs int
}

// preparing is a faulty store that counts the commits that were prepared: each has its own bytes and its own token.
type preparing struct {
	*faulty.Store
	prepared int
}

// Prepare implements storage.Store.
func (p *preparing) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	p.prepared++
	return p.Store.Prepare(c)
}

func newWorld(t *testing.T, harness Harness) *world {
	t.Helper()
	time.Sleep(time.Until(beginning))
	w := &world{T: t, Harness: harness.Open(t), provider: &provider{}}
	owner, err := storage.IDGenerator{Random: rand.Reader}.Owner()
	w.ok(err)
	w.own = string(owner)
	w.store = &preparing{Store: faulty.New(w.Store)}
	w.engine, err = idem.New(w.store, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	w.ok(err)
	return w
}

// deliver gives the world a worker, an operator and inline delivery for its topic. The provider honours no keys, and nobody
// can ask it what it did, unless change says otherwise.
func (w *world) deliver(change func(*outbox.Topic)) {
	w.Helper()
	topic := outbox.Topic{Name: topicName, Call: w.call, Settle: w.settle}
	if change != nil {
		change(&topic)
	}
	queue := memqueue.New(time.Now)
	topics, err := outbox.NewTopics(outbox.Config{Logger: slog.New(slog.DiscardHandler)}, topic)
	w.ok(err)
	w.worker, err = outbox.NewWorker(w.store, topics, queue, queue)
	w.ok(err)
	w.operator, err = outbox.NewOperator(w.store, topics, queue, queue)
	w.ok(err)
	w.inline, err = outbox.NewInline(w.worker)
	w.ok(err)
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// register registers the operation under the IETF policy. What is unknown waits for an operator.
func (w *world) register(op idem.Operation) *idem.Registered {
	w.Helper()
	op.Name, op.Policy = "orders.create", idem.IETF()
	op.UnknownToOperator = op.Kind == idem.KindWrapped
	registered, err := w.engine.Register(op)
	w.ok(err)
	return registered
}

func (w *world) request() idem.Request {
	return idem.Request{Tenant: "t", Key: w.own, Input: canonical.Input{MediaType: "application/json", Body: []byte("{}")}}
}

// handler writes one business row, and answers with the number of its run. A 202 sends a message.
func (w *world) handler(status int) idem.Handler {
	return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		w.runs++
		tx.Write(w.AddRow(w.own))
		if status == 202 {
			tx.Send(topicName, []byte(`{"amount":1}`))
		}
		return idem.JSON(status, w.runs)
	}
}

// effect is a handler that writes for itself.
func (w *world) effect(status int, body string) idem.Handler {
	return func(context.Context, *idem.Tx) (idem.Response, error) {
		w.runs++
		return idem.Response{Status: status, Body: []byte(body)}, nil
	}
}

func (w *world) do(op *idem.Registered, h idem.Handler) *idem.Result {
	w.Helper()
	result, err := op.Do(w.Context(), w.request(), h)
	w.ok(err)
	return result
}

// want demands what a request is answered with.
func (w *world) want(result *idem.Result, outcome idem.Outcome, status int, body string) {
	w.Helper()
	if result.Outcome != outcome || result.Response.Status != status || string(result.Response.Body) != body {
		w.Errorf("%s %d %s, want %s %d %s", result.Outcome, result.Response.Status, result.Response.Body, outcome, status, body)
	}
}

// unavailable demands a 503 with a Retry-After.
func (w *world) unavailable(op *idem.Registered, h idem.Handler) {
	w.Helper()
	result, err := op.Do(w.Context(), w.request(), h)
	var unavailable *idem.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 {
		w.Fatalf("%+v, %v; want an UnavailableError with a Retry-After", result, err)
	}
}

// ran demands how often a handler ran.
func (w *world) ran(times int) {
	w.Helper()
	if w.runs != times {
		w.Errorf("the handler ran %d times, want %d", w.runs, times)
	}
}

// written demands how often the business row was written.
func (w *world) written(times int) {
	w.Helper()
	if n, err := w.CountRow(w.Context(), w.own); err != nil || n != times {
		w.Errorf("the business write happened %d times (%v), want %d", n, err, times)
	}
}

// record reads the sequence's record.
func (w *world) record() storage.Record {
	w.Helper()
	r, err := w.Store.Get(w.Context(), idem.Scope{Tenant: "t", Operation: "orders.create", Key: w.own}.RecordKey())
	w.ok(err)
	if r == nil {
		w.Fatal("there is no record")
	}
	return *r
}

func (w *world) message(id idem.MessageID) storage.Message {
	w.Helper()
	m, err := w.Store.Message(w.Context(), id)
	w.ok(err)
	if m == nil {
		w.Fatalf("message %s is gone", id)
	}
	return *m
}

// ended demands what became of a message, of its record, and of the business row that a settlement writes.
func (w *world) ended(id idem.MessageID, message storage.MessageState, record storage.State, settled int) {
	w.Helper()
	if m, r := w.message(id), w.record(); m.State != message || r.State != record {
		w.Errorf("the message is %s (%s) and the record %s, want %s and %s", m.State, m.LastOutcome, r.State, message, record)
	}
	if n, err := w.CountRow(w.Context(), settledRow(id)); err != nil || n != settled {
		w.Errorf("settled %d times (%v), want %d", n, err, settled)
	}
}

// fail gives the calls of the numbers from first to last the fault, counted from now on. The first of them must be made before
// the sequence ends.
func (w *world) fail(call faulty.Call, first, last int, fault faulty.Fault) {
	for n := first; n <= last; n++ {
		w.store.On(call, n, fault)
	}
	number := w.store.Count(call) + first
	w.Cleanup(func() {
		if made := w.store.Count(call); made < number {
			w.Errorf("%d calls of %s were made, and the fault was for call %d", made, call, number)
		}
	})
}

// sorted lists named faults in the order of their names.
func sorted(faults map[string]faulty.Fault) []string { return slices.Sorted(maps.Keys(faults)) }
