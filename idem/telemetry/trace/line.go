package trace

import (
	"context"
	"sync/atomic"
)

type watchKey struct{}

// Watch returns a context for work whose span begins deeper, and about which something is logged after that span has ended: that a
// record failed, or that its handler panicked. [Position] finds the span there.
func Watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, watchKey{}, &atomic.Pointer[Span]{})
}

// watching returns where a context that [Watch] made keeps the first span below it; nil where it was not watched.
func watching(ctx context.Context) *atomic.Pointer[Span] {
	first, _ := ctx.Value(watchKey{}).(*atomic.Pointer[Span])
	return first
}

type aboutKey struct{}

// About returns a context for what is logged about something that was made at a position, and for which no span begins: that a
// message of last week is dead still. It returns ctx as it is where the position is none.
func About(ctx context.Context, made Context) context.Context {
	if len(made) < parentBytes {
		return ctx
	}
	return context.WithValue(ctx, aboutKey{}, made)
}

// Position is where in a trace a log line belongs that is written under the context: its span; else what [About] says; else the
// first span that began below a context of [Watch]; else the span of a batch. It is none where nothing is traced.
func Position(ctx context.Context) Context {
	if span := From(ctx); span != nil {
		return span.Context()
	}
	if made, _ := ctx.Value(aboutKey{}).(Context); made != "" {
		return made
	}
	if first := watching(ctx); first != nil {
		if span := first.Load(); span != nil {
			return span.Context()
		}
	}
	around, _ := ctx.Value(batchKey{}).(*Span)
	return around.Context()
}
