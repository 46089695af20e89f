package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Loss is until when data may have been lost. The later of the two times counts.
type Loss struct {
	// RefuseBefore is what the table says to every instance; the zero time where it was never set.
	RefuseBefore time.Time `json:"refuse_before,omitzero"`
	// Configured is the Config.RefuseBefore of the desk's engine and topics, which are made as the instances' are; the zero time where
	// neither has one.
	Configured time.Time `json:"configured,omitzero"`
	// NotDated says that data was lost, and that nobody has said up to when: see [storage.ErrLossNotDated].
	NotDated bool `json:"not_dated,omitempty"`
}

// Instant is the time that counts: the later of both; the zero time where nothing says that data was lost.
func (l Loss) Instant() time.Time {
	if l.ByConfiguration() {
		return l.Configured
	}
	return l.RefuseBefore
}

// ByConfiguration says that no row of the table says the time that counts.
func (l Loss) ByConfiguration() bool { return l.Configured.After(l.RefuseBefore) }

// ErrNotLater: a later instant than the one that was asked for stands already. Nothing was changed.
var ErrNotLater = errors.New("operator: refuse-before can only move to a later instant")

// lossAheadMax is how far ahead an instant may be set: nothing moves it back, and until then nothing at all would execute.
const lossAheadMax = 5 * time.Minute

// Loss reads until when data may have been lost.
func (d *Desk) Loss(ctx context.Context) (Loss, error) {
	at, err := d.cfg.Store.RefuseBefore(ctx)
	switch {
	case errors.Is(err, storage.ErrLossNotDated):
		return Loss{NotDated: true, Configured: d.configured()}, nil
	case err != nil:
		return Loss{}, fmt.Errorf("operator: read RefuseBefore: %w", err)
	}
	return Loss{RefuseBefore: at, Configured: d.configured()}, nil
}

// configured is up to when data may have been lost as the desk itself was told.
func (d *Desk) configured() time.Time {
	known := d.cfg.Topics.Lost(time.Time{})
	if engine := d.cfg.Engine.RefuseBefore(); engine.After(known) {
		return engine
	}
	return known
}

// known is until when data may have been lost, for what is looked at: read before the row is. What is seen while nobody has dated a loss is
// stale once somebody has.
func (d *Desk) known(ctx context.Context) (time.Time, error) {
	loss, err := d.Loss(ctx)
	return loss.Instant(), err
}

// lostBefore is up to when data may have been lost, as what is there is looked at: up to now where nobody has said it. It is the zero time
// where nothing was lost.
func (d *Desk) lostBefore(ctx context.Context) (time.Time, error) {
	loss, err := d.Loss(ctx)
	return d.upTo(loss), err
}

// upTo is lostBefore of a loss that was read.
func (d *Desk) upTo(l Loss) time.Time {
	if l.NotDated {
		return d.now()
	}
	return l.Instant()
}

// lossDated refuses a change while data was lost and nobody has said up to when. It would be decided as if nothing were lost: a message
// that was restored would count as never called, and be cancelled or called again.
func (d *Desk) lossDated(ctx context.Context) error {
	loss, err := d.Loss(ctx)
	if err == nil && loss.NotDated {
		err = fmt.Errorf("%w: %w", ErrRefused, storage.ErrLossNotDated)
	}
	return err
}

// RefuseBefore says to every instance that data from before the instant may have been lost: nothing executes for keys that
// are not proven younger, and messages that were created before may have been called. Nothing moves it back: an earlier
// instant is [ErrNotLater], and one more than 5 minutes ahead an [*InvalidError]. While data was lost and no instant is set, it is the
// only change of the desk's own that is not [ErrRefused].
func (d *Desk) RefuseBefore(ctx context.Context, at time.Time, ch Change) (Result, error) {
	at = at.UTC()
	return d.clerk.carry(ctx, ch, action{
		name: "refuse-before", subject: "all", would: fmt.Sprintf("execute nothing for keys that are not proven younger than %s", at.Format(time.RFC3339Nano)),
		judge: func(ctx context.Context) error { return d.settable(ctx, at) },
		act: func(ctx context.Context) (string, error) {
			kept, err := d.cfg.Store.SetRefuseBefore(ctx, at)
			if err != nil {
				return "", fmt.Errorf("operator: set RefuseBefore: %w", err)
			}
			return kept.Format(time.RFC3339Nano), nil
		},
	})
}

// settable says why an instant can't be set.
func (d *Desk) settable(ctx context.Context, at time.Time) error {
	if most := d.now().Add(lossAheadMax); at.After(most) {
		return &InvalidError{"refuse-before", fmt.Sprintf("must be at most %v ahead, %s: nothing moves it back", lossAheadMax, most.Format(time.RFC3339))}
	}
	loss, err := d.Loss(ctx)
	if err == nil && at.Before(loss.RefuseBefore) { // whatever is configured: the row tells every instance
		err = fmt.Errorf("%w: it is already set to %s", ErrNotLater, loss.RefuseBefore.Format(time.RFC3339Nano))
	}
	return err
}
