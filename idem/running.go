package idem

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Execution is what a handler may know of the execution that it runs in.
type Execution struct {
	// OperationID is the id of the incarnation: what a Probe looks up, and a good downstream key.
	OperationID OperationID
	Tenant      string
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

// ExecutionFrom returns the execution whose handler was given this context, or one derived from it. A handler that
// writes for itself hands the operation id down, so that what it did can be found again.
func ExecutionFrom(ctx context.Context) (Execution, bool) {
	r, ok := ctx.Value(runningKey{}).(*running)
	if !ok {
		return Execution{}, false
	}
	return r.execution, true
}

// NothingHappened declares that this run of the handler has had no effect and never will: its answer is not stored, and the
// next request with the key executes. It counts within the handler's own context, until the handler returns. It is ignored,
// with an error in the log, where the handler then answers with a success (2xx), which contradicts it.
func NothingHappened(ctx context.Context) {
	if r, ok := ctx.Value(runningKey{}).(*running); ok && !r.over.Load() {
		r.nothing.Store(true)
	}
}

// ErrLeaseOver says that an execution may not act any more: it has no lease that the store has confirmed and that lives.
var ErrLeaseOver = errors.New("idem: the execution's lease is over")

// Leased returns nil while the execution of this context holds a lease that the store has confirmed and its handler has not
// returned, and [ErrLeaseOver] otherwise; a context without an execution has none. What acts outside of the transaction asks
// it last, before the wire: see package guard.
func Leased(ctx context.Context) error {
	r, ok := ctx.Value(runningKey{}).(*running)
	if !ok || r.over.Load() || r.now().UnixMilli() >= r.lease.Load() {
		return ErrLeaseOver
	}
	return nil
}
