package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Worker delivers messages. It is safe for concurrent use, and any number of workers may share a store.
type Worker struct{ *desk }

// NewWorker returns a worker, or an [*idem.ConfigError] for an argument that is nil.
func NewWorker(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters) (*Worker, error) {
	d, err := newDesk(store, topics, wakeUps, deadLetters)
	if err != nil {
		return nil, err
	}
	return &Worker{d}, nil
}

// ErrNoTime says that the context leaves no time for a call or a probe and its settlement. Nothing was done, and the
// wake-up must be delivered again.
var ErrNoTime = errors.New("outbox: not enough time left to deliver a message")

// Deliver processes a wake-up for the message. If the message is due it claims it, calls the provider, and settles the
// answer, keeps it as evidence, backs off or parks the message. Evidence that is kept already is settled without a call.
// Nothing is done for a message that is absent, final, parked, or claimed by a live worker.
//
// A failure of the provider is not an error. Neither is a message of another release: it is left alone, with the alarm
// `outbox.unknown_topic` in the log, until a release that knows it sweeps. Errors, each for this message only: those of
// the store, and [ErrNoTime]. The wake-up should then be delivered again.
func (w *Worker) Deliver(ctx context.Context, id idem.MessageID) error {
	x, err := w.newDelivery(protocol.Wake, id)
	if err != nil {
		return err
	}
	return w.run(ctx, x)
}

// DeliverSeen is [Worker.Deliver] for a message whose row came with the wake-up, as the new image of a stream. It saves
// the read. The row may be stale, so the claim is conditional on it.
func (w *Worker) DeliverSeen(ctx context.Context, seen storage.Message) error {
	if seen.Sealed { // an image is as it is stored; reading opens it
		return w.Deliver(ctx, seen.ID)
	}
	x, err := w.deliveryOf(protocol.Wake, seen)
	if err != nil {
		return err
	}
	return w.run(ctx, x)
}

// Unreadable says whether an error of reading a stream's image means that this release cannot read the message. If so it
// logs the alarm that [Worker.Deliver] logs: there is nothing to deliver, and the wake-up need not be delivered again.
func (w *Worker) Unreadable(ctx context.Context, err error) bool { return w.unknown(ctx, "", err) }

// Settle ends a message with evidence that came from the provider's own webhook: [Delivered] or [Declined]. It does what
// the worker would have done, from any state that is not final, and is harmless to repeat. If the provider honours no
// keys, and the message was claimed more than once or created before RefuseBefore, nobody knows which attempt a decline
// is about: the decline is kept, with an alarm. [DecisionNone] says that the message is final already; evidence that
// contradicts its end raises an alarm.
//
// Errors: as with [Runner.ReconcileMessage], and one for an outcome that is no evidence, or whose reference is too long.
func (w *Worker) Settle(ctx context.Context, id idem.MessageID, o Outcome) (Decision, error) {
	if !definite(o) {
		return DecisionNone, fmt.Errorf("outbox: a %T is not evidence", o)
	}
	if err := named(o); err != nil {
		return DecisionNone, err
	}
	x, err := w.newDelivery(protocol.Tidings, id)
	if err != nil {
		return DecisionNone, err
	}
	x.outcome, x.machine.Evidence = o, outcomeOf(o)
	decision, _, err := w.decide(ctx, x)
	return decision, err
}

func (w *Worker) run(ctx context.Context, x *delivery) error {
	_, err := x.run(ctx)
	if w.unknown(ctx, x.id, err) {
		return nil
	}
	return err
}
