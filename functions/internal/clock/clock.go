// Package clock judges ages by both clocks of a process, as idem/internal/clock does for the library, which alone may import that.
package clock

import "time"

// Within says that less than age has passed since then, by the monotonic clock and by the wall clock, and that then is not ahead by
// either. The monotonic clock may stand still while a function is frozen, and the wall clock may be set back.
func Within(now, then time.Time, age time.Duration) bool {
	monotonic, wall := now.Sub(then), now.Round(0).Sub(then.Round(0))
	return min(monotonic, wall) >= 0 && max(monotonic, wall) < age
}
