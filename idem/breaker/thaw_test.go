package breaker_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/internal/twoclocks"
)

// The monotonic clock may stand still while a process is frozen: by it a breaker is open for OpenFor of running time, which is hours where
// each request is refused within milliseconds. What was known of the store before a freeze is not held against it.
func TestAFreezeEndsWhatTheBreakerIsOpenFor(t *testing.T) {
	frozen, log := time.Duration(0), &callers{}
	w := newWorld(t, breaker.Config{
		OpenFor: time.Hour, Logger: slog.New(log), Now: func() time.Time { return twoclocks.Set(time.Now(), frozen) },
	})
	w.trip()
	frozen = 59 * time.Minute
	if notAsked(w.get()) == nil {
		t.Error("it lets a call through while it is open")
	}
	w.faults.Clear()
	frozen = 2 * time.Hour
	for range 2 {
		if err := w.get(); err != nil {
			t.Errorf("after a freeze of two hours: %v", err)
		}
	}
	if want := []string{"the store is down: the circuit breaker opened by ", "circuit breaker by "}; !slices.Equal(log.lines, want) {
		t.Errorf("logged %q, want %q", log.lines, want)
	}
	w.trip() // it opens again as before
}
