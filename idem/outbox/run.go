package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
)

// Consumer receives the wake-ups of a queue. memqueue.Queue and sqsqueue.Consumer implement it.
type Consumer interface {
	// Receive waits for wake-ups and returns at most as many as most says. It returns none if no wake-up came for a
	// while, or if ctx has ended.
	Receive(ctx context.Context, most int) ([]Received, error)
}

// Received is a wake-up that no other consumer receives for now.
type Received struct {
	// Message is the message that somebody should look at.
	Message idem.MessageID
	// Hold runs deliver, and keeps the wake-up from other consumers meanwhile. If deliver succeeds it removes the wake-up
	// from the queue; otherwise the wake-up is received again. It returns deliver's error, or the queue's.
	Hold func(ctx context.Context, deliver func(context.Context) error) error
}

// RunConfig is the configuration of [Runner.Run]. The zero value of each field but Queue means its default.
type RunConfig struct {
	// Queue hands out wake-ups. Required.
	Queue Consumer
	// Workers bounds how many messages are delivered at once. Default 10.
	Workers int
	// Period is the time from the start of one sweep to the start of the next, ±10 %, and the same for reconciliations. One that
	// takes longer delays the next one of its kind. Default 1 min.
	Period time.Duration
	// RoundMax bounds one sweep, and one reconciliation: the next one goes on where it stopped. No look begins in its last
	// Config.StoreTimeout + CallTimeout + SettleMargin, because what has begun is to end within it. Default Period, so that
	// what became due meanwhile is listed about every Period; at least twice that sum, 20 s, so that half of it is for looks.
	RoundMax time.Duration
	// Drain bounds how long Run goes on once its context has ended, for what is under way. Default, and least,
	// Config.ClaimLease + Config.SettleMax, 20 s: a call that has begun ends, and its settlement is sent.
	Drain time.Duration
}

