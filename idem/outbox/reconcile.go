package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Reconciler decides what is unknown: it asks the provider by the downstream key, through the topic's Probe, and settles
// what it finds, offers what provably never happened, and backs off from the rest until it is dead. It never causes an
// effect. Its cost is proportional to what is unknown and due, not to the table. Any number of reconcilers may run beside
// each other, and beside workers and sweeps: the fences decide.
type Reconciler struct {
	*desk
	rounds *rounds
}

// NewReconciler returns a reconciler, or an [*idem.ConfigError] for an argument that is nil.
func NewReconciler(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters) (*Reconciler, error) {
	d, err := newDesk(store, topics, wakeUps, deadLetters)
	if err != nil {
		return nil, err
	}
	look := d.cfg.StoreTimeout + d.cfg.CallTimeout + d.cfg.SettleMargin
	return &Reconciler{desk: d, rounds: newRounds(d, idem.QueueUnknown, look, 0, "outbox.reconcile_failed")}, nil
}

// Decision is what became of a message that was unknown.
type Decision string

// The decisions of a [Reconciler].
const (
	// DecisionNone: the message is not unknown, or somebody else decided it meanwhile.
	DecisionNone Decision = "none"
	// DecisionSettled: the provider has it, or declined it; the operation goes on or is completed.
	DecisionSettled Decision = "settled"
	// DecisionOffered: it provably never happened; the same message is offered again with the same key.
	DecisionOffered Decision = "offered"
	// DecisionEarly: nothing was found, which proves nothing yet.
	DecisionEarly Decision = "early"
	// DecisionUndecided: the provider's answer decides nothing; it is asked again later.
	DecisionUndecided Decision = "undecided"
	// DecisionUnasked: the topic has no Probe. A webhook or an operator must decide.
	DecisionUnasked Decision = "unasked"
	// DecisionDead: it stayed undecided for too long, or what was found could not be settled; an operator must decide.
	DecisionDead Decision = "dead"
)

// ReconcileReport counts what a run of the reconciler decided.
type ReconcileReport struct {
	// Settled messages are delivered or declined now.
	Settled int `json:"settled"`
	// Offered messages provably had no effect, and got a wake-up.
	Offered int `json:"offered"`
	// Undecided messages are asked about again later, those whose absence proves nothing yet included.
	Undecided int `json:"undecided"`
	// Unasked messages have no Probe.
	Unasked int `json:"unasked"`
	// Dead messages were given up, their records still pending.
	Dead int `json:"dead"`
	// Skipped messages needed nothing by the time they were read.
	Skipped int `json:"skipped"`
	// Errors counts messages, and listings, that met one; each is in the log.
	Errors int `json:"errors"`
	// Unfinished says that the run met its bound or its deadline; the next one goes on there.
	Unfinished bool `json:"unfinished"`
}

func (r *ReconcileReport) count(decision Decision) {
	switch decision {
	case DecisionSettled:
		r.Settled++
	case DecisionOffered:
		r.Offered++
	case DecisionEarly, DecisionUndecided:
		r.Undecided++
	case DecisionUnasked:
		r.Unasked++
	case DecisionDead:
		r.Dead++
	case DecisionNone:
		r.Skipped++
	}
}

// Run asks once about everything that is unknown and due, within Config.SweepMax and the context's deadline; the next run
// goes on where it stopped. It returns an error only where listing failed for every shard.
func (r *Reconciler) Run(ctx context.Context) (ReconcileReport, error) {
	var report ReconcileReport
	unfinished, failed, err := r.rounds.run(ctx, func(id idem.MessageID) {
		decision, err := r.reconcile(ctx, id, true)
		if err != nil {
			report.Errors++
			r.cfg.Logger.ErrorContext(ctx, "outbox.reconcile_failed", "message", id, "error", err)
			return
		}
		report.count(decision)
	})
	report.Unfinished = unfinished
	report.Errors += failed
	return report, err
}

// Reconcile asks about one message now, if it is unknown, due or not.
//
// Trouble with the provider is not an error. Errors: trouble with the store; [ErrNoTime]; the context's, where it ended
// before the provider answered; an [*UnreadableError] or a [*TopicError] for what this release can't judge.
func (r *Reconciler) Reconcile(ctx context.Context, id idem.MessageID) (Decision, error) {
	return r.reconcile(ctx, id, false)
}

