package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
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

// ErrNoTime: the context leaves no time for a call or a probe and its settlement. Nothing was done; the wake-up must come again.
var ErrNoTime = errors.New("outbox: not enough time left to deliver a message")

// Deliver does what a wake-up for the message asks for: it claims the message if it is due, calls the provider, and
// settles, keeps its evidence, backs off or parks. Evidence that is kept already is settled without a call. A message that
// is absent, final, parked, or claimed by somebody alive needs nothing.
//
// Trouble with the provider is not an error, and neither is a message of another release, which is left alone with an
// alarm in the log, `outbox.unknown_topic`: the sweep of the release that knows it offers it again. Errors, each for this
// message only: trouble with the store, and [ErrNoTime]. The wake-up should then come again.
func (w *Worker) Deliver(ctx context.Context, id idem.MessageID) error {
	x, err := w.newDelivery(protocol.Wake, id)
	if err != nil {
		return err
	}
	return w.run(ctx, x)
}

// DeliverSeen is [Worker.Deliver] for a message whose row, perhaps stale, came with the wake-up: a stream's new image.
// It saves the read; the claim is conditional on what was seen.
func (w *Worker) DeliverSeen(ctx context.Context, seen storage.Message) error {
	if seen.Sealed { // an image is as it is stored; reading opens it
		return w.Deliver(ctx, seen.ID)
	}
	x, err := w.deliveryOf(protocol.Wake, seen)
	if w.unknown(ctx, seen.ID, err) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.run(ctx, x)
}

// Unreadable says whether an error, of reading a stream's image, means a message that this release can't read, and tells of
// it as [Worker.Deliver] does: there is nothing to deliver, and the wake-up need not come again.
func (w *Worker) Unreadable(ctx context.Context, err error) bool { return w.unknown(ctx, "", err) }

// Settle ends a message with evidence that came by another way than its call: [Delivered] or [Declined], from the
// provider's own webhook. It does what the worker would have done, from any state that is not final, and is harmless to
// repeat. Where the provider honours no keys, and the message was claimed more than once or created before RefuseBefore,
// nobody knows which attempt a decline is about: it is kept, with an alarm. DecisionNone: the message is final already;
// evidence that contradicts what is final is an alarm.
//
// Errors: as with [Runner.ReconcileMessage], and one for an outcome that is no evidence.
func (w *Worker) Settle(ctx context.Context, id idem.MessageID, o Outcome) (Decision, error) {
	if !definite(o) {
		return DecisionNone, fmt.Errorf("outbox: a %T is no evidence", o)
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
