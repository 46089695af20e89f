package operator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
)

// What is proven by the time that has passed is judged by the clock of the one who decides: a machine whose clock is off may look, and
// changes nothing.
func TestAMachineWhoseClockIsOffChangesNothing(t *testing.T) {
	unheard := errors.New("no reply")
	for name, c := range map[string]struct {
		off     time.Duration
		err     error
		refused bool
	}{
		"right":           {0, nil, false},
		"within":          {-operator.ClockOffMax, nil, false},
		"ahead":           {operator.ClockOffMax + time.Millisecond, nil, true},
		"behind":          {-time.Hour, nil, true},
		"nobody can tell": {0, unheard, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.off = func(context.Context) (time.Duration, error) { return c.off, c.err }
			dry := because("")
			dry.DryRun = true
			if _, err := w.desk.RefuseBefore(t.Context(), noon.Add(-time.Hour), dry); err != nil {
				t.Errorf("a dry run: %v", err)
			}
			_, err := w.desk.RefuseBefore(t.Context(), noon.Add(-time.Hour), because(""))
			var clock *operator.ClockError
			switch {
			case !c.refused:
				w.ok(err)
			case c.err != nil && (!errors.Is(err, c.err) || operator.Refused(err)), c.err == nil && (!errors.As(err, &clock) || clock.Off != c.off || !operator.Refused(err)):
				t.Errorf("%v", err)
			}
			if loss, err := w.desk.Loss(t.Context()); err != nil || loss.RefuseBefore.IsZero() != c.refused || (len(w.audit.entries) == 0) != c.refused {
				t.Errorf("%+v, %v, %d entries", loss, err, len(w.audit.entries))
			}
		})
	}
}
