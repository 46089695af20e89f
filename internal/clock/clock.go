// Package clock compares times by both clocks of a process. A process that was frozen, or a machine that was paused, may see that
// in one of them only.
package clock

import "time"

// Within says that less than age has passed since then, by the monotonic clock and by the wall clock, and that then is not
// ahead by either.
func Within(now, then time.Time, age time.Duration) bool {
	monotonic, wall := now.Sub(then), now.Round(0).Sub(then.Round(0))
	return min(monotonic, wall) >= 0 && max(monotonic, wall) < age
}

// Over says that the deadline has come, by the one clock or the other.
func Over(deadline, now time.Time) bool {
	return !now.Before(deadline) || !now.Round(0).Before(deadline.Round(0))
}
