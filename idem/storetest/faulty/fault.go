package faulty

import (
	"context"
	"errors"
	"sync"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Fault stands around one call: run makes it. A fault may run it, or not, or keep it for later, and returns what the
// caller is told.
type Fault func(ctx context.Context, run func(context.Context) error) error

// errNoReply is the cause of the outcomes that these faults make unknown.
var errNoReply = errors.New("faulty: no reply")

func noReply(cause error) error { return &storage.OutcomeUnknownError{Cause: cause} }

// Refuse answers with the error and does not run the call: storage.ErrContention, storage.ErrThrottled, or any other that
// means that nothing happened.
func Refuse(err error) Fault {
	return func(context.Context, func(context.Context) error) error { return err }
}

// LoseRequest does not run the call and answers with an *storage.OutcomeUnknownError.
func LoseRequest() Fault { return Refuse(noReply(errNoReply)) }

// LoseReply runs the call and answers with an *storage.OutcomeUnknownError, whatever came of it.
func LoseReply() Fault {
	return func(ctx context.Context, run func(context.Context) error) error {
		_ = run(ctx) // nobody is told, the error's chain included
		return noReply(errNoReply)
	}
}

// Before calls the hook just before the call runs.
func Before(hook func()) Fault {
	return func(ctx context.Context, run func(context.Context) error) error {
		hook()
		return run(ctx)
	}
}

// After calls the hook when the call ran, before its caller is told, with what came of it.
func After(hook func(error)) Fault {
	return func(ctx context.Context, run func(context.Context) error) error {
		err := run(ctx)
		hook(err)
		return err
	}
}

// Late is a request that is still on the wire when its caller has given up on it. One Late serves one call.
type Late struct {
	mu  sync.Mutex
	run func(context.Context) error
}

// ErrNotSent is returned by Deliver for a request that was not sent yet, or was delivered already.
var ErrNotSent = errors.New("faulty: there is nothing to deliver")

// Fault keeps the call for Deliver and answers with an *storage.OutcomeUnknownError.
func (l *Late) Fault() Fault {
	return func(_ context.Context, run func(context.Context) error) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.run = run
		return noReply(errNoReply)
	}
}

// Deliver runs the call now and returns what came of it, which its caller never hears of.
func (l *Late) Deliver(ctx context.Context) error {
	l.mu.Lock()
	run := l.run
	l.run = nil
	l.mu.Unlock()
	if run == nil {
		return ErrNotSent
	}
	return run(ctx)
}

// Gate holds one call until the test lets it go on. A caller whose context ends meanwhile is told so, by an
// *storage.OutcomeUnknownError.
type Gate struct {
	reached, released chan struct{}
	reach, release    sync.Once
}

// NewGate makes a closed gate.
func NewGate() *Gate {
	return &Gate{reached: make(chan struct{}), released: make(chan struct{})}
}

// Before holds the call before it runs; a caller that does not wait for it leaves it not run.
func (g *Gate) Before() Fault {
	return func(ctx context.Context, run func(context.Context) error) error {
		if err := g.pass(ctx); err != nil {
			return err
		}
		return run(ctx)
	}
}

// After holds the call when it ran, before its caller is told.
func (g *Gate) After() Fault {
	return func(ctx context.Context, run func(context.Context) error) error {
		result := run(ctx)
		if err := g.pass(ctx); err != nil {
			return err
		}
		return result
	}
}

func (g *Gate) pass(ctx context.Context) error {
	g.reach.Do(func() { close(g.reached) })
	select {
	case <-g.released:
		return nil
	case <-ctx.Done():
		return noReply(ctx.Err())
	}
}

// Reached is closed when a call stands at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Release opens the gate, for good.
func (g *Gate) Release() { g.release.Do(func() { close(g.released) }) }
