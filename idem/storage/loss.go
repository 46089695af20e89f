package storage

import (
	"context"
	"errors"
	"time"
)

// ErrLossNotDated: data was lost, and nobody has said up to when. A store that knows that data was lost returns it from RefuseBefore in
// place of the zero time. Nothing is executed and no provider is called then, because any error of RefuseBefore has that effect. An
// operator's desk (package operator) tells it from a store that can't be read: the instant can be set, and nothing else is changed before.
var ErrLossNotDated = errors.New("storage: data was lost, and nobody has said up to when")

// Loss is the part of a store that keeps, in a row of its own, the instant before which data may have been lost. The row
// has the effect of idem.Config.RefuseBefore on all instances. A decorator must pass it on: one that hid it would let a
// lost key execute again.
type Loss interface {
	// RefuseBefore reads the instant strongly, in milliseconds; the zero time if none was set. A store that knows that data was lost
	// returns [ErrLossNotDated] where none was set.
	RefuseBefore(ctx context.Context) (time.Time, error)
	// SetRefuseBefore moves the instant to a later one, rounded up to milliseconds, and returns the instant that is
	// stored now. If that is as late already, nothing changes. No method moves it back or removes it. An instant that is
	// not after 1970 is an error. A write without a reply is an [*OutcomeUnknownError], and may be sent again.
	SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error)
}
