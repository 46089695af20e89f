// Package cutover knows the instant before which data may have been lost, as a table says it, without asking for it at
// every request.
package cutover

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// AgeMax is how old a reading is at most that is gone by. Whoever moves the instant waits that long.
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
	mu     sync.Mutex
	flight *flight
}

// reading is what was read; asked is when it was asked for.
type reading struct {
	at, asked time.Time
}

// flight is a reading that is under way. The rest of it may be read once done is closed.
type flight struct {
	done chan struct{}
	at   time.Time
	err  error
	// abandoned says that its caller gave up: that says nothing to anybody else.
	abandoned bool
}

// At returns the instant; the zero time where there is none. Errors: what Read returns, and the context's.
func (r *Reader) At(ctx context.Context) (time.Time, error) {
	for {
		if last := r.last.Load(); last != nil && r.fresh(last.asked) {
			return last.at, nil
		}
		f, leads := r.join()
		if leads {
			r.fly(ctx, f)
			return f.at, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
		if !f.abandoned {
			return f.at, f.err
		}
	}
}

// fresh judges by the monotonic clock and by the wall clock: a process that was frozen may see that in one of them only.
func (r *Reader) fresh(asked time.Time) bool {
	now := r.Now()
	age, wall := now.Sub(asked), now.Round(0).Sub(asked.Round(0))
	return min(age, wall) >= 0 && max(age, wall) < AgeMax
}

// join returns the reading that is under way, or one that the caller must make.
func (r *Reader) join() (f *flight, leads bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if leads = r.flight == nil; leads {
		r.flight = &flight{done: make(chan struct{}), abandoned: true}
	}
	return r.flight, leads
}

// fly reads for everybody who waits.
func (r *Reader) fly(ctx context.Context, f *flight) {
	defer func() {
		r.mu.Lock()
		r.flight = nil
		r.mu.Unlock()
		close(f.done)
	}()
	reading := reading{asked: r.Now()}
	reader, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	f.at, f.err = r.Read(reader)
	f.abandoned = f.err != nil && ctx.Err() != nil
	if f.err != nil {
		return
	}
	reading.at = f.at
	if before := r.last.Swap(&reading); !f.at.IsZero() && (before == nil || !before.at.Equal(f.at)) {
		r.Moved(ctx, f.at)
	}
}
