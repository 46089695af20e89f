package otelidem_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// world is an application with a chain of two messages, its provider behind HTTP, and what its tracer has recorded.
type world struct {
	*testing.T
	tracer trace.Tracer
	spans  *tracetest.SpanRecorder
	store  *memstore.Store
	queue  *memqueue.Queue
	worker *outbox.Worker
	runner *outbox.Runner
	person *outbox.Operator
	api    http.Handler

	mu    sync.Mutex
	now   time.Time
	calls []http.Header
	// unsettled says that topics fail to say what an outcome means.
	unsettled atomic.Bool
}

const (
	tenant    = "tenant-secret"
	clientKey = "key-secret"
	card      = "card-secret"
)

func newWorld(t *testing.T, traced bool) *world {
	t.Helper()
	w := &world{T: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	w.tracer, _, w.spans = recorder(t)
	clock := func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now }
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, r.Header.Clone())
	}))
	t.Cleanup(provider.Close)
	var err error
	w.store, err = memstore.New(memstore.Config{Now: clock})
	w.ok(err)
	w.queue = memqueue.New(clock)
	cfg := outbox.Config{Now: clock}
	if traced {
		cfg.Tracer = w.tracer
	}
	topics, err := outbox.NewTopics(cfg, w.topic("payments.charge", provider.URL, "payments.capture"), w.topic("payments.capture", provider.URL, ""))
	w.ok(err)
	w.worker, err = outbox.NewWorker(w.store, topics, w.queue, w.queue)
	w.ok(err)
	w.person, err = outbox.NewOperator(w.store, topics, w.queue, w.queue)
	w.ok(err)
	inline, err := outbox.NewInline(w.worker)
	w.ok(err)
	silent := slog.New(slog.DiscardHandler)
	engine, err := idem.New(w.store, idem.Config{Now: clock, Logger: silent})
	w.ok(err)
	w.runner, err = outbox.NewRunner(w.worker, engine, map[string]outbox.Probe{"orders.import": func(context.Context, storage.Record) outbox.Finding {
		return outbox.Executed{Response: idem.Response{Status: http.StatusCreated}}
	}})
	w.ok(err)
	w.api = w.routes(engine, inline)
	if traced {
		w.api = trace.Handler(w.tracer, w.api)
	}
	return w
}

// topic calls the provider, and goes on to the next topic where there is one.
func (w *world) topic(name, url, next string) outbox.Topic {
	w.Helper()
	client, err := call.New(call.Config{Statuses: map[int]call.Class{400: call.Refused, 401: call.Refused, 403: call.Refused, 404: call.Refused, 409: call.Refused, 422: call.Refused, 429: call.NotExecuted}})
	w.ok(err)
	return outbox.Topic{
		Name: name,
		Call: func(ctx context.Context, m storage.Message) outbox.Outcome {
			return client.Post(ctx, call.Request{URL: url, Key: m.ID, Body: m.Payload})
		},
		Probe: func(context.Context, storage.Message) outbox.Finding { return outbox.Absent{} },
		Settle: func(m storage.Message, _ outbox.Outcome) (outbox.Settlement, error) {
			if w.unsettled.Load() {
				return outbox.Settlement{}, errors.New("a fault")
			}
			if next != "" {
				return outbox.Settlement{Next: &outbox.Next{Topic: next, Payload: m.Payload}}, nil
			}
			return outbox.Settlement{Response: idem.Response{Status: http.StatusCreated, Body: []byte(`{}`)}}, nil
		},
		AttemptsMax: 2, AgeMax: 24 * time.Hour,
	}
}

func (w *world) routes(engine *idem.Engine, inline *outbox.Inline) http.Handler {
	w.Helper()
	mw, err := middleware.New(engine, middleware.Config{Logger: slog.New(slog.DiscardHandler), Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: tenant}, nil
	}})
	w.ok(err)
	mux := http.NewServeMux()
	for path, deliver := range map[string]idem.InlineDelivery{"payments": nil, "transfers": inline} {
		op := idem.Operation{Name: path + ".create", Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: deliver}
		handler, err := mw.Handle(op, middleware.Route{}, func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
			tx.Send("payments.charge", r.Body)
			return idem.JSON(http.StatusAccepted, map[string]string{"id": string(tx.OperationID())})
		})
		w.ok(err)
		mux.Handle("POST /"+path, handler)
	}
	wrapped, err := mw.Wrap(idem.Operation{Name: "orders.import", UnknownToOperator: true, Policy: idem.IETF()}, middleware.Route{},
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("power cut") }))
	w.ok(err)
	mux.Handle("POST /imports", wrapped)
	return mux
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// post sends a payment, and returns its status.
func (w *world) post(path string, header http.Header) int {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), http.MethodPost, path, strings.NewReader(`{"card":"`+card+`"}`))
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", clientKey)
	answer := httptest.NewRecorder()
	w.api.ServeHTTP(answer, r)
	return answer.Code
}

