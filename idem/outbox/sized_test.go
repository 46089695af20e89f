package outbox

import "testing"

// Sized is how much of something a test does: fewer with -short. So the race detector, which is ten times as slow, meets every test
// within a minute; the full size runs without it.
func Sized[N int | uint64](full, short N) N {
	if testing.Short() {
		return short
	}
	return full
}
