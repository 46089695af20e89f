package otelidem_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/idem-go/idem-aws/idem/telemetry/otelidem"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// recorder returns a tracer and what it has recorded.
func recorder(t *testing.T, options ...sdktrace.TracerProviderOption) (trace.Tracer, oteltrace.Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithSpanProcessor(spans))...)
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return otelidem.New(provider), provider.Tracer("application"), spans
}

const parent, state = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "congo=t61rcWkgMzE"

// A position from elsewhere is the parent, with its tracestate, and the position of the child names the same trace.
func TestSpanIsTheChildOfARemoteParent(t *testing.T) {
	tracer, _, spans := recorder(t)
	_, span := trace.Begin(t.Context(), tracer, "idem.deliver", trace.Options{Kind: trace.Consumer, Parent: trace.Parse(parent, state)})
	at := span.Context()
	span.End()
	got := spans.Ended()[0]
	if got.Parent().TraceID().String() != parent[3:35] || got.Parent().SpanID().String() != parent[36:52] || !got.Parent().IsRemote() {
		t.Errorf("the parent is %v", got.Parent())
	}
	if at.Parent()[:35] != parent[:35] || at.SpanID() == trace.Parse(parent, "").SpanID() || at.State() != state || got.SpanKind() != oteltrace.SpanKindConsumer {
		t.Errorf("the position is %q, the kind %v", at, got.SpanKind())
	}
}

// Whose parent a span has: the context's own where it is of the same trace, or where the other one is only a header.
func TestParentByWhatTheContextCarries(t *testing.T) {
	tracer, application, spans := recorder(t)
	remote := trace.Parse(parent, "")
	ctx, around := application.Start(t.Context(), "application")
	same := trace.Parse("00-"+around.SpanContext().TraceID().String()+"-00000000000000aa-01", "")
	for name, c := range map[string]struct {
		o    trace.Options
		want oteltrace.SpanID
	}{
		"no parent":          {trace.Options{}, around.SpanContext().SpanID()},
		"a header":           {trace.Options{Parent: remote, Weak: true}, around.SpanContext().SpanID()},
		"of the same trace":  {trace.Options{Parent: same}, around.SpanContext().SpanID()},
		"of another's trace": {trace.Options{Parent: remote}, oteltrace.SpanID([]byte(remote.SpanID()))},
	} {
		_, span := trace.Begin(ctx, tracer, name, c.o)
		span.End()
		if got := spans.Ended()[len(spans.Ended())-1]; got.Name() != name || got.Parent().SpanID() != c.want {
			t.Errorf("%s: the parent is %v, want %v", name, got.Parent().SpanID(), c.want)
		}
	}
}

func TestAttributesLinksAndFailure(t *testing.T) {
	tracer, _, spans := recorder(t)
	_, span := trace.Begin(t.Context(), tracer, "idem.call", trace.Options{})
	span.Set(trace.Attribute{Name: "s", Value: "text"}, trace.Attribute{Name: "i", Value: 7}, trace.Attribute{Name: "b", Value: true}, trace.Attribute{Name: "o", Value: 'x'})
	span.Link(trace.Parse(parent, state))
	span.Link(span.Context()) // its own position is no link
	span.Link("")
	span.Fail("ambiguous")
	span.End()
	got := spans.Ended()[0]
	want := []attribute.KeyValue{attribute.String("s", "text"), attribute.Int("i", 7), attribute.Bool("b", true), attribute.String("o", "120")}
	if a := attribute.NewSet(got.Attributes()...); !a.Equals(ptr(attribute.NewSet(want...))) {
		t.Errorf("attributes %v", got.Attributes())
	}
	if links := got.Links(); len(links) != 1 || links[0].SpanContext.TraceID().String() != parent[3:35] || links[0].SpanContext.TraceState().String() != state {
		t.Errorf("links %v", links)
	}
	if got.Status().Code != codes.Error || got.Status().Description != "ambiguous" {
		t.Errorf("status %v", got.Status())
	}
}

func ptr[T any](v T) *T { return &v }

// What is not sampled is recorded by nobody, here and downstream, and has a position all the same.
func TestUnsampledSpanHandsItsFlagOn(t *testing.T) {
	tracer, _, spans := recorder(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	_, span := trace.Begin(t.Context(), tracer, "idem.deliver", trace.Options{Parent: trace.Parse(strings.TrimSuffix(parent, "1")+"0", "")})
	span.Set(trace.Attribute{Name: "s", Value: "text"})
	at := span.Context()
	span.End()
	if at.TraceID() != trace.Parse(parent, "").TraceID() || at.Flags() != 0 || len(spans.Ended()) != 0 {
		t.Errorf("position %v, %d spans", at, len(spans.Ended()))
	}
}

// A tracestate that OpenTelemetry does not take is dropped, and the traceparent counts.
func TestTraceStateThatIsRefusedIsDropped(t *testing.T) {
	tracer, _, spans := recorder(t)
	_, span := trace.Begin(t.Context(), tracer, "idem.deliver", trace.Options{Parent: trace.Parse(parent, "UPPER=1")})
	span.End()
	if got := spans.Ended()[0]; got.Parent().TraceID().String() != parent[3:35] || got.Parent().TraceState().Len() != 0 {
		t.Errorf("the parent is %v", got.Parent())
	}
}

// The application's own spans are children of the library's, and what it sends on carries the library's position.
func TestApplicationsSpansAreChildren(t *testing.T) {
	tracer, application, spans := recorder(t)
	var sent http.Header
	handler := trace.Handler(tracer, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, own := application.Start(r.Context(), "own")
		own.End()
		sent = http.Header{}
		trace.Inject(r.Context(), sent)
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", nil)
	r.Header.Set("traceparent", parent)
	handler.ServeHTTP(httptest.NewRecorder(), r)
	own, request := spans.Ended()[0], spans.Ended()[1]
	if request.Parent().SpanID().String() != parent[36:52] || own.Parent().SpanID() != request.SpanContext().SpanID() {
		t.Errorf("own below %v, request %v below %v", own.Parent().SpanID(), request.SpanContext().SpanID(), request.Parent().SpanID())
	}
	if c := trace.FromHeader(sent); c.SpanID() != string(bytesOf(request.SpanContext().SpanID())) {
		t.Errorf("sent %v", sent)
	}
}

func bytesOf(id oteltrace.SpanID) []byte { return id[:] }
