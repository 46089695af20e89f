package clock_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/clock"
)

// A paused machine sees the time that has passed in its wall clock only, which has no monotonic part here.
func TestBothClocksAreAsked(t *testing.T) {
	now := time.Now()
	thawed := now.Round(0).Add(time.Hour)
	if !clock.Within(now.Add(time.Second), now, time.Minute) || clock.Within(thawed, now, time.Minute) || clock.Within(now.Add(-time.Second), now, time.Minute) {
		t.Error("an age is judged by one clock")
	}
	if clock.Over(now.Add(time.Second), now) || !clock.Over(now, now) || !clock.Over(now.Add(time.Minute), thawed) {
		t.Error("a deadline is judged by one clock")
	}
}
