package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ErrUndecided: nobody could be asked what became of it, or what was said decides nothing. It stays unknown, and is asked about again.
var ErrUndecided = errors.New("operator: the provider could not be asked, or what it said decides nothing: it is asked again later")

// ErrDied: the message is dead, because the provider could not say what became of it for as long as its topic admits.
var ErrDied = errors.New("operator: the provider could not say what became of it for as long as its topic admits: the message is dead now")

// ReconcileMessage asks the provider now about a message that is unknown. It needs nothing seen: it decides nothing that the
// reconciler would not. It is [ErrUndecided] where nobody could say, [ErrDied] where the message is dead for that, [ErrUnsettled] where
// evidence was found, and could not be settled, and [ErrRefused] where the topic has no Probe.
func (d *Desk) ReconcileMessage(ctx context.Context, id idem.MessageID, ch Change) (Result, error) {
	m, err := d.message(ctx, id)
	if err != nil {
		return Result{Action: "reconcile", Subject: string(id)}, err
	}
	return d.carry(ctx, ch, action{
		name: "reconcile", subject: string(id), tenant: m.Tenant, would: wouldReconcile(m),
		judge: func(context.Context) error { return d.askable(m) },
		act: func(ctx context.Context) (string, error) {
			decision, err := d.runner.ReconcileMessage(ctx, id)
			if err == nil {
				err = d.unsettled(ctx, id, decision)
			}
			return string(decision), err
		},
	})
}

// wouldReconcile says what a question about a message comes to: only what is unknown is asked about.
func wouldReconcile(m storage.Message) string {
	switch m.State {
	case storage.MessageUnknown:
		return "ask the provider about it"
	case storage.MessageEvidenced:
		return "settle the evidence that it keeps"
	default:
		return "do nothing: it is " + string(m.State) + ", and only what is unknown is asked about"
	}
}

// askable refuses to ask about a message that is unknown where there is nobody to ask. What becomes of any other the runner says.
func (d *Desk) askable(m storage.Message) error {
	rules, known := d.cfg.Topics.Protocol(m.Topic)
	if m.State == storage.MessageUnknown && known && !rules.Probed && !m.Sealed && ofMessage(m) == nil {
		return fmt.Errorf("%w: its topic has no Probe, so that nobody can be asked", ErrRefused)
	}
	return nil
}

// undecided is the error of a question that has decided nothing, and proves nothing later either.
func undecided(decision outbox.Decision) error {
	if decision == outbox.DecisionUndecided || decision == outbox.DecisionUnasked {
		return ErrUndecided
	}
	return nil
}

// unsettled is the error of a message that was asked about, and has not come to what the answer means.
func (d *Desk) unsettled(ctx context.Context, id idem.MessageID, decision outbox.Decision) error {
	switch decision {
	case outbox.DecisionKept:
		return ErrUnsettled
	case outbox.DecisionDead:
		return d.whyDead(ctx, id)
	default:
		return undecided(decision)
	}
}

// whyDead says why a question has left the message dead: it keeps what could not be settled, or nothing was said.
func (d *Desk) whyDead(ctx context.Context, id idem.MessageID) error {
	m, err := d.message(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("operator: the message is dead now, and why can't be read: %w", err)
	case len(keptBy(m)) > 0:
		return ErrUnsettled
	}
	return ErrDied
}
