package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
)

// run is one run of the handler.
type run struct {
	*running
	tx       *Tx
	response Response
	err      error
	// ended gets what the handler ended with, where it runs beside the loop; nil where it does not.
	ended chan finished
	// until ends the context of a handler whose lease is renewed, unless it is moved on.
	until *time.Timer
	// alarmed says that the handler has passed Config.RunMax.
	alarmed bool
}

// finished is what a handler ended with.
type finished struct {
	response Response
	err      error
}

// start performs protocol.Run. A handler whose lease is renewed runs beside the loop.
func (x *execution) start(ctx context.Context, a protocol.Action, handler Handler) protocol.Input {
	if x.pauseFirst(ctx, a) != nil {
		return protocol.Input{}
	}
	row := x.incarnation(x.machine.Held.Op)
	tx := x.newTx(row, int(x.machine.Runs))
	x.run = run{tx: tx, running: &running{now: x.engine.cfg.Now, execution: Execution{
		OperationID: row.OperationID, Tenant: x.req.Tenant, Operation: x.op.Name, Attempt: tx.attempt,
	}}}
	if x.machine.Holding {
		x.run.lease.Store(int64(x.machine.Held.Lease))
	}
	ctx = context.WithValue(ctx, runningKey{}, x.run.running)
	left := translation.SpanOf(a.Until - x.now())
	if a.Wake == 0 {
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		response, err := serve(ctx, handler, tx)
		return x.handled(ctx, response, err)
	}
	x.run.ended = make(chan finished, 1)
	var cancel context.CancelFunc
	if x.machine.Plan.Bounded {
		ctx, cancel = context.WithTimeout(ctx, left)
	} else {
		// The lease is moved on, so the context names no deadline: it ends with the last one that was confirmed.
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		x.run.until = time.AfterFunc(left, func() { end(ErrLeaseOver) })
		cancel = func() { end(nil) }
	}
	go beside(ctx, cancel, handler, tx, x.run.ended)
	return x.await(ctx, a)
}

// beside runs the handler for a loop that renews its lease meanwhile.
func beside(ctx context.Context, cancel context.CancelFunc, handler Handler, tx *Tx, ended chan<- finished) {
	defer cancel()
	end := finished{err: &HandlerError{Cause: errors.New("the handler's goroutine was ended")}}
	defer func() { ended <- end }()
	end.response, end.err = serve(ctx, handler, tx)
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
	if err != nil && !errors.As(err, &rejected) {
		err = &HandlerError{Cause: err}
	}
	return response, err
}

// wait performs protocol.Wait: for the handler, or for another execution.
func (x *execution) wait(ctx context.Context, a protocol.Action) protocol.Input {
	if x.machine.HandlerOn {
		if x.run.until != nil {
			x.run.until.Reset(translation.SpanOf(a.Until - x.now()))
		}
		x.run.lease.Store(int64(x.machine.Held.Lease))
		if a.Wake == 0 && !x.run.alarmed {
			x.run.alarmed = true
			x.tellOverrun(ctx)
		}
		return x.await(ctx, a)
	}
	if !x.mayWait() {
		return protocol.Input{What: protocol.Woke}
	}
	if err := x.pause(ctx, waitPauseMin, a.Pause, a.Wake); err != nil {
		x.fatal = unavailable(err)
	}
	return protocol.Input{What: protocol.Woke}
}

// mayWait says whether there is room for one more that waits. Where there is none, the machine is told that the time to wait is
// over: it looks once more, and answers.
func (x *execution) mayWait() bool {
	if x.leave != nil {
		return true
	}
	leave, may := x.engine.waits.enter(x.req.Tenant)
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

// await waits until the handler has ended, or for Action.Wake.
func (x *execution) await(ctx context.Context, a protocol.Action) protocol.Input {
	var wake <-chan time.Time
	if a.Wake != 0 {
		wake = x.engine.cfg.After(translation.SpanOf(a.Wake - x.now()))
	}
	select {
	case end := <-x.run.ended:
		return x.handled(ctx, end.response, end.err)
	case <-wake:
		x.clock = max(x.clock, a.Wake)
		return protocol.Input{What: protocol.Woke}
	}
}

// renew sends a renewal. Its repetition ends with the handler: whatever it would have said, the answer is more.
func (x *execution) renew(ctx context.Context, a protocol.Action) protocol.Input {
	if a.Pause > 0 {
		wait := min(x.engine.jitter(growing(pauseMin, pauseMax, int(a.Pause)-1)), translation.SpanOf(a.Until-x.now()))
		if in := x.await(ctx, protocol.Action{Wake: x.now() + max(1, translation.MillisOf(wait))}); in.What == protocol.HandlerEnded {
			return in
		}
	}
	in, _ := x.attempt(ctx, a)
	if x.fatal != nil { // a row that this release can't judge is judged when the handler has ended
		x.fatal, in = nil, protocol.Input{What: protocol.Replied, Reply: protocol.Reply{Code: protocol.Refused, Conds: protocol.CondRecord}}
	}
	return in
}

// tellOverrun raises the alarm about a handler that has run for longer than Config.RunMax.
func (x *execution) tellOverrun(ctx context.Context) {
	x.engine.cfg.Logger.LogAttrs(ctx, slog.LevelError, eventOverrun,
		slog.String("operation", x.op.Name), slog.String("tenant", x.req.Tenant), slog.String("key_hash", string(x.key)),
		slog.String("operation_id", string(x.run.execution.OperationID)), slog.Int64("run_max_ms", x.engine.cfg.RunMax.Milliseconds()),
		slog.Bool("alarm", true))
}
