package clock_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/clock"
	"github.com/idem-go/idem-aws/internal/twoclocks"
)

func TestBothClocksAreAsked(t *testing.T) {
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
