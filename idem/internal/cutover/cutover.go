// Package cutover knows the instant before which data may have been lost, as a table says it, without asking for it at
// every request.
package cutover

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/flight"
	"github.com/idem-go/idem-aws/internal/clock"
)

// AgeMax is how old a reading is at most that is gone by. An operator's command that moves the instant waits that long.
const AgeMax = time.Minute

// Reader reads the instant anew when its last reading is older than [AgeMax]. While it can't be read there is none: an
// older reading is never gone by. It is safe for concurrent use; callers that come while it is read share the reading.
type Reader struct {
	// Read reads the instant; the zero time is none.
	Read func(context.Context) (time.Time, error)
	// Now is the clock.
	Now func() time.Time
	// Timeout bounds one reading.
	Timeout time.Duration
	// Moved is told of each instant that was not known before.
	Moved func(context.Context, time.Time)

	last   atomic.Pointer[reading]
	flight flight.Flight[time.Time]
}

// reading is what was read; asked is when it was asked for.
type reading struct {
	at, asked time.Time
}

// At returns the instant; the zero time where there is none. Errors: what Read returns, and the context's.
func (r *Reader) At(ctx context.Context) (time.Time, error) {
	if last := r.last.Load(); last != nil && r.fresh(last.asked) {
		return last.at, nil
	}
	return r.flight.Ask(ctx, r.read)
}

func (r *Reader) fresh(asked time.Time) bool { return clock.Within(r.Now(), asked, AgeMax) }

var errOld = errors.New("it was read too long ago to be gone by")

func (r *Reader) read(ctx context.Context) (time.Time, error) {
	if last := r.last.Load(); last != nil && r.fresh(last.asked) { // somebody else read it since this caller looked
		return last.at, nil
	}
	asked := r.Now()
	reader, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	at, err := r.Read(reader)
	if err == nil && !r.fresh(asked) { // the process was frozen meanwhile: who waits for a loss to be known waits no longer than AgeMax
		err = errOld
	}
	if err != nil {
		return time.Time{}, err
	}
	if before := r.last.Swap(&reading{at, asked}); !at.IsZero() && (before == nil || !before.at.Equal(at)) {
		r.Moved(ctx, at)
	}
	return at, nil
}