// pass lets the time pass.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// message is the operation's only message that is not final, or the last.
func (w *world) message() storage.Message {
	w.Helper()
	messages := w.store.Messages()
	slices.SortFunc(messages, func(a, b storage.Message) int { return a.Index - b.Index })
	if len(messages) == 0 {
		w.Fatal("no message is stored")
	}
	return messages[len(messages)-1]
}

// named are the spans of a name, in the order in which they ended.
func (w *world) named(name string) []sdktrace.ReadOnlySpan {
	var named []sdktrace.ReadOnlySpan
	for _, span := range w.spans.Ended() {
		if span.Name() == name {
			named = append(named, span)
		}
	}
	return named
}

// one is the only span of a name.
func (w *world) one(name string) sdktrace.ReadOnlySpan {
	w.Helper()
	named := w.named(name)
	if len(named) != 1 {
		w.Fatalf("%d spans %s of %v", len(named), name, w.tree())
	}
	return named[0]
}

// tree shows what was recorded, for failures.
func (w *world) tree() []string {
	var lines []string
	for _, span := range w.spans.Ended() {
		lines = append(lines, fmt.Sprintf("%s %v below %v: %v, links %v", span.Name(), span.SpanContext().SpanID(), span.Parent().SpanID(), span.Attributes(), span.Links()))
	}
	return lines
}

// below fails unless the span is the parent's child.
func (w *world) below(span, parent sdktrace.ReadOnlySpan) {
	w.Helper()
	if span.Parent().SpanID() != parent.SpanContext().SpanID() || span.SpanContext().TraceID() != parent.SpanContext().TraceID() {
		w.Errorf("%s is not below %s:\n%s", span.Name(), parent.Name(), strings.Join(w.tree(), "\n"))
	}
}

// linked fails unless the span has a link to the other.
func (w *world) linked(span, to sdktrace.ReadOnlySpan) {
	w.Helper()
	if !slices.ContainsFunc(span.Links(), func(l sdktrace.Link) bool { return l.SpanContext.SpanID() == to.SpanContext().SpanID() }) {
		w.Errorf("%s is not linked to %s:\n%s", span.Name(), to.Name(), strings.Join(w.tree(), "\n"))
	}
}

// has fails unless the span has the attributes.
func (w *world) has(span sdktrace.ReadOnlySpan, want map[string]any) {
	w.Helper()
	got := map[string]any{}
	for _, a := range span.Attributes() {
		got[string(a.Key)] = a.Value.AsInterface()
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			w.Errorf("%s: %s is %v, want %v", span.Name(), name, got[name], want[name])
		}
	}
}

// documented fails for a span or an attribute that the operator's manual does not list, and for what nobody may see.
func (w *world) documented() {
	w.Helper()
	manual, err := os.ReadFile("../../../docs/operator.md")
	w.ok(err)
	rows := map[string]string{}
	for line := range strings.Lines(string(manual)) {
		if cells := strings.Split(line, "|"); len(cells) > 4 && strings.HasPrefix(line, "| `idem.") {
			rows[strings.Trim(cells[1], " `")] = cells[4]
		}
	}
	for _, span := range w.spans.Ended() {
		attributes, ok := rows[span.Name()]
		if !ok {
			w.Errorf("docs/operator.md has no row for the span %s", span.Name())
		}
		for _, a := range span.Attributes() {
			if !strings.Contains(attributes, "`"+string(a.Key)+"`") {
				w.Errorf("docs/operator.md does not list the attribute %s of %s", a.Key, span.Name())
			}
		}
		shown := fmt.Sprint(span.Attributes(), span.Status(), span.Events())
		for _, message := range w.store.Messages() {
			for _, secret := range []string{tenant, clientKey, card, string(message.ID), string(message.RecordKey)} {
				if strings.Contains(shown, secret) {
					w.Errorf("%s shows %s: %s", span.Name(), secret, shown)
				}
			}
		}
	}
}
