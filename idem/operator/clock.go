package operator

import (
	"context"
	"fmt"
	"time"
)

// ClockOffMax is by how much the clock of a person's machine may differ from the store's. Leases, proofs of absence and the
// ends of answers are judged by the clock of the one who decides, and allow for 2 s ([idem.Config] ClockSkew); the store
// tells its time in whole seconds.
const ClockOffMax = 1500 * time.Millisecond

// ClockError refuses a change by a machine whose clock is off: what is not proven yet would look as if it were.
type ClockError struct {
	// Off is how far the clock is ahead of the store's; negative where it is behind.
	Off time.Duration
}

// Error implements error.
func (e *ClockError) Error() string {
	way := "ahead of"
	if e.Off < 0 {
		way = "behind"
	}
	return fmt.Sprintf("operator: this machine's clock is %v %s the store's, at most %v are allowed: nothing was changed", e.Off.Abs().Round(100*time.Millisecond), way, ClockOffMax)
}

// clockHolds compares the clock by which a change would be decided.
func (c *Clerk) clockHolds(ctx context.Context) error {
	if c.cfg.ClockOff == nil {
		return nil
	}
	off, err := c.cfg.ClockOff(ctx)
	if err != nil {
		return fmt.Errorf("operator: compare the clock with the store's, so nothing was changed: %w", err)
	}
	if off.Abs() > ClockOffMax {
		return &ClockError{off}
	}
	return nil
}
