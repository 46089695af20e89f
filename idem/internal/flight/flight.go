// Package flight lets callers who ask the same question at once share one answer.
package flight

import (
	"context"
	"sync"
)

// Flight is a question that at most one caller asks at a time. The zero value is ready; it is safe for concurrent use.
type Flight[T any] struct {
	mu    sync.Mutex
	under *asking[T]
}

// asking is a question that is under way. The rest of it may be read once done is closed.
type asking[T any] struct {
	done   chan struct{}
	answer T
	err    error
	// abandoned says that its caller gave up, or panicked: that says nothing to anybody else.
	abandoned bool
}

// Ask asks, or waits for the answer to what another caller is asking. A caller that gives up fails nobody else: the next one
// asks anew. Errors: those of ask, and the context's.
func (f *Flight[T]) Ask(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		q, leads := f.join()
		if leads {
			defer f.end(q)
			q.answer, q.err = ask(ctx)
			q.abandoned = q.err != nil && ctx.Err() != nil
			return q.answer, q.err
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		if !q.abandoned {
			return q.answer, q.err
		}
	}
}

// join returns the question that is under way, or one that the caller must ask.
func (f *Flight[T]) join() (q *asking[T], leads bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if leads = f.under == nil; leads {
		f.under = &asking[T]{done: make(chan struct{}), abandoned: true}
	}
	return f.under, leads
}

// end tells everybody who waits.
func (f *Flight[T]) end(q *asking[T]) {
	f.mu.Lock()
	f.under = nil
	f.mu.Unlock()
	close(q.done)
}
