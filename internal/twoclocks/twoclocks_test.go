package twoclocks_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/internal/twoclocks"
)

func TestOnlyTheWallClockIsSet(t *testing.T) {
	now := time.Now()
	for _, by := range []time.Duration{time.Hour, -3 * time.Minute} {
		set := twoclocks.Set(now, by)
		if monotonic, wall := set.Sub(now), set.Round(0).Sub(now.Round(0)); monotonic != 0 || wall != by {
			t.Errorf("set by %v: %v by the monotonic clock, %v by the wall clock", by, monotonic, wall)
		}
	}
}
