// Package otelidem records the library's spans with OpenTelemetry. [New] returns a trace.Tracer for the Config of
// packages middleware, function and outbox. Use it in applications that trace with OpenTelemetry; without traces no
// Tracer is needed.
//
// It is a module of its own, so that the library does not depend on OpenTelemetry. It needs OpenTelemetry's API only:
// the application chooses the SDK and the exporter.
//
//	tracer := otelidem.New(otel.GetTracerProvider())
//	http.ListenAndServe(addr, trace.Handler(tracer, router))  // package idem/telemetry/trace
//	outbox.Config{Tracer: tracer}                             // the worker's
//
// A context that carries a span of OpenTelemetry's, such as one that otelhttp began, is the parent of the library's span; and
// a handler's context carries the library's span, so that the application's own spans are its children.
package otelidem

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// Scope is the name of the instrumentation in what is exported.
const Scope = "github.com/idem-go/idem-aws/idem"

// New returns a tracer that records by the provider's.
func New(provider oteltrace.TracerProvider) trace.Tracer {
	return tracer{provider.Tracer(Scope)}
}

type tracer struct{ otel oteltrace.Tracer }

// Begin implements trace.Tracer.
func (t tracer) Begin(ctx context.Context, name string, o trace.Options) (context.Context, trace.Recording) {
	around := oteltrace.SpanContextFromContext(ctx)
	if parent := spanContext(o.Parent); parent.IsValid() && !(around.IsValid() && (o.Weak || around.TraceID() == parent.TraceID())) {
		ctx = oteltrace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, span := t.otel.Start(ctx, name, oteltrace.WithSpanKind(kinds[o.Kind]))
	return ctx, recording{span}
}

var kinds = map[trace.Kind]oteltrace.SpanKind{
	trace.Internal: oteltrace.SpanKindInternal, trace.Server: oteltrace.SpanKindServer,
	trace.Client: oteltrace.SpanKindClient, trace.Consumer: oteltrace.SpanKindConsumer,
}

// spanContext is the position in OpenTelemetry's form. A tracestate that it does not take is dropped.
func spanContext(c trace.Context) oteltrace.SpanContext {
	if c == "" {
		return oteltrace.SpanContext{}
	}
	state, err := oteltrace.ParseTraceState(c.State())
	if err != nil {
		state = oteltrace.TraceState{}
	}
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: oteltrace.TraceID([]byte(c.TraceID())), SpanID: oteltrace.SpanID([]byte(c.SpanID())),
		TraceFlags: oteltrace.TraceFlags(c.Flags()), TraceState: state, Remote: true,
	})
}

type recording struct{ span oteltrace.Span }

// Context implements trace.Recording.
func (r recording) Context() trace.Context {
	c := r.span.SpanContext()
	id, span := c.TraceID(), c.SpanID()
	raw := append(append(append(make([]byte, 0, 64), id[:]...), span[:]...), byte(c.TraceFlags()))
	return trace.FromBytes(append(raw, c.TraceState().String()...))
}

// Set implements trace.Recording.
func (r recording) Set(attributes ...trace.Attribute) {
	if !r.span.IsRecording() {
		return
	}
	all := make([]attribute.KeyValue, len(attributes))
	for i, a := range attributes {
		switch v := a.Value.(type) {
		case string:
			all[i] = attribute.String(a.Name, v)
		case int:
			all[i] = attribute.Int(a.Name, v)
		case bool:
			all[i] = attribute.Bool(a.Name, v)
		default:
			all[i] = attribute.String(a.Name, fmt.Sprint(v))
		}
	}
	r.span.SetAttributes(all...)
}

// Link implements trace.Recording.
func (r recording) Link(to trace.Context) {
	r.span.AddLink(oteltrace.Link{SpanContext: spanContext(to)})
}

// Fail implements trace.Recording.
func (r recording) Fail(code string) { r.span.SetStatus(codes.Error, code) }

// End implements trace.Recording.
func (r recording) End() { r.span.End() }
