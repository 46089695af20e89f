package storage

import (
	"context"
	"time"
)

// Loss is the part of a store that keeps, in a row of its own, the instant before which data may have been lost: what
// idem.Config.RefuseBefore says to one instance, the row says to all of them. A decorator passes it on as it is: one that
// hid it would let a key that was lost execute again.
type Loss interface {
	// RefuseBefore reads the instant strongly, in milliseconds; the zero time where none was set.
	RefuseBefore(ctx context.Context) (time.Time, error)
	// SetRefuseBefore moves the instant to a later one, rounded up to milliseconds, and returns what is kept now: where that is
	// as late already, nothing changes. Nothing moves it back, and nothing removes it. An instant that is not after 1970 is an
	// error. A write without a reply is an [*OutcomeUnknownError], and may be sent again.
	SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error)
}
