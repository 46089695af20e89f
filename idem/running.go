package idem

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Execution describes the execution that a handler runs in.
type Execution struct {
	// OperationID is the id of the incarnation: what a Probe looks up, and a good downstream key.
	OperationID OperationID
	// Tenant is who made the request, as it was given to the engine.
	Tenant string
	// Operation is the registered name.
	Operation string
	// Attempt counts the runs of the handler within this execution, from 1.
	Attempt int
}

// running is the context's word about the execution that it belongs to.
type running struct {
	execution Execution
	// lease is until when the store has confirmed the lease, in milliseconds; 0 without one.
	lease atomic.Int64
	// nothing says that the handler has declared that nothing happened; over, that it has ended.
	nothing, over atomic.Bool
	now           func() time.Time
}

// runningKey is the key of the innermost execution of a context: a *running, or an unleased.
type runningKey struct{}

// unleased is an execution that no lease ends: nobody takes it for dead, or acts on it. within is the execution whose handler asked
// for it, as runningKey has it; nil where there is none.
type unleased struct {
	*running
	within any
}

// innermost is the execution of the context; nil where there is none.
func innermost(ctx context.Context) *running {
	switch r := ctx.Value(runningKey{}).(type) {
	case *running:
		return r
	case unleased:
		return r.running
	}
	return nil
}

// withUnleased returns a context of the execution, inside of the one that ctx is of.
func withUnleased(ctx context.Context, r *running) context.Context {
	return context.WithValue(ctx, runningKey{}, unleased{r, ctx.Value(runningKey{})})
}

// ExecutionFrom returns the execution whose handler was given this context, or one derived from it. A handler that writes
// for itself passes the operation id on with its writes and calls, so that a probe can find them. Package middleware gives
// requests without protection an execution too, of which nothing is stored.
func ExecutionFrom(ctx context.Context) (Execution, bool) {
	r := innermost(ctx)
	if r == nil {
		return Execution{}, false
	}
	return r.execution, true
}

// NothingHappened declares that this run of the handler has had no effect and never will: its answer is not stored, and
// the next request with the key executes. The context must be the handler's own, or one derived from it, and the handler
// must not have returned. If the handler then answers with a success (2xx), which contradicts it, the declaration is
// ignored with an error in the log.
func NothingHappened(ctx context.Context) {
	if r := innermost(ctx); r != nil && !r.over.Load() {
		r.nothing.Store(true)
	}
}

// ErrLeaseOver says that an execution must not act any more: it has no live lease that the store has confirmed.
var ErrLeaseOver = errors.New("idem: the execution's lease is over")

// Leased returns nil while the execution of this context holds a lease that the store has confirmed and its handler has
// not returned. For a request that is executed without protection it returns nil too: no record says that it is dead. Where
// another execution's handler made that request with its own context, that execution's lease counts; the handler of an optimistic or a
// deferred operation has none, because it must leave effects alone. Otherwise,
// and for a context without an execution, it returns an error that is [ErrLeaseOver]. Code that acts outside of the
// transaction should call it last, right before it sends: see package guard.
func Leased(ctx context.Context) error {
	return leased(ctx.Value(runningKey{}))
}

// leased is Leased of what runningKey has.
func leased(execution any) error {
	switch r := execution.(type) {
	case unleased:
		if r.within == nil {
			return nil
		}
		return leased(r.within)
	case *running:
		if r.over.Load() || r.now().UnixMilli() >= r.lease.Load() {
			return ErrLeaseOver
		}
		return nil
	}
	return fmt.Errorf("%w: the context is of no execution", ErrLeaseOver)
}

// Unprotected returns a context for a handler that is run without a record, as package middleware runs it for a request that
// needs no key. [ExecutionFrom] has an operation id there that no other execution has. [Leased] returns nil, unless ctx is of an
// execution whose lease is over: there is no lease of its own that could end. An error means that there is no randomness.
func (o *Registered) Unprotected(ctx context.Context, tenant string) (context.Context, error) {
	key, err := o.engine.mint.Owner()
	if err != nil {
		return nil, err
	}
	incarnation, err := o.engine.mint.ID()
	if err != nil {
		return nil, err
	}
	id := operationOf(o.RecordKey(Request{Tenant: tenant, Key: "unprotected " + string(key)}), incarnation)
	r := &running{execution: Execution{OperationID: id, Tenant: tenant, Operation: o.op.Name, Attempt: 1}}
	return withUnleased(ctx, r), nil
}

// Observing returns ctx as a context of the execution that the engine has given the context handling. It is for a handler that runs
// whatever becomes of its execution, as in observe mode: it ends with ctx alone, and [Leased] returns nil, unless ctx is of an
// execution whose lease is over.
func Observing(ctx, handling context.Context) context.Context {
	return withUnleased(ctx, innermost(handling))
}
