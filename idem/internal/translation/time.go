// Package translation is between the rows of a store, which hold everything, and the headers that package protocol judges.
// A driver holds the whole row beside the header, and writes the header that a machine returns over that row: what a machine
// does not know stays as it is.
package translation

import (
	"time"

	"github.com/idem-go/idem-aws/idem/protocol"
)

// InstantOf is the time in milliseconds; the zero time is none.
func InstantOf(t time.Time) protocol.Instant {
	if t.IsZero() {
		return 0
	}
	return protocol.Instant(t.UnixMilli())
}

// TimeOf is the time of an instant, in UTC.
func TimeOf(i protocol.Instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(i)).UTC()
}

// MillisOf is the duration in whole milliseconds.
func MillisOf(d time.Duration) protocol.Millis { return protocol.Millis(d.Milliseconds()) }

// SpanOf is the duration of so many milliseconds.
func SpanOf(m protocol.Millis) time.Duration { return time.Duration(m) * time.Millisecond }
