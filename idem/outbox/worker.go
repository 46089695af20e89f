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

// Worker delivers messages. It is safe for concurrent use, by itself and beside any number of others.
type Worker struct{ *desk }

// NewWorker returns a worker, or an [*idem.ConfigError] for an argument that is nil.
func NewWorker(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters) (*Worker, error) {
	d, err := newDesk(store, topics, wakeUps, deadLetters)
	if err != nil {
		return nil, err
	}
	return &Worker{d}, nil
}

// ErrNoTime: the context leaves no time for a call and its settlement. Nothing was done; the wake-up must come again.
var ErrNoTime = errors.New("outbox: not enough time left to deliver a message")

// judgementsMax bounds how often one wake-up judges a message that others keep changing.
const judgementsMax = 8

// callMin is the shortest time in which a call is worth a try.
const callMin = time.Second

// Deliver does what a wake-up for the message asks for: it claims the message if it is due, calls the provider, and
// settles, backs off or parks. A message that is absent, final, parked, or claimed by somebody alive needs nothing.
//
// Trouble with the provider is not an error. Errors, each for this message only: trouble with the store; [ErrNoTime];
// an [*UnreadableError] or a [*TopicError] for what this release can't judge. The wake-up should then come again.
func (w *Worker) Deliver(ctx context.Context, id idem.MessageID) error {
	seen, err := w.message(ctx, id)
	if err != nil || seen == nil {
		return err
	}
	return w.begin(ctx, *seen)
}

// DeliverSeen is [Worker.Deliver] for a message whose row, perhaps stale, came with the wake-up: a stream's new image.
// It saves the read; the claim is conditional on what was seen.
func (w *Worker) DeliverSeen(ctx context.Context, seen idem.Message) error {
	if seen.Sealed { // an image is as it is stored; reading opens it
		return w.Deliver(ctx, seen.ID)
	}
	return w.begin(ctx, seen)
}

func (w *Worker) begin(ctx context.Context, seen idem.Message) error {
	owner, err := w.mint.Owner()
	if err != nil {
		return err
	}
	_, err = w.deliver(ctx, seen, &execution{owner: owner})
	return err
}

// deliver does what the message as it was seen asks for, or as it turns out to be. It returns the settlement that it made.
func (w *Worker) deliver(ctx context.Context, seen idem.Message, x *execution) (*idem.Settlement, error) {
	for range judgementsMax {
		settled, err := w.judge(ctx, seen, x)
		var conflict *idem.MessageConflictError
		if !errors.As(err, &conflict) {
			return settled, err
		}
		existing, err := w.message(ctx, seen.ID)
		if err != nil || existing == nil {
			return nil, err
		}
		seen = *existing
	}
	return nil, fmt.Errorf("outbox: others changed the message %d times: %w", judgementsMax, idem.ErrContention)
}

// judge does what the message as it was seen asks for. An [*idem.MessageConflictError] means that it was seen wrongly.
func (w *Worker) judge(ctx context.Context, seen idem.Message, x *execution) (*idem.Settlement, error) {
	topic, err := w.topic(seen)
	if err != nil {
		return nil, err
	}
	now := w.now()
	woken := Woken{Owner: x.owner, LeaseUntil: now.Add(w.cfg.ClaimLease)}
	next, effect, err := Step(seen, woken, topic.rules(w.cfg), now)
	if err != nil {
		return nil, err
	}
	switch effect {
	case EffectWait:
		_ = w.schedule(ctx, seen, Due(seen)) // logged; the sweep does the rest
		return nil, nil
	case EffectStore, EffectFail:
		_, err := w.carry(ctx, topic, seen, next, effect, x)
		return nil, err
	case EffectClaim:
		return w.claim(ctx, topic, seen, next, x)
	}
	return nil, nil
}

// claim takes the right to call, and uses it.
func (w *Worker) claim(ctx context.Context, topic Topic, seen, next idem.Message, x *execution) (*idem.Settlement, error) {
	if !w.timeForCall(ctx) {
		return nil, ErrNoTime
	}
	until := next.LeaseUntil.Add(-w.cfg.SettleMargin)
	if end := w.until(ctx); end.Before(until) {
		until = end
	}
	if err := w.write(ctx, until, seen, next); err != nil {
		return nil, fmt.Errorf("outbox: claim: %w", err)
	}
	return w.perform(ctx, topic, next, !seen.OpenSince.IsZero(), x)
}

