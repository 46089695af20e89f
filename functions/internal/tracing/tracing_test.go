package tracing_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/tracing"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// started is the tracing to a collector, which has a minute for each answer unless cfg says otherwise.
func started(t *testing.T, cfg config.Tracing) (tracing.Tracing, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	cfg.TracesFlushMax, cfg.FunctionName = cmp.Or(cfg.TracesFlushMax, time.Minute), "api"
	traces, err := tracing.New(t.Context(), cfg, slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return traces, log
}

// invoke runs one invocation with a span, and returns what it answers and how long that took.
func invoke(t *testing.T, traces tracing.Tracing) (string, time.Duration) {
	t.Helper()
	began := time.Now()
	answer, err := traces.Lambda(func(ctx context.Context, event []byte) ([]byte, error) {
		_, span := trace.Begin(ctx, traces.Tracer, "idem.request", trace.Options{Kind: trace.Server, Parent: parent})
		span.Set(trace.Attribute{Name: "idem.attempts", Value: 2}, trace.Attribute{Name: "idem.replayed", Value: true}, trace.Attribute{Name: "idem.kind", Value: "atomic"})
		span.Link(linked)
		span.Fail("unavailable")
		span.End()
		return event, nil
	})(t.Context(), []byte("event"))
	if err != nil {
		t.Errorf("the invocation failed: %v", err)
	}
	return string(answer), time.Since(began)
}

var (
	parent = trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "congo=t61")
	linked = trace.Parse("00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-00", "")
)

// Without an endpoint nothing is recorded, and the handler is the function's own.
func TestOffByDefault(t *testing.T) {
	for _, cfg := range []config.Tracing{{}, {OTLPEndpoint: "http://127.0.0.1:4318", OTelDisabled: true}} {
		traces, _ := started(t, cfg)
		if traces.Tracer != nil {
			t.Errorf("%+v has a tracer", cfg)
		}
		traces.Flush(t.Context())
		handler := http.NewServeMux()
		if got := traces.HTTP(handler); got != http.Handler(handler) {
			t.Errorf("%+v wraps the handler", cfg)
		}
	}
}

// What an invocation has recorded is at the collector when it answers: OTLP over HTTP, as JSON.
func TestInvocationIsSentBeforeItAnswers(t *testing.T) {
	var got struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []map[string]any }
			ScopeSpans []struct {
				Scope struct{ Name string }
				Spans []map[string]any
			}
		}
	}
	var header http.Header
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		header = r.Header
		if err != nil || r.URL.Path != "/v1/traces" || json.Unmarshal(body, &got) != nil {
			t.Errorf("%s %s: %v", r.URL.Path, body, err)
		}
	}))
	defer collector.Close()
	traces, log := started(t, config.Tracing{OTLPEndpoint: collector.URL + "/", OTLPHeaders: "x-team=pay%20ments, x-other=1"})
	if answer, _ := invoke(t, traces); answer != "event" {
		t.Errorf("the answer is %q", answer)
	}
	if log.Len() > 0 || len(got.ResourceSpans) != 1 || len(got.ResourceSpans[0].ScopeSpans) != 1 || len(got.ResourceSpans[0].ScopeSpans[0].Spans) != 1 {
		t.Fatalf("%s %+v", log, got)
	}
	if header.Get("Content-Type") != "application/json" || header.Get("X-Team") != "pay ments" || header.Get("X-Other") != "1" {
		t.Errorf("sent with %v", header)
	}
	resource, err := json.Marshal(got.ResourceSpans[0].Resource.Attributes)
	if err != nil || !strings.Contains(string(resource), `{"key":"service.name","value":{"stringValue":"api"}}`) {
		t.Errorf("resource %s, %v", resource, err)
	}
	span := got.ResourceSpans[0].ScopeSpans[0].Spans[0]
	for name, want := range map[string]string{
		"traceId": `"0af7651916cd43dd8448eb211c80319c"`, "parentSpanId": `"b7ad6b7169203331"`, "traceState": `"congo=t61"`, "flags": `769`,
		"name": `"idem.request"`, "kind": `2`, "status": `{"code":2,"message":"unavailable"}`,
		"attributes": `[{"key":"idem.attempts","value":{"intValue":"2"}},{"key":"idem.replayed","value":{"boolValue":true}},{"key":"idem.kind","value":{"stringValue":"atomic"}}]`,
		"links":      `[{"flags":768,"spanId":"c7ad6b7169203331","traceId":"1bf7651916cd43dd8448eb211c80319c"}]`,
	} {
		if shown, err := json.Marshal(span[name]); err != nil || string(shown) != want {
			t.Errorf("%s is %s, want %s", name, shown, want)
		}
	}
}

// A collector that hangs, refuses or is not there delays an answer by the bound at the most, and changes nothing else.
func TestCollectorNeverFailsAnInvocation(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer refusing.Close()
	for name, endpoint := range map[string]string{"hangs": hanging.URL, "refuses": refusing.URL, "is not there": "http://127.0.0.1:1"} {
		traces, log := started(t, config.Tracing{OTLPTracesEndpoint: endpoint, TracesFlushMax: 100 * time.Millisecond})
		for range 3 {
			answer, took := invoke(t, traces)
			if answer != "event" || took > 5*time.Second { // OTel's own time-out is 10 s
				t.Errorf("a collector that %s: answer %q after %v", name, answer, took)
			}
		}
		if !strings.Contains(log.String(), "traces.lost") {
			t.Errorf("a collector that %s is not in the log: %s", name, log)
		}
	}
}

// An invocation that panics or fails is flushed too.
func TestFailedInvocationIsSent(t *testing.T) {
	var received atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) }))
	defer collector.Close()
	traces, _ := started(t, config.Tracing{OTLPEndpoint: collector.URL})
	broken := errors.New("broken")
	_, err := traces.Lambda(func(ctx context.Context, _ []byte) ([]byte, error) {
		_, span := trace.Begin(ctx, traces.Tracer, "idem.request", trace.Options{})
		span.End()
		return nil, broken
	})(t.Context(), nil)
	if !errors.Is(err, broken) || received.Load() != 1 {
		t.Errorf("%v, %d batches", err, received.Load())
	}
}

// A batch of several records has a span of its own; one record needs none.
func TestBatchOfSeveralRecordsIsASpan(t *testing.T) {
	var bodies atomic.Value
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies.Store(string(body))
	}))
	defer collector.Close()
	traces, _ := started(t, config.Tracing{OTLPEndpoint: collector.URL})
	for _, records := range []int{1, 3} {
		_, end := traces.Batch(t.Context(), records)
		end()
		traces.Flush(t.Context())
	}
	sent, _ := bodies.Load().(string)
	if strings.Count(sent, `"name":"idem.batch"`) != 1 || !strings.Contains(sent, `{"key":"idem.messages","value":{"intValue":"3"}}`) {
		t.Errorf("sent %s", sent)
	}
}

func TestMalformedConfigurationIsNamed(t *testing.T) {
	for want, cfg := range map[string]config.Tracing{
		"OTEL_EXPORTER_OTLP_ENDPOINT": {OTLPEndpoint: "collector:4318"},
		"OTEL_EXPORTER_OTLP_HEADERS":  {OTLPEndpoint: "http://127.0.0.1:4318", OTLPHeaders: "no value"},
	} {
		if _, err := tracing.New(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "no value") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
