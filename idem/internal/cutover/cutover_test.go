package cutover_test

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/cutover"
)

// What was read counts for less than a minute of the clock. A clock that was set back says nothing about its age.
func TestAReadingCountsForLessThanAMinute(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	now, reads := noon, 0
	r := cutover.Reader{
		Read:    func(context.Context) (time.Time, error) { reads++; return noon, nil },
		Now:     func() time.Time { return now },
		Timeout: time.Second,
		Moved:   func(context.Context, time.Time) {},
	}
	for _, step := range []struct {
		by   time.Duration
		want int
	}{{0, 1}, {time.Minute - 1, 1}, {1, 2}, {-time.Nanosecond, 3}, {0, 3}, {time.Hour, 4}} {
		now = now.Add(step.by)
		if at, err := r.At(t.Context()); err != nil || !at.Equal(noon) || reads != step.want {
			t.Errorf("%v later: %v, %v, %d reads, want %d", step.by, at, err, reads, step.want)
		}
	}
}

// A reading that panics leaves nobody waiting for it.
func TestAReadingThatPanicsHoldsUpNobody(t *testing.T) {
	panics := true
	r := cutover.Reader{
		Read: func(context.Context) (time.Time, error) {
			if panics {
				panics = false
				panic("damaged")
			}
			return time.Time{}, nil
		},
		Now: time.Now, Timeout: time.Second,
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = r.At(t.Context())
	}()
	if _, err := r.At(t.Context()); err != nil {
		t.Error(err)
	}
}
