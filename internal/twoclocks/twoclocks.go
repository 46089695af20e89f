// Package twoclocks is for tests of what asks both clocks of a process: it makes readings of [time.Now] whose clocks no longer agree, as
// after a freeze in which the monotonic clock stood still, or after the wall clock was set.
package twoclocks

import (
	"time"
	"unsafe"
)

// secondsBit is where a reading that has a monotonic part keeps the seconds of its wall clock, in its first word.
const secondsBit = 30

// Set moves a reading's wall clock by whole seconds, and leaves its monotonic clock alone. It panics where there is no reading of that one.
func Set(reading time.Time, by time.Duration) time.Time {
	if reading == reading.Round(0) { //nolint:revive // Equal asks no clock for its reading: what has one is equal to what has none
		panic("twoclocks: no reading of the monotonic clock")
	}
	*(*uint64)(unsafe.Pointer(&reading)) += uint64(by/time.Second) << secondsBit // no function of package time does
	return reading
}
