package breaker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/sony/gobreaker/v2"
)

// Inner is the store that is protected.
type Inner interface {
	storage.Store
	outbox.Store
}

// Store is a store behind a circuit breaker. It implements storage.Store and outbox.Store, and is safe for concurrent use.
type Store struct {
	inner Inner
	cfg   Config
	gate  *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu sync.Mutex // guards the gate, so that the caller that asks it learns what the question changed
	// halfOpens is when an open breaker lets a probe through.
	halfOpens time.Time
	// changes are what the question that is being asked changed.
	changes []change
}

// change is one of the breaker's state.
type change struct{ from, to gobreaker.State }

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
	s.gate = s.newGate()
	return s, nil
}

// changed is called by the gate, within ask.
func (s *Store) changed(_ string, from, to gobreaker.State) {
	if to == gobreaker.StateOpen {
		s.halfOpens = s.cfg.Now().Add(s.cfg.OpenFor)
	}
	s.changes = append(s.changes, change{from, to})
}

// ask puts a question to the gate. What it changed is told as the work of the call that asked, so that the line has its request.
func (s *Store) ask(ctx context.Context, question func()) {
	s.mu.Lock()
	question()
	changes := s.changes
	s.changes = nil
	s.mu.Unlock()
	for _, c := range changes {
		s.tell(ctx, c)
	}
}

func (s *Store) tell(ctx context.Context, c change) {
	if c.to == gobreaker.StateOpen {
		s.cfg.Logger.ErrorContext(ctx, "the store is down: the circuit breaker opened", "from", c.from.String(), "open_for", s.cfg.OpenFor)
		return
	}
	s.cfg.Logger.InfoContext(ctx, "circuit breaker", "from", c.from.String(), "to", c.to.String())
}

// allow asks whether a call may be made now; it is refused with when to ask again.
func (s *Store) allow(ctx context.Context) (done func(error), refused *storage.NotAskedError) {
	s.ask(ctx, func() {
		var err error
		if done, err = s.gate.Allow(); s.thawed(err) {
			s.closeAnew()
			done, err = s.gate.Allow()
		}
		if err != nil {
			refused = &storage.NotAskedError{RetryAfter: s.retryAfter(err)}
		}
	})
	return done, refused
}

// begin makes a call that begins something, unless the store is known to be down.
func (s *Store) begin(ctx context.Context, call func(context.Context) error) error {
	done, refused := s.allow(ctx)
	if refused != nil {
		return refused
	}
	return s.observed(ctx, done, call)
}

// end makes a call that ends something, always. It counts where a call that begins would have been let through.
func (s *Store) end(ctx context.Context, call func(context.Context) error) error {
	done, refused := s.allow(ctx)
	if refused != nil {
		return call(ctx)
	}
	return s.observed(ctx, done, call)
}

func (s *Store) observed(ctx context.Context, done func(error), call func(context.Context) error) (err error) {
	said, patient := errNothing, s.patient(ctx)
	// After a panic too: a probe that never ends would keep the breaker from closing.
	defer func() { s.ask(ctx, func() { done(said) }) }()
	err = call(ctx)
	said = verdict(ctx, patient, s.overslept(ctx), err)
	return err
}

// retryAfter is when the next probe may be sent; while one is on its way, a second from now, HTTP's resolution.
func (s *Store) retryAfter(refused error) time.Duration {
	if !errors.Is(refused, gobreaker.ErrOpenState) {
		return time.Second
	}
	return max(s.halfOpens.Sub(s.cfg.Now()), time.Second)
}
