package idem

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
)

// renewal keeps the lease of a handler while it runs. The handler has the caller's goroutine; a timer drives the execution's
// machine meanwhile, from one renewal to the next, so that a handler that is done before the first one costs none.
type renewal struct {
	x *execution
	// turn is taken by the goroutine that drives the machine, also while a renewal is sent: a channel, because tests in a synctest bubble
	// go on while somebody waits for one, and do not for a mutex. It is the timer's until the handler has ended, and the caller's
	// from then on.
	turn chan struct{}
	// cut ends the context that renewals are sent with: the handler has ended.
	cut context.CancelFunc
	// stop stops the timer.
	stop func() bool
	// alarmed says that the handler has passed Config.RunMax.
	alarmed bool
}

// serveLeased runs the handler and renews its lease meanwhile.
func (x *execution) serveLeased(ctx context.Context, a protocol.Action, serve func() (Response, error)) protocol.Input {
	r := &renewal{x: x, turn: make(chan struct{}, 1)}
	var renewing context.Context
	renewing, r.cut = context.WithCancel(ctx)
	r.take()
	r.wakeAt(renewing, a.Wake)
	r.give()
	returned := false
	defer func() {
		if !returned { // runtime.Goexit: the caller's goroutine is over, and what it held is settled by another
			in := r.end(ctx, Response{}, &HandlerError{Cause: errors.New("the handler ended its goroutine with runtime.Goexit")})
			go func() { _, _ = x.drive(ctx, ctx, in, nil) }()
		}
	}()
	response, err := serve()
	returned = true
	return r.end(ctx, response, err)
}

func (r *renewal) take() { r.turn <- struct{}{} }
func (r *renewal) give() { <-r.turn }

// end takes the machine back. It does not wait for the reply to a renewal that was sent, which may hang for seconds: nothing depends
// on it any more. Such a renewal may land later, as one whose reply is lost may: it changes no answer that was stored, and at most
// keeps for longer what nobody has ended.
func (r *renewal) end(ctx context.Context, response Response, err error) protocol.Input {
	r.cut()
	r.take()
	defer r.give()
	r.stop()
	return r.x.handled(ctx, response, err)
}

// wakeAt has the timer drive the machine at that time.
func (r *renewal) wakeAt(ctx context.Context, at protocol.Instant) {
	r.stop = r.x.engine.cfg.AfterFunc(translation.SpanOf(at-r.x.now()), func() { r.wake(ctx, at) })
}

// wake drives the machine until it waits again, or the handler has ended.
func (r *renewal) wake(ctx context.Context, at protocol.Instant) {
	r.take()
	defer r.give()
	x, in := r.x, protocol.Input{What: protocol.Woke}
	for ctx.Err() == nil { // or the machine is the caller's
		x.clock = max(x.clock, at)
		a := x.next(ctx, in)
		if a.Do != protocol.Send {
			r.rest(ctx, a)
			return
		}
		in = r.send(ctx, a)
	}
}

// send sends a renewal. Its repetition ends with the handler: whatever it would have said, the answer is more.
func (r *renewal) send(ctx context.Context, a protocol.Action) protocol.Input {
	x := r.x
	if a.Pause > 0 {
		wait := min(x.engine.jitter(growing(pauseMin, pauseMax, int(a.Pause)-1)), translation.SpanOf(a.Until-x.now()))
		if r.pause(ctx, wait) {
			return protocol.Input{}
		}
	}
	in, _ := x.attempt(ctx, a)
	if x.fatal != nil { // a row that this release can't judge is judged when the handler has ended
		x.fatal, in = nil, protocol.Input{What: protocol.Replied, Reply: protocol.Reply{Code: protocol.Refused, Conds: protocol.CondRecord}}
	}
	return in
}

// pause waits before a repetition, and says whether the handler ended meanwhile.
func (r *renewal) pause(ctx context.Context, wait time.Duration) bool {
	wake := r.x.now() + max(1, translation.MillisOf(wait))
	over := make(chan struct{})
	stop := r.x.engine.cfg.AfterFunc(translation.SpanOf(wake-r.x.now()), func() { close(over) })
	defer stop()
	select {
	case <-over:
		r.x.clock = max(r.x.clock, wake)
		return false
	case <-ctx.Done():
		return true
	}
}

// rest performs protocol.Wait: the handler's context and the lease that it may act under last as long as the machine says.
func (r *renewal) rest(ctx context.Context, a protocol.Action) {
	x := r.x
	if r.mayGoOn(ctx) {
		if x.run.until != nil {
			x.run.until.ResetAt(x.ends(a.Until))
		}
		x.run.lease.Store(int64(x.machine.Held.Lease))
	}
	if a.Wake != 0 {
		r.wakeAt(ctx, a.Wake)
	} else if !r.alarmed {
		r.alarmed = true
		x.tellOverrun(ctx)
	}
}

// mayGoOn says that the handler may act on under the lease as it is now. Where the one that it had was over, as after a freeze, others may
// have executed since: of that, a row from before a loss of records says nothing. It is renewed all the same: its holder is alive.
func (r *renewal) mayGoOn(ctx context.Context) bool {
	x := r.x
	if x.now() < protocol.Instant(x.run.lease.Load()) || x.op.Policy.Observe {
		return true
	}
	return x.engine.bars(ctx, x.op, x.req) == nil
}

// tellOverrun raises the alarm about a handler that has run for longer than Config.RunMax.
func (x *execution) tellOverrun(ctx context.Context) {
	x.engine.cfg.Logger.LogAttrs(ctx, slog.LevelError, eventOverrun,
		slog.String("operation", x.op.Name), slog.String("tenant", x.req.Tenant), slog.String("key_hash", string(x.key)),
		slog.String("operation_id", string(x.run.execution.OperationID)), slog.Int64("run_max_ms", x.engine.cfg.RunMax.Milliseconds()),
		slog.Bool("alarm", true))
}
