package idem

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
)

// run is one run of the handler.
type run struct {
	*running
	tx       *Tx
	response Response
	err      error
	// until ends the context of a handler whose lease is renewed, unless it is moved on.
	until *timers.Timer
}

// start performs protocol.Run, on the goroutine of the caller.
func (x *execution) start(ctx context.Context, a protocol.Action, handler Handler) protocol.Input {
	pause := a
	pause.Until -= x.machine.Plan.WorkLeast(&x.cfg) // that is not the pause's
	if x.pauseFirst(ctx, pause) != nil {
		return protocol.Input{}
	}
	until := x.ends(a.Until)
	row := x.incarnation(x.machine.Held.Op)
	tx := x.newTx(row, int(x.machine.Runs))
	x.run = run{tx: tx, running: &running{now: x.engine.cfg.Now, execution: Execution{
		OperationID: row.OperationID, Tenant: x.req.Tenant, Operation: x.op.Name, Attempt: tx.attempt,
	}}}
	if x.machine.Holding {
		x.run.lease.Store(int64(x.machine.Held.Lease))
	}
	if x.slept(a, until) { // and others may have taken this execution for dead
		x.run.nothing.Store(true)
		return x.handled(ctx, Response{}, unavailable(ErrNoTime))
	}
	named := context.WithValue(ctx, runningKey{}, x.run.running)
	handling, cancel := x.handling(named, a, until)
	defer cancel()
	if a.Wake != 0 {
		return x.serveLeased(ctx, a, func() (Response, error) { return serve(handling, handler, tx) })
	}
	response, err := serve(handling, handler, tx)
	return x.handled(ctx, response, err)
}

// slept says that the process was frozen since its machine found that there was time enough for a handler. Half of that is enough here:
// a few milliseconds pass on the way to every handler. A freeze may show in one clock only: the monotonic one, by which until ends,
// stands still while a virtual machine is paused.
func (x *execution) slept(a protocol.Action, until time.Time) bool {
	least := x.machine.Plan.WorkLeast(&x.cfg) / 2
	return time.Until(until) < translation.SpanOf(least) || a.Until-x.now() < least
}

// handling is the context of the handler. It ends with its time or, where its lease is moved on and the caller has no
// deadline, with the last lease that was confirmed: then it names no deadline.
func (x *execution) handling(ctx context.Context, a protocol.Action, until time.Time) (context.Context, context.CancelFunc) {
	if a.Wake == 0 || x.machine.Plan.Bounded {
		return context.WithDeadline(ctx, until)
	}
	ctx, end := context.WithCancelCause(ctx)
	x.run.until = x.engine.timers.AtFunc(until, func() { end(ErrLeaseOver) })
	return ctx, func() { end(nil) }
}

// serve runs the handler. A panic is an error like any other.
func serve(ctx context.Context, handler Handler, tx *Tx) (response Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &HandlerError{Cause: fmt.Errorf("panic: %v", p), Stack: debug.Stack()}
		}
	}()
	response, err = handler(ctx, tx)
	var rejected *RejectedError
	switch {
	case err == nil:
	case !errors.As(err, &rejected):
		err = &HandlerError{Cause: err}
	case !rejected.stands(): // it is told, and not wrapped: whoever asks for a rejection finds none
		err = &HandlerError{Cause: fmt.Errorf("the handler rejected with status %d, which is not a 4xx: %v", rejected.Problem.Status, err)}
	}
	return response, err
}

// wait performs protocol.Wait for another execution. asking bounds the question whether it may.
func (x *execution) wait(ctx, asking context.Context, a protocol.Action) protocol.Input {
	if !x.mayWait(asking) {
		return protocol.Input{What: protocol.Woke}
	}
	if err := x.pause(ctx, waitPauseMin, a.Pause, a.Wake); err != nil {
		x.fatal = unavailable(err)
	}
	return protocol.Input{What: protocol.Woke}
}

// mayWait says whether there is room for one more that waits. Where there is none, the machine is told that the time to wait is
// over: it looks once more, and answers.
func (x *execution) mayWait(ctx context.Context) bool {
	if x.leave != nil {
		return true
	}
	leave, may := x.engine.mayWait(ctx, x.req.Tenant)
	if !may {
		x.machine.Request.WaitUntil = 0
		return false
	}
	x.leave = leave
	return true
}

// endWait makes room for another one that wants to wait.
func (x *execution) endWait() {
	if x.leave != nil {
		x.leave()
		x.leave = nil
	}
}
