package clock_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/internal/clock"
	"github.com/idem-go/idem-aws/internal/twoclocks"
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

// Ages by a clock that was set, and by one that stood still.
func TestAClockThatIsSetMakesNothingYounger(t *testing.T) {
	then := time.Now()
	later := then.Add(4 * time.Minute)
	for _, c := range []struct {
		now  time.Time
		age  time.Duration
		want bool
	}{
		{later, 5 * time.Minute, true},
		{later, 4 * time.Minute, false},
		{twoclocks.Set(later, -3*time.Minute), 4 * time.Minute, false},
		{twoclocks.Set(later, -5*time.Minute), 5 * time.Minute, false}, // ahead by the wall clock
		{twoclocks.Set(later, time.Minute), 5 * time.Minute, false},
	} {
		if got := clock.Within(c.now, then, c.age); got != c.want {
			t.Errorf("%v within %v: %t", c.now, c.age, got)
		}
	}
}