// Settle ends a message with evidence that came by another way than its call: [Delivered] or [Declined], from the
// provider's own webhook. It does what the worker would have done, from any state that is not final and from any epoch, and
// is harmless to repeat. DecisionNone: there is no such message, or it is final already; evidence that contradicts what is
// final is an alarm.
//
// Errors: as with [Reconciler.Reconcile], and one for an outcome that is no evidence.
func (r *Reconciler) Settle(ctx context.Context, id idem.MessageID, o Outcome) (Decision, error) {
	if !definite(o) {
		return DecisionNone, fmt.Errorf("outbox: a %T is no evidence", o)
	}
	seen, err := r.message(ctx, id)
	if err != nil || seen == nil {
		return DecisionNone, err
	}
	topic, err := r.topic(*seen)
	if err != nil {
		return DecisionNone, err
	}
	if seen.State.Final() {
		return DecisionNone, r.settledAlready(ctx, *seen, o)
	}
	owner, err := r.mint.Owner()
	if err != nil {
		return DecisionNone, err
	}
	return r.found(ctx, topic, *seen, o, &execution{owner: owner})
}

func (r *Reconciler) reconcile(ctx context.Context, id idem.MessageID, onlyDue bool) (Decision, error) {
	seen, err := r.message(ctx, id)
	if err != nil || seen == nil {
		return DecisionNone, err
	}
	topic, err := r.topic(*seen)
	if err != nil {
		return DecisionNone, err
	}
	if seen.State != idem.MessageUnknown || onlyDue && r.now().Before(seen.SweepAt) {
		return DecisionNone, nil
	}
	owner, err := r.mint.Owner()
	if err != nil {
		return DecisionNone, err
	}
	decision, err := r.decide(ctx, topic, *seen, &execution{owner: owner})
	var conflict *idem.MessageConflictError
	if errors.As(err, &conflict) { // somebody else was faster
		return DecisionNone, nil
	}
	return decision, err
}

// unaskedPause is how long a message that nobody can be asked about is left alone between two reminders.
const unaskedPause = 24 * time.Hour

// decide asks, and writes what the answer means. The message was read before the provider is asked, and absence counts from
// when the question was put: what an answer does not cover must not be judged by it (peers.md H5).
func (r *Reconciler) decide(ctx context.Context, topic Topic, m idem.Message, x *execution) (Decision, error) {
	r.log(ctx, slog.LevelInfo, "idempotency.reconcile.scheduled", m)
	if m.Sealed || topic.Probe == nil {
		return r.undecided(ctx, topic, m, Undecided{Epoch: m.Epoch, Unasked: true, Backoff: unaskedPause})
	}
	asked := r.now()
	finding, err := r.probe(ctx, topic, m)
	if err != nil {
		return DecisionNone, err
	}
	rules := topic.rules(r.cfg)
	switch finding := finding.(type) {
	case Found:
		return r.found(ctx, topic, m, finding.Outcome, x)
	case Absent:
		if asked.Before(provable(m, rules)) {
			return r.early(ctx, topic, m, asked)
		}
		return r.absent(ctx, topic, m, asked)
	case Unclear:
		r.log(ctx, slog.LevelWarn, "outbox.probe_unclear", m, "cause", finding.Cause)
	}
	pause := r.probePause(asked.Sub(provable(m, rules)))
	return r.undecided(ctx, topic, m, Undecided{Epoch: m.Epoch, Backoff: pause})
}

