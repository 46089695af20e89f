package idem

import (
	"context"
	"errors"
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

type runningKey struct{}

// ExecutionFrom returns the execution whose handler was given this context, or one derived from it. A handler that writes
// for itself passes the operation id on with its writes and calls, so that a probe can find them.
func ExecutionFrom(ctx context.Context) (Execution, bool) {
	r, ok := ctx.Value(runningKey{}).(*running)
	if !ok {
		return Execution{}, false
	}
	return r.execution, true
}

// NothingHappened declares that this run of the handler has had no effect and never will: its answer is not stored, and
// the next request with the key executes. The context must be the handler's own, or one derived from it, and the handler
// must not have returned. If the handler then answers with a success (2xx), which contradicts it, the declaration is
// ignored with an error in the log.
func NothingHappened(ctx context.Context) {
	if r, ok := ctx.Value(runningKey{}).(*running); ok && !r.over.Load() {
		r.nothing.Store(true)
	}
}

// ErrLeaseOver says that an execution must not act any more: it has no live lease that the store has confirmed.
var ErrLeaseOver = errors.New("idem: the execution's lease is over")

// Leased returns nil while the execution of this context holds a lease that the store has confirmed and its handler has
// not returned. Otherwise, and for a context without an execution, it returns [ErrLeaseOver]. Code that acts outside of
// the transaction should call it last, right before it sends: see package guard.
func Leased(ctx context.Context) error {
	r, ok := ctx.Value(runningKey{}).(*running)
	if !ok || r.over.Load() || r.now().UnixMilli() >= r.lease.Load() {
		return ErrLeaseOver
	}
	return nil
}