// withDefaults also checks. A look takes up to lookTime.
func (c RunConfig) withDefaults(cfg Config, lookTime time.Duration) (RunConfig, error) {
	least, leastRound := cfg.ClaimLease+cfg.SettleMax, 2*lookTime
	c.Workers, c.Period, c.Drain = cmp.Or(c.Workers, 10), cmp.Or(c.Period, time.Minute), cmp.Or(c.Drain, least)
	c.RoundMax = cmp.Or(c.RoundMax, max(c.Period, leastRound))
	broken := func(field string, value any, format string, args ...any) (RunConfig, error) {
		return c, &idem.ConfigError{Field: "RunConfig." + field, Value: value, Rule: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Queue == nil:
		return broken("Queue", nil, "must be given")
	case c.Workers < 1:
		return broken("Workers", c.Workers, "must be at least 1")
	case c.Period < time.Millisecond:
		return broken("Period", c.Period, "must be at least 1 ms")
	case c.RoundMax < leastRound:
		return broken("RoundMax", c.RoundMax, "must be at least 2 × (Config.StoreTimeout + CallTimeout + SettleMargin) = %v: half of it is for looks to end", leastRound)
	case c.Drain < least:
		return broken("Drain", c.Drain, "must be at least Config.ClaimLease + Config.SettleMax = %v: a claim must end within it", least)
	}
	return c, nil
}

// ErrUndrained says that deliveries were still running when [RunConfig].Drain was over. Another process continues from
// their rows.
var ErrUndrained = errors.New("outbox: what was under way has not ended in time")

// Run does all that brings messages and wrapped records to an end, in a process that lives until ctx ends: it delivers the
// messages that wake-ups name, sweeps, and reconciles. Any number of processes may run beside each other.
//
// A new message gets no wake-up from the process that commits it, except what an [Inline] leaves to a worker where
// Config.InlineWakes is set. The relay of the table's stream asks for one, an
// [idem.InlineDelivery] delivers it within its request, or the sweep offers it: by default 10 s later at the earliest, which is
// the shorter of Config.SweepGrace and Config.ClaimLease.
//
// Once ctx has ended no wake-up is received and no claim begins. A delivery that has its claim goes on to its end, and so does
// an inline delivery of the same [Worker] that is under way. Run waits for both, for RunConfig.Drain at most: then it returns
// [ErrUndrained]. A server that delivers inline calls [Inline.Wait] besides, once it has served its last request; package
// container does that. Each sweep and each reconciliation that ends without an error writes the line sweep.run or
// reconcile.run, and each sweep begins with outbox.backlog: alarms look at them (docs/operator.md).
//
// Run returns nil where everything has ended, and an [*idem.ConfigError] at once. All other trouble is in the log, and the next round
// deals with it.
func (r *Runner) Run(ctx context.Context, cfg RunConfig) error {
	cfg, err := cfg.withDefaults(r.cfg, r.doubts.lookTime)
	if err != nil {
		return err
	}
	// At once, and not with the first round: what is raised here is kept then, also where the release is gone back from before that.
	if _, err := r.shards(ctx); err != nil {
		r.cfg.Logger.WarnContext(ctx, "outbox.shards_not_recorded", "error", err)
	}
	working, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	var tasks sync.WaitGroup
	tasks.Go(func() { r.consume(ctx, working, cfg) })
	tasks.Go(func() { r.every(ctx, cfg, "sweep.run", r.countedSweep) })
	tasks.Go(func() { r.every(ctx, cfg, "reconcile.run", r.Reconcile) })
	ended := make(chan struct{})
	go func() { tasks.Wait(); close(ended) }()
	<-ctx.Done()
	draining, stop := context.WithTimeout(working, cfg.Drain)
	defer stop()
	select {
	case <-ended:
		return r.inline.wait(draining)
	case <-draining.Done():
		return ErrUndrained
	}
}

// every begins a round each period, the first one after a part of it, so that processes that begin together look at different
// times. What a round can't do is in the log, and one that ends without an error has a line of its own: an alarm rings where those
// are missing.
func (r *Runner) every(ctx context.Context, cfg RunConfig, ran string, round func(context.Context, ...int) (Report, error)) {
	pause := between(0, cfg.Period, r.random())
	for r.cfg.Pause(ctx, pause) == nil && ctx.Err() == nil {
		began := r.cfg.Now()
		bounded, cancel := context.WithTimeout(ctx, cfg.RoundMax)
		if did, err := round(bounded); err == nil {
			r.cfg.Logger.InfoContext(ctx, ran, "report", did)
		}
		cancel()
		took := max(0, r.cfg.Now().Sub(began)) // a clock may be set back
		pause = max(0, between(cfg.Period-cfg.Period/10, cfg.Period+cfg.Period/10, r.random())-took)
	}
}

// countedSweep tells what waits, and sweeps.
func (r *Runner) countedSweep(ctx context.Context, shards ...int) (Report, error) {
	r.LogBacklog(ctx, r.cfg.Logger)
	return r.Sweep(ctx, shards...)
}

// LogBacklog writes what waits in all shards as the line outbox.backlog, which alarms look at. Call it before a sweep. Where it can't be
// counted the sweep may go on, and fails for the same cause or does not.
func (r *Runner) LogBacklog(ctx context.Context, logger *slog.Logger) {
	b, err := r.Backlog(ctx)
	if err != nil {
		logger.WarnContext(ctx, "backlog not counted", "error", err)
		return
	}
	logger.InfoContext(ctx, "outbox.backlog", "due", b.Due, "due_age_ms", b.DueAge.Milliseconds(), "unknown", b.Unknown, "dead", b.Dead, "more", b.More)
}

// consume receives as many wake-ups as there are idle workers, until ctx ends, and waits for its deliveries: they have a
// context of their own.
func (r *Runner) consume(ctx, working context.Context, cfg RunConfig) {
	idle := make(chan struct{}, cfg.Workers)
	for range cfg.Workers {
		idle <- struct{}{}
	}
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	for failures := 0; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			return
		case <-idle:
		}
		received, err := cfg.Queue.Receive(ctx, 1+len(idle))
		idle <- struct{}{}
		if err != nil && ctx.Err() == nil {
			r.cfg.Logger.ErrorContext(ctx, "outbox.receive_failed", "error", err)
			failures++
			_ = r.cfg.Pause(ctx, backoff(failures, r.cfg.BackoffMin, r.cfg.BackoffMax, r.random()))
			continue
		}
		failures = 0
		for _, wakeUp := range received {
			<-idle // there are as many as were asked for: nobody else takes one
			deliveries.Go(func() {
				defer func() { idle <- struct{}{} }()
				r.serve(ctx, working, wakeUp)
			})
		}
	}
}

// serve delivers one message, unless ctx has ended before its claim begins.
func (r *Runner) serve(ctx, working context.Context, wakeUp Received) {
	err := wakeUp.Hold(working, func(holding context.Context) error {
		x, err := r.newDelivery(protocol.Wake, wakeUp.Message)
		if err != nil {
			return err
		}
		x.closing = ctx.Done()
		return r.worker.run(holding, x)
	})
	if err != nil && !errors.Is(err, ErrNoTime) {
		r.cfg.Logger.ErrorContext(ctx, "outbox.delivery_failed", "message", wakeUp.Message, "error", err)
	}
}