// probe asks the provider. What is neither evidence nor absence is [Unclear].
func (r *Reconciler) probe(ctx context.Context, topic Topic, m idem.Message) (Finding, error) {
	timeout := r.cfg.CallTimeout
	if left, bounded := remaining(ctx); bounded {
		timeout = min(timeout, left-r.cfg.SettleMargin)
	}
	if timeout < min(callMin, r.cfg.CallTimeout) {
		return nil, ErrNoTime
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	finding := r.ask(asking, topic, m)
	if unclear, ok := finding.(Unclear); ok && ctx.Err() != nil { // it was not the provider who had no answer
		return nil, fmt.Errorf("outbox: probe: %w (%v)", ctx.Err(), unclear.Cause)
	}
	return finding, nil
}

func (r *Reconciler) ask(ctx context.Context, topic Topic, m idem.Message) (finding Finding) {
	defer func() {
		if p := recover(); p != nil {
			r.log(ctx, slog.LevelError, "outbox.panic", m, "stack", string(debug.Stack()))
			finding = Unclear{Cause: fmt.Errorf("outbox: probe panicked with a %T", p)}
		}
	}()
	switch finding := topic.Probe(ctx, m).(type) {
	case Found:
		if definite(finding.Outcome) {
			return finding
		}
		return Unclear{Cause: fmt.Errorf("outbox: probe found a %T, which is no evidence", finding.Outcome)}
	case Absent, Unclear:
		return finding
	default:
		return Unclear{Cause: fmt.Errorf("outbox: probe answered with a %T", finding)}
	}
}

// found settles with what the provider has, as the worker would have.
func (r *Reconciler) found(ctx context.Context, topic Topic, m idem.Message, o Outcome, x *execution) (Decision, error) {
	settled, err := r.settle(ctx, topic, m, o, x)
	if err != nil {
		return DecisionNone, err
	}
	if settled == nil { // settled by another, or by a sending whose reply was lost; or kept
		existing, err := r.message(ctx, m.ID)
		switch {
		case err != nil:
			return DecisionNone, err
		case existing == nil:
			return DecisionNone, nil
		case existing.State == idem.MessageDead:
			r.log(ctx, slog.LevelWarn, "idempotency.reconcile.failed", *existing, "outcome", o.Name())
			return DecisionDead, nil
		}
	}
	if m.State == idem.MessageUnknown || m.State == idem.MessageDead {
		r.log(ctx, slog.LevelInfo, "idempotency.reconcile.resolved", m, "outcome", o.Name())
	}
	return DecisionSettled, nil
}

// absent offers the message again, whose absence was proven when the question was put.
func (r *Reconciler) absent(ctx context.Context, topic Topic, m idem.Message, asked time.Time) (Decision, error) {
	next, _, err := Step(m, ProvenAbsent{Epoch: m.Epoch}, topic.rules(r.cfg), asked)
	if err != nil {
		return DecisionNone, err
	}
	if err := r.write(ctx, r.until(ctx), m, next); err != nil {
		return DecisionNone, fmt.Errorf("outbox: offer: %w", err)
	}
	r.log(ctx, slog.LevelInfo, "idempotency.reconcile.resolved", next, "outcome", outcomeAbsent)
	_ = r.schedule(ctx, next, next.NextAttemptAt) // logged; the sweep does the rest
	return DecisionOffered, nil
}

// early has the message looked at when absence proves something.
func (r *Reconciler) early(ctx context.Context, topic Topic, m idem.Message, asked time.Time) (Decision, error) {
	next, _, err := Step(m, Undecided{Epoch: m.Epoch}, topic.rules(r.cfg), asked)
	if err != nil || next.SweepAt.Equal(m.SweepAt) {
		return DecisionEarly, err
	}
	if err := r.write(ctx, r.until(ctx), m, next); err != nil {
		return DecisionNone, fmt.Errorf("outbox: ask again: %w", err)
	}
	return DecisionEarly, nil
}

// undecided backs off, or gives the message up.
func (r *Reconciler) undecided(ctx context.Context, topic Topic, m idem.Message, e Undecided) (Decision, error) {
	next, _, err := Step(m, e, topic.rules(r.cfg), r.now())
	if err != nil {
		return DecisionNone, err
	}
	if err := r.write(ctx, r.until(ctx), m, next); err != nil {
		return DecisionNone, fmt.Errorf("outbox: write %s: %w", next.State, err)
	}
	switch {
	case next.State == idem.MessageDead:
		r.log(ctx, slog.LevelWarn, "idempotency.reconcile.failed", next, "outcome", outcomeUnclear)
		r.tell(ctx, topic, next)
		return DecisionDead, nil
	case e.Unasked:
		r.alarm(ctx, "idempotency.reconcile.failed", next, "outcome", "unasked")
		return DecisionUnasked, nil
	}
	return DecisionUndecided, nil
}

// probePause is what lies between two probes: about as long again as they have been in vain.
func (d *desk) probePause(vain time.Duration) time.Duration {
	least, most := d.cfg.ProbeBackoffMin, d.cfg.ProbeBackoffMax
	high := min(2*min(max(vain, least), most), most)
	return between(max(least, high/2), high, d.random())
}