// timeForCall says whether the context leaves time for a call and its settlement.
func (w *Worker) timeForCall(ctx context.Context) bool {
	left, bounded := remaining(ctx)
	return !bounded || left >= w.cfg.CallTimeout+w.cfg.SettleMargin
}

// perform makes the call of a claimed message and writes what it means. openBefore says that another call was open when
// the message was claimed.
func (w *Worker) perform(ctx context.Context, topic Topic, m idem.Message, openBefore bool, x *execution) (*idem.Settlement, error) {
	outcome := w.call(ctx, topic, m)
	switch outcome.(type) {
	case Delivered, Declined:
		return w.settle(ctx, topic, m, outcome, x)
	}
	return nil, w.answered(ctx, topic, m, outcome, openBefore, x)
}

// call asks the provider while the claim's own lease lives, and never after: what is sent later could not be told from
// what a successor sends.
func (w *Worker) call(ctx context.Context, topic Topic, m idem.Message) (outcome Outcome) {
	timeout := min(w.cfg.CallTimeout, m.LeaseUntil.Add(-w.cfg.SettleMargin).Sub(w.now()))
	if left, bounded := remaining(ctx); bounded {
		timeout = min(timeout, left-w.cfg.SettleMargin)
	}
	if timeout < min(callMin, w.cfg.CallTimeout) {
		return NotExecuted{Cause: errors.New("outbox: too little is left of the lease, or of the time, to call within it")}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			w.log(ctx, slog.LevelError, "outbox.panic", m, "stack", string(debug.Stack()))
			outcome = Ambiguous{Cause: fmt.Errorf("outbox: call panicked with a %T", p)}
		}
	}()
	switch outcome := topic.Call(ctx, m).(type) {
	case Delivered, Declined, NotExecuted, Ambiguous, Refused:
		return outcome
	default:
		return Ambiguous{Cause: fmt.Errorf("outbox: call answered with a %T", outcome)}
	}
}

// answered writes what a call without evidence means. Losing the claim in between is fine: whoever has it knows from
// open_since that this call may have happened.
func (w *Worker) answered(ctx context.Context, topic Topic, m idem.Message, o Outcome, openBefore bool, x *execution) error {
	answer := Answered{
		Owner: m.Owner, Epoch: m.Epoch, OpenBefore: openBefore, Outcome: o,
		Backoff: backoff(m.Attempts+1, w.cfg.BackoffMin, w.cfg.BackoffMax, w.random()),
	}
	w.log(ctx, slog.LevelInfo, "outbox.answered", m, "outcome", o.Name(), "cause", causeOf(o))
	next, effect, err := Step(m, answer, topic.rules(w.cfg), w.now())
	if err != nil {
		return err
	}
	_, err = w.carry(ctx, topic, m, next, effect, x)
	var conflict *idem.MessageConflictError
	switch {
	case errors.As(err, &conflict):
		w.log(ctx, slog.LevelWarn, "outbox.claim_lost", m, "outcome", o.Name())
		return nil
	case err != nil || next.State != idem.MessagePending:
		return err
	}
	return w.afterwards(ctx, topic, next, x)
}

// afterwards ends a message whose attempts are over with this one, or schedules the next.
func (w *Worker) afterwards(ctx context.Context, topic Topic, m idem.Message, x *execution) error {
	next, effect, err := Step(m, Woken{Owner: x.owner}, topic.rules(w.cfg), later(w.now(), m.NextAttemptAt))
	if err != nil {
		return err
	}
	if effect == EffectClaim {
		w.log(ctx, slog.LevelInfo, "outbox.retried", m, "last_outcome", m.LastOutcome, "next_attempt_at", m.NextAttemptAt)
		_ = w.schedule(ctx, m, m.NextAttemptAt) // logged; the sweep does the rest
		return nil
	}
	_, err = w.carry(ctx, topic, m, next, effect, x)
	var conflict *idem.MessageConflictError
	if errors.As(err, &conflict) {
		return nil
	}
	return err
}
