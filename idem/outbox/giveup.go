package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// carry carries out what a wake-up or an answer made of a message, except claims: a back-off, a parking, a death. A
// conflict (an [*idem.MessageConflictError]) means that the message is another's business by now. It returns what the message
// is then.
func (d *desk) carry(ctx context.Context, topic Topic, seen, next idem.Message, effect Effect, x *execution) (idem.MessageState, error) {
	if effect == EffectFail {
		return d.fail(ctx, topic, seen, next, x)
	}
	if err := d.write(ctx, d.until(ctx), seen, next); err != nil {
		return "", fmt.Errorf("outbox: write %s: %w", next.State, err)
	}
	d.tell(ctx, topic, next)
	return next.State, nil
}

// fail gives a message up together with its record. Where that can't be written, the message is dead all the same and
// the record stays pending: a person decides.
func (d *desk) fail(ctx context.Context, topic Topic, seen, next idem.Message, x *execution) (idem.MessageState, error) {
	settlement, err := d.failure(topic, seen, next, answerOf(next))
	if err == nil {
		err = d.transact(ctx, settlement, x)
	} else {
		err = &unpreparedError{err}
	}
	var conflict *idem.MessageConflictError
	switch {
	case err == nil:
		d.tell(ctx, topic, next)
		return next.State, nil
	case errors.As(err, &conflict):
		return next.State, d.failedAlready(ctx, topic, seen, next, err)
	case !settlementAtFault(err):
		return "", fmt.Errorf("outbox: fail the record: %w", err)
	}
	cause := err
	next = unfailed(next, d.now())
	if err := d.write(ctx, d.until(ctx), seen, next); err != nil {
		return "", fmt.Errorf("outbox: write %s: %w", next.State, err)
	}
	d.alarm(ctx, "outbox.settle_failed", next, "outcome", outcomeNotExecuted, "error", cause)
	d.tell(ctx, topic, next)
	return next.State, nil
}

// unfailed is a message that was given up while its record, or what that means to the application, could not be written.
func unfailed(m idem.Message, now time.Time) idem.Message {
	m.State, m.SweepAt, m.DoneAt, m.LastOutcome = idem.MessageDead, now, time.Time{}, outcomeUnfailed
	return m
}

// failedAlready tells a lost reply of our own from another's doing. Two that gave up the same claim both tell of it: once
// too often rather than never.
func (d *desk) failedAlready(ctx context.Context, topic Topic, seen, next idem.Message, conflict error) error {
	existing, err := d.message(ctx, seen.ID)
	if err != nil {
		return errors.Join(conflict, err)
	}
	if existing != nil && idem.FenceOfMessage(next).Admits(*existing) {
		d.tell(ctx, topic, next)
		return nil
	}
	return conflict
}

// tell lets logs and queues know what became of a message.
func (d *desk) tell(ctx context.Context, topic Topic, m idem.Message) {
	switch m.State {
	case idem.MessageUnknown:
		d.alarm(ctx, "outbox.unknown", m, "last_outcome", m.LastOutcome)
	case idem.MessageCancelled:
		d.alarm(ctx, "outbox.abandoned", m)
	case idem.MessageDead:
		reason := deathOf(m, topic)
		d.alarm(ctx, "outbox.dead", m, "reason", reason, "open", !m.OpenSince.IsZero())
		d.bury(ctx, m, reason)
	}
}

func deathOf(m idem.Message, topic Topic) string {
	switch {
	case m.Sealed:
		return "payload can't be opened"
	case m.LastOutcome == outcomeRefused:
		return "refused"
	case m.LastOutcome == outcomeUnfailed:
		return "settlement failed"
	case m.LastOutcome == outcomeUnclear:
		return "undecided for too long"
	case m.Attempts >= topic.AttemptsMax:
		return "attempts over"
	}
	return "age over"
}

// bury queues a copy for the operators. The row is the truth and stands in their queue whatever becomes of the copy.
func (d *desk) bury(ctx context.Context, m idem.Message, reason string) {
	letter := DeadLetter{Message: m.ID, Topic: m.Topic, Reason: reason, Open: !m.OpenSince.IsZero(), Attempts: m.Attempts}
	if err := d.deadLetters.Bury(context.WithoutCancel(ctx), letter); err != nil {
		d.alarm(ctx, "outbox.dead_letter_lost", m, "error", err)
	}
}
