package breaker

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// newGate returns a closed gate.
func (s *Store) newGate() *gobreaker.TwoStepCircuitBreaker[struct{}] {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   1,
		Timeout:       s.cfg.OpenFor,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(s.cfg.FailuresMax) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errNothing) },
		OnStateChange: s.changed,
	})
}

// clocksDiffer is by how much the wall clock may be ahead of the monotonic one in a process that was not frozen.
const clocksDiffer = time.Second

// thawed says that a gate is open only because the clock that it goes by, the monotonic one, stood still while the process was frozen. It
// is called within ask.
func (s *Store) thawed(refused error) bool {
	over := s.halfOpens.Round(0).Add(clocksDiffer) // by the wall clock
	return errors.Is(refused, gobreaker.ErrOpenState) && s.cfg.Now().After(over)
}

// closeAnew forgets what the gate knows of the store from before a freeze.
func (s *Store) closeAnew() {
	s.gate = s.newGate()
	s.changed("", gobreaker.StateOpen, gobreaker.StateClosed)
}
