package storage

import (
	"context"
	"errors"
	"time"
)

// RefuseBeforeStore is a store that keeps, in a row of its own, the instant before which data may have been lost: what
// idem.Config.RefuseBefore says to one instance, the row says to all of them. A decorator passes it on with [RefuseBeforeOf] and
// [SetRefuseBeforeOf]: one that hides it lets a key that was lost execute again.
type RefuseBeforeStore interface {
	// RefuseBefore reads the instant strongly, in milliseconds; the zero time where none was set.
	RefuseBefore(ctx context.Context) (time.Time, error)
	// SetRefuseBefore moves the instant to a later one, rounded up to milliseconds, and returns what is kept now: where that is
	// as late already, nothing changes. Nothing moves it back, and nothing removes it. An instant that is not after 1970 is an
	// error. A write without a reply is an [*OutcomeUnknownError], and may be sent again.
	SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error)
}

// ErrNoRefuseBefore: the store is no [RefuseBeforeStore], nor is one that it decorates.
var ErrNoRefuseBefore = errors.New("idem: the store keeps no RefuseBefore")

// RefuseBeforeOf reads the instant of a [RefuseBeforeStore]. Any other store is [ErrNoRefuseBefore].
func RefuseBeforeOf(ctx context.Context, store any) (time.Time, error) {
	if keeper, ok := store.(RefuseBeforeStore); ok {
		return keeper.RefuseBefore(ctx)
	}
	return time.Time{}, ErrNoRefuseBefore
}

// SetRefuseBeforeOf sets the instant of a [RefuseBeforeStore]. Any other store is [ErrNoRefuseBefore].
func SetRefuseBeforeOf(ctx context.Context, store any, at time.Time) (time.Time, error) {
	if keeper, ok := store.(RefuseBeforeStore); ok {
		return keeper.SetRefuseBefore(ctx, at)
	}
	return time.Time{}, ErrNoRefuseBefore
}
