package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/idem-go/idem-aws/idem"
)

// settle ends a message with evidence, in one transaction, which it returns where this very sending is known to have
// landed. Whatever stands in its way, the evidence is not lost: it is settled by somebody, kept on the message, or the
// error says that the store could not be asked.
func (d *desk) settle(ctx context.Context, topic Topic, m idem.Message, o Outcome, x *execution) (*idem.Settlement, error) {
	next, _, err := Step(m, Evidence{o}, topic.rules(d.cfg), d.now())
	if err != nil {
		return nil, err
	}
	settlement, err := d.settlement(topic, m, next, o)
	if err != nil {
		return nil, d.keep(ctx, topic, m, o, x, err)
	}
	settlement.Fence = x.fence
	if settlement.Next != nil && x.claimNext != nil {
		claimed := x.claimNext(*settlement.Next)
		settlement.Next = &claimed
	}
	err = d.transact(ctx, settlement, x)
	if errors.Is(err, idem.ErrResponseTooLarge) && settlement.Record != nil {
		settlement.Record.Response = topic.short(m, o, settlement.Record.Response.Status)
		err = d.transact(ctx, settlement, x)
	}
	if err == nil {
		d.log(ctx, slog.LevelInfo, "outbox."+o.Name(), next)
		return &settlement, nil
	}
	var conflict *idem.MessageConflictError
	if x.fence != nil && errors.As(err, &conflict) {
		return nil, fmt.Errorf("outbox: settle %s: %w", o.Name(), err)
	}
	return nil, d.unsettled(ctx, topic, m, o, x, err)
}

// unsettled judges why a settlement did not happen, from the message as it is now.
func (d *desk) unsettled(ctx context.Context, topic Topic, m idem.Message, o Outcome, x *execution, cause error) error {
	existing, err := d.message(ctx, m.ID)
	switch {
	case err != nil:
		return fmt.Errorf("outbox: settle %s: %v; then %w", o.Name(), cause, err)
	case existing == nil:
		d.alarm(ctx, "outbox.message_gone", m, "outcome", o.Name())
		return nil
	case existing.State.Final():
		return d.settledAlready(ctx, *existing, o)
	case settlementAtFault(cause), existing.State == idem.MessageDead, attempts(*existing) >= topic.AttemptsMax:
		// Nobody will call again and so learn it anew: what can't be settled now is kept now.
		return d.keep(ctx, topic, *existing, o, x, cause)
	}
	return fmt.Errorf("outbox: settle %s: %w", o.Name(), cause)
}

// settlementAtFault says that sending the settlement again could not help, its message not being final.
func settlementAtFault(err error) bool {
	var (
		message    *idem.MessageConflictError
		record     *idem.RecordConflictError
		write      *idem.WriteFailedError
		unprepared *unpreparedError
	)
	return errors.As(err, &message) || errors.As(err, &record) || errors.As(err, &write) || errors.As(err, &unprepared)
}

// settledAlready meets a final message with evidence: the same is no news, another one is a person's business, and what
// comes after the operation was given up is kept (the stored answer stays).
func (d *desk) settledAlready(ctx context.Context, m idem.Message, o Outcome) error {
	switch {
	case m.State == idem.MessageCancelled:
		next, _, err := Step(m, Unsettled{o}, Rules{}, d.now())
		if err != nil {
			return err
		}
		d.alarm(ctx, "outbox.evidence_late", m, "outcome", o.Name())
		return d.write(ctx, d.until(ctx), m, next)
	case !agrees(m, o):
		d.alarm(ctx, "outbox.evidence_differs", m, "outcome", o.Name())
	}
	return nil
}

// agrees says whether evidence tells what a final message already says.
func agrees(m idem.Message, o Outcome) bool {
	switch o := o.(type) {
	case Delivered:
		return m.State == idem.MessageDelivered && m.Reference == o.Reference
	case Declined:
		return m.State == idem.MessageDeclined && m.Reference == o.Reference
	}
	return false
}

// keep makes a message dead with its evidence, because its settlement failed: an operator can settle it from there.
func (d *desk) keep(ctx context.Context, topic Topic, m idem.Message, o Outcome, x *execution, cause error) error {
	next, _, err := Step(m, Unsettled{o}, topic.rules(d.cfg), d.now())
	if err != nil {
		return err
	}
	err = d.transact(ctx, idem.Settlement{Message: endOf(next), Fence: x.fence}, x)
	var conflict *idem.MessageConflictError
	switch {
	case errors.As(err, &conflict) && conflict.Existing == nil:
		d.alarm(ctx, "outbox.message_gone", m, "outcome", o.Name())
		return nil
	case errors.As(err, &conflict) && x.fence == nil:
		return d.settledAlready(ctx, *conflict.Existing, o)
	case err != nil:
		return fmt.Errorf("outbox: keep evidence of %s: %w (its settlement failed: %v)", o.Name(), err, cause)
	}
	d.alarm(ctx, "outbox.settle_failed", next, "outcome", o.Name(), "error", cause)
	if m.State != idem.MessageDead {
		d.alarm(ctx, "outbox.dead", next, "reason", "settlement failed", "open", !next.OpenSince.IsZero())
	}
	d.bury(ctx, next, "settlement failed")
	return nil
}

// endOf names what a settlement changes of a message.
func endOf(m idem.Message) idem.MessageEnd {
	return idem.MessageEnd{
		ID: m.ID, Tenant: m.Tenant, Sealed: m.Sealed, State: m.State, DoneAt: m.DoneAt, Retention: m.Retention, Reference: m.Reference,
		LastOutcome: m.LastOutcome, Evidence: m.Evidence, SweepAt: m.SweepAt,
	}
}
