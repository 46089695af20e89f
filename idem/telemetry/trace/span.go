package trace

import (
	"context"
	"net/http"
)

// Tracer records spans. It is safe for concurrent use, does not block, and has no errors to return: a span that can't be
// recorded is lost, and nothing else.
type Tracer interface {
	// Begin begins a span and returns a context that carries it by the tracer's own means.
	Begin(ctx context.Context, name string, o Options) (context.Context, Recording)
}

// Recording is one span as its tracer sees it. Its methods are safe for concurrent use.
type Recording interface {
	// Context is the span's position, also where the span is not sampled.
	Context() Context
	// Set sets attributes.
	Set(attributes ...Attribute)
	// Link says that the span has to do with another one.
	Link(to Context)
	// Fail marks the span as failed. The code is a short fixed word, never text that came from outside.
	Fail(code string)
	// End ends the span. Nothing is done with it afterwards.
	End()
}

// Kind is a span's place in a conversation.
type Kind uint8

// The kinds of spans, as in OpenTelemetry.
const (
	Internal Kind = iota
	Server
	Client
	Consumer
)

// Options say how a span begins.
type Options struct {
	// Kind is the span's; the zero value is Internal.
	Kind Kind
	// Parent is a position that came from elsewhere. The span is its child, unless ctx carries a span of the same trace: then it
	// is that one's child. [Begin] links it with a span of another trace. Without a Parent the span is the child of ctx's, or
	// the first of a trace of its own.
	Parent Context
	// Weak makes Parent count only where ctx carries no span.
	Weak bool
}

// Attribute is a fact about a span: never a key, a body, a tenant, or an id that tells of them.
type Attribute struct {
	// Name is the attribute's name, as OpenTelemetry's conventions have it where they name one.
	Name string
	// Value is a string, an int or a bool.
	Value any
}

// Span is the span that a context carries. A nil *Span records nothing, and its methods may be called.
type Span struct {
	tracer    Tracer
	recording Recording
}

type spanKey struct{}

// From returns the span that the context carries, nil for none.
func From(ctx context.Context) *Span {
	span, _ := ctx.Value(spanKey{}).(*Span)
	return span
}

// Begin begins a span, if there is a tracer, or if the context carries a span, whose tracer is then used. Otherwise it returns
// the context as it is and nil. The caller ends the span.
func Begin(ctx context.Context, tracer Tracer, name string, o Options) (context.Context, *Span) {
	if tracer == nil {
		parent := From(ctx)
		if parent == nil {
			return ctx, nil
		}
		tracer = parent.tracer
	}
	around := aroundOf(ctx, o)
	ctx, recording := tracer.Begin(ctx, name, o)
	span := &Span{tracer, recording}
	if around != nil {
		span.Link(around.Context())
		around.Link(span.Context())
	}
	if first := watching(ctx); first != nil {
		first.CompareAndSwap(nil, span)
	}
	return context.WithValue(ctx, spanKey{}, span), span
}

// aroundOf is the span that a new one is linked with because it is not the new one's parent: the span of a batch, or one of
// another trace than the parent's.
func aroundOf(ctx context.Context, o Options) *Span {
	around := From(ctx)
	if around == nil {
		around, _ = ctx.Value(batchKey{}).(*Span)
		return around
	}
	if o.Parent == "" || o.Weak || around.Context().TraceID() == o.Parent.TraceID() {
		return nil
	}
	return around
}

type batchKey struct{}

// BeginBatch begins the span of work on many things of which each belongs to a trace of its own. The spans that begin under
// the context that it returns are not its children: each is linked with it, both ways. Without a tracer nothing begins.
func BeginBatch(ctx context.Context, tracer Tracer, name string) (context.Context, *Span) {
	if tracer == nil {
		return ctx, nil
	}
	_, span := Begin(ctx, tracer, name, Options{})
	return context.WithValue(context.WithValue(ctx, spanKey{}, (*Span)(nil)), batchKey{}, span), span
}

// Context is the span's position, none for nil.
func (s *Span) Context() Context {
	if s == nil {
		return ""
	}
	return s.recording.Context()
}

// Set sets attributes. Where performance counts, the caller asks first whether the span is nil: a call with arguments
// allocates.
func (s *Span) Set(attributes ...Attribute) {
	if s != nil {
		s.recording.Set(attributes...)
	}
}

// Link links the span to another one, unless that is none or the span itself.
func (s *Span) Link(to Context) {
	if s != nil && to != "" && (to.SpanID() != s.recording.Context().SpanID()) {
		s.recording.Link(to)
	}
}

// Fail marks the span as failed, with a short fixed word for why.
func (s *Span) Fail(code string) {
	if s != nil {
		s.recording.Fail(code)
	}
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.recording.End()
	}
}

// Inject sets the headers of a request that leaves under the context's span. It leaves them as they are where there is none.
func Inject(ctx context.Context, h http.Header) {
	c := From(ctx).Context()
	if c == "" {
		return
	}
	h.Set(ParentHeader, c.Parent())
	if state := c.State(); state != "" {
		h.Set(StateHeader, state)
	} else {
		h.Del(StateHeader)
	}
}
