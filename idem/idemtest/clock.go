package idemtest

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock that only a test moves. Its methods are what idem.Config and outbox.Config take as Now
// and Pause. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows the given time. It must not be the zero time, which in a record means that there is
// no time.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Pause moves the clock by d and returns at once. If the context is done it returns the context's error, and does not
// move the clock.
func (c *Clock) Pause(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Advance(d)
	return nil
}
