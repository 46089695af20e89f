package client

import (
	"math"
	"testing"
	"time"
)

func TestBackoffIsFullJitter(t *testing.T) {
	const base, most = 200 * time.Millisecond, 20 * time.Second
	for _, c := range []struct {
		n       int
		ceiling time.Duration
	}{{0, base}, {1, base}, {2, 2 * base}, {3, 4 * base}, {7, 64 * base}, {8, most}, {math.MaxInt, most}} {
		span := uint64(c.ceiling)
		for random, want := range map[uint64]time.Duration{0: 0, span: c.ceiling, span / 3: time.Duration(span / 3), span + 1: 0} {
			if got := backoff(c.n, base, most, random); got != want {
				t.Errorf("attempt %d, random %d: %v, want %v", c.n, random, got, want)
			}
		}
		if got := backoff(c.n, base, most, math.MaxUint64); got < 0 || got > c.ceiling {
			t.Errorf("attempt %d: %v", c.n, got)
		}
	}
	if got := backoff(1000, time.Hour, math.MaxInt64, math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("overflow: %v", got)
	}
}
