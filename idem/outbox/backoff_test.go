package outbox

import (
	"math"
	"testing"
	"time"
)

func TestBackoffIsFullJitterWithinItsBounds(t *testing.T) {
	const least, most = time.Second, 30 * time.Second
	for _, c := range []struct {
		n       int
		ceiling time.Duration
	}{{1, 2 * time.Second}, {2, 4 * time.Second}, {4, 16 * time.Second}, {5, most}, {64, most}, {math.MaxInt, most}} {
		span := uint64(c.ceiling - least)
		for random, want := range map[uint64]time.Duration{0: least, span: c.ceiling, span / 2: least + time.Duration(span/2), span + 1: least} {
			if got := backoff(c.n, least, most, random); got != want {
				t.Errorf("attempt %d, random %d: %v, want %v", c.n, random, got, want)
			}
		}
		if got := backoff(c.n, least, most, math.MaxUint64); got < least || got > c.ceiling {
			t.Errorf("attempt %d: %v lies outside %v..%v", c.n, got, least, c.ceiling)
		}
	}
	if got := backoff(3, most, most, 12345); got != most {
		t.Errorf("one bound: %v", got)
	}
	if got := doubled(time.Hour, math.MaxInt64, 1000); got != math.MaxInt64 {
		t.Errorf("overflow: %v", got)
	}
}
