package telemetry_test

import (
	"context"
	"testing"

	"github.com/idem-go/idem-aws/idem/telemetry"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// tracer begins spans at the positions that are left, and records nothing.
type tracer struct{ left []trace.Context }

func (t *tracer) Begin(ctx context.Context, _ string, _ trace.Options) (context.Context, trace.Recording) {
	at := t.left[0]
	t.left = t.left[1:]
	return ctx, recording{at}
}

type recording struct{ at trace.Context }

func (r recording) Context() trace.Context { return r.at }
func (recording) Set(...trace.Attribute)   {}
func (recording) Link(trace.Context)       {}
func (recording) Fail(string)              {}
func (recording) End()                     {}

const (
	traceOne, spanOne = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	traceTwo, spanTwo = "1bf7651916cd43dd8448eb211c80319c", "c7ad6b7169203331"
)

func newTracer() *tracer {
	return &tracer{[]trace.Context{trace.Parse("00-"+traceOne+"-"+spanOne+"-01", "a=1"), trace.Parse("00-"+traceTwo+"-"+spanTwo+"-00", "")}}
}

// operator.md "Traces": a line names the trace and the span that it was written under, or what it is about.
func TestLinesNameTheirTrace(t *testing.T) {
	for name, c := range map[string]struct {
		under       func(context.Context) context.Context
		trace, span any
	}{
		"no span": {func(ctx context.Context) context.Context { return ctx }, nil, nil},
		"a span": {func(ctx context.Context) context.Context {
			ctx, _ = trace.Begin(ctx, newTracer(), "a", trace.Options{})
			return ctx
		}, traceOne, spanOne},
		"a span below it": {func(ctx context.Context) context.Context {
			ctx, _ = trace.Begin(ctx, newTracer(), "a", trace.Options{})
			ctx, _ = trace.Begin(ctx, nil, "b", trace.Options{})
			return ctx
		}, traceTwo, spanTwo},
		"after the span of a watched context, not the span of a call in it": {func(ctx context.Context) context.Context {
			ctx = trace.Watch(ctx)
			below, span := trace.Begin(ctx, newTracer(), "a", trace.Options{})
			_, call := trace.Begin(below, nil, "b", trace.Options{})
			call.End()
			span.End()
			return ctx
		}, traceOne, spanOne},
		"a watched context without a span": {trace.Watch, nil, nil},
		"a batch": {func(ctx context.Context) context.Context {
			ctx, _ = trace.BeginBatch(ctx, newTracer(), "batch")
			return ctx
		}, traceOne, spanOne},
		"a record of a batch, when its span is over": {func(ctx context.Context) context.Context {
			tracer := newTracer()
			ctx, _ = trace.BeginBatch(ctx, tracer, "batch")
			ctx = trace.Watch(ctx)
			_, span := trace.Begin(ctx, tracer, "record", trace.Options{})
			span.End()
			return ctx
		}, traceTwo, spanTwo},
		"about a message, in a batch": {func(ctx context.Context) context.Context {
			ctx, _ = trace.BeginBatch(ctx, newTracer(), "batch")
			return trace.About(ctx, trace.Parse("00-"+traceTwo+"-"+spanTwo+"-01", ""))
		}, traceTwo, spanTwo},
		"about what names no position":  {func(ctx context.Context) context.Context { return trace.About(ctx, "short") }, nil, nil},
		"about nothing that was traced": {func(ctx context.Context) context.Context { return trace.About(ctx, "") }, nil, nil},
	} {
		for _, message := range []string{"outbox.delivered", "swept"} {
			log, out := logger(t, telemetry.Config{})
			log.WithGroup("request").InfoContext(c.under(t.Context()), message, "age_ms", int64(5))
			line := lines(t, out)[0]
			if line["trace_id"] != c.trace || line["span_id"] != c.span {
				t.Errorf("%s, %s: trace %v, span %v; want %v, %v", name, message, line["trace_id"], line["span_id"], c.trace, c.span)
			}
			if _, there := line["trace_id"]; there != (c.trace != nil) {
				t.Errorf("%s: an empty member", name)
			}
			if (line["_aws"] != nil) != (message == "outbox.delivered") {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
}
