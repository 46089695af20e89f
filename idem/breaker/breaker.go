package breaker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/recovery"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/sony/gobreaker/v2"
)

// Inner is the store that is protected.
type Inner interface {
	storage.Store
	outbox.Store
	recovery.Store
}

// Store is a store behind a circuit breaker. It implements storage.Store, outbox.Store and recovery.Store, and is safe for concurrent use.
type Store struct {
	inner Inner
	cfg   Config
	gate  *gobreaker.TwoStepCircuitBreaker[struct{}]
	// halfOpens is when an open breaker lets a probe through, in Unix nanoseconds.
	halfOpens atomic.Int64
}

// New returns a closed breaker around the store, or an [*idem.ConfigError].
func New(inner Inner, cfg Config) (*Store, error) {
	if inner == nil {
		return nil, &idem.ConfigError{Field: "inner", Value: nil, Rule: "must be given"}
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Store{inner: inner, cfg: cfg}
	s.gate = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   1,
		Timeout:       cfg.OpenFor,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(cfg.FailuresMax) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errNothing) },
		OnStateChange: s.changed,
	})
	return s, nil
}

// changed runs under gobreaker's lock, so whoever is refused sees what it wrote.
func (s *Store) changed(_ string, from, to gobreaker.State) {
	if to == gobreaker.StateOpen {
		s.halfOpens.Store(s.cfg.Now().Add(s.cfg.OpenFor).UnixNano())
		s.cfg.Logger.Error("the store is down: the circuit breaker opened", "from", from.String(), "open_for", s.cfg.OpenFor)
		return
	}
	s.cfg.Logger.Info("circuit breaker", "from", from.String(), "to", to.String())
}

// begin makes a call that begins something, unless the store is known to be down.
func (s *Store) begin(ctx context.Context, call func(context.Context) error) error {
	done, err := s.gate.Allow()
	if err != nil {
		return &storage.NotAskedError{RetryAfter: s.retryAfter(err)}
	}
	return s.observed(ctx, done, call)
}

// end makes a call that ends something, always. It counts where a call that begins would have been let through.
func (s *Store) end(ctx context.Context, call func(context.Context) error) error {
	done, err := s.gate.Allow()
	if err != nil {
		return call(ctx)
	}
	return s.observed(ctx, done, call)
}

func (s *Store) observed(ctx context.Context, done func(error), call func(context.Context) error) (err error) {
	said, patient := errNothing, s.patient(ctx)
	defer func() { done(said) }() // after a panic too: a probe that never ends would keep the breaker from closing
	err = call(ctx)
	said = verdict(ctx, patient, err)
	return err
}

// retryAfter is when the next probe may be sent; while one is on its way, a second from now, HTTP's resolution.
func (s *Store) retryAfter(refused error) time.Duration {
	if !errors.Is(refused, gobreaker.ErrOpenState) {
		return time.Second
	}
	return max(time.Unix(0, s.halfOpens.Load()).Sub(s.cfg.Now()), time.Second)
}
