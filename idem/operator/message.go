package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ErrUnsettled: the evidence could not be settled. The message keeps it: one that is evidenced is settled by the sweep, one
// that is dead waits for an operator.
var ErrUnsettled = errors.New("operator: the evidence could not be settled: the message keeps it; the log says why")

// Resolve ends a message that is unknown, evidenced or dead with evidence, which is [outbox.Delivered] or [outbox.Declined], as its
// worker would have.
func (d *Desk) Resolve(ctx context.Context, id idem.MessageID, evidence outbox.Outcome, ch Change) (Result, error) {
	would := fmt.Sprintf("settle it as %s", evidence.Name())
	return d.onMessage(ctx, "resolve", id, would, ch, func(ctx context.Context, seen storage.Revision) (string, error) {
		decision, err := d.operator.Settle(ctx, id, seen, evidence)
		if err == nil && decision != outbox.DecisionSettled {
			err = ErrUnsettled
		}
		return evidence.Name(), err
	})
}

// Close cancels a message of which nothing happened. Its operation fails, or first undoes what earlier messages did; one that has its
// final answer keeps it.
func (d *Desk) Close(ctx context.Context, id idem.MessageID, ch Change) (Result, error) {
	return d.onMessage(ctx, "close", id, "cancel it; its operation fails, after what undoes earlier steps", ch, func(ctx context.Context, seen storage.Revision) (string, error) {
		return string(storage.MessageCancelled), d.closer.Close(ctx, id, seen)
	})
}

// Redrive starts a dead message anew.
func (d *Desk) Redrive(ctx context.Context, id idem.MessageID, ch Change) (Result, error) {
	return d.onMessage(ctx, "redrive", id, "start it anew", ch, func(ctx context.Context, seen storage.Revision) (string, error) {
		state, err := d.operator.Redrive(ctx, id, seen)
		if err == nil && (state == storage.MessageDead || state == storage.MessageEvidenced) {
			err = ErrUnsettled
		}
		return string(state), err
	})
}

// ReconcileMessage asks the provider now about a message that is unknown. It needs nothing seen: it decides nothing that the
// reconciler would not.
func (d *Desk) ReconcileMessage(ctx context.Context, id idem.MessageID, ch Change) (Result, error) {
	m, err := d.message(ctx, id)
	if err != nil {
		return Result{Action: "reconcile", Subject: string(id)}, err
	}
	return d.carry(ctx, ch, action{
		name: "reconcile", subject: string(id), tenant: m.Tenant, would: "ask the provider about it",
		act: func(ctx context.Context) (string, error) {
			decision, err := d.runner.ReconcileMessage(ctx, id)
			return string(decision), err
		},
	})
}

// RedriveLetter is what a copy in the dead-letter queue asks for: the message is redriven as it stands, and one that is not
// dead any more needs nothing.
func (d *Desk) RedriveLetter(ctx context.Context, letter outbox.DeadLetter, ch Change) error {
	m, err := d.cfg.Store.Message(ctx, letter.Message)
	switch {
	case err != nil:
		return fmt.Errorf("operator: read message: %w", err)
	case m == nil || m.State != storage.MessageDead:
		return nil
	}
	ch.Seen = SeenMessage(*m)
	_, err = d.Redrive(ctx, letter.Message, ch)
	return err
}

// onMessage changes a message that is as the actor saw it.
func (d *Desk) onMessage(
	ctx context.Context, name string, id idem.MessageID, would string, ch Change, act func(context.Context, storage.Revision) (string, error),
) (Result, error) {
	m, err := d.message(ctx, id)
	if err != nil {
		return Result{Action: name, Subject: string(id)}, err
	}
	return d.carry(ctx, ch, action{
		name: name, subject: string(id), tenant: m.Tenant, would: would,
		judge: func(context.Context) error {
			if now := SeenMessage(m); now != ch.Seen {
				return &StaleError{string(id), ch.Seen, now}
			}
			return nil
		},
		act: func(ctx context.Context) (string, error) { return act(ctx, m.Revision) },
	})
}

func (d *Desk) message(ctx context.Context, id idem.MessageID) (storage.Message, error) {
	if _, _, err := id.Operation(); err != nil {
		return storage.Message{}, &InvalidError{"message", "must be an operation's id, a dot and the message's number"}
	}
	m, err := d.cfg.Store.Message(ctx, id)
	switch {
	case err != nil:
		return storage.Message{}, fmt.Errorf("operator: read message: %w", err)
	case m == nil:
		return storage.Message{}, ErrNotFound
	}
	return *m, nil
}
