package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/clock"
)

// sourceFor bounds one asking of the source.
const sourceFor = 5 * time.Second

// secrets are those that are known. With a source they are read again when none of them has made a signature, at most once
// in every: who forges signatures can't have it asked more often.
type secrets struct {
	source func(context.Context) ([]string, error)
	every  time.Duration

	mu     sync.Mutex // over what follows, and never held while the source is asked
	known  []string
	asked  time.Time
	failed error         // of the last time that the source was asked
	asking chan struct{} // closed when the source has answered; nil while it is not asked
}

func (s *secrets) current() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// renewed returns the secrets as they are now, or as they were less than every ago.
func (s *secrets) renewed(ctx context.Context, now time.Time) ([]string, error) {
	if s.source == nil {
		return s.known, nil
	}
	s.mu.Lock()
	asking := s.asking
	switch {
	case asking != nil: // another caller does, for all
	case clock.Within(now, s.asked, s.every):
		defer s.mu.Unlock()
		return s.known, s.failed
	default:
		asking = make(chan struct{})
		s.asked, s.asking = now, asking
		go s.ask(context.WithoutCancel(ctx), asking)
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("webhook: read the secrets again: %w", ctx.Err())
	case <-asking:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known, s.failed
}

// ask asks the source. It is nobody's request: one that hangs up, perhaps a forger's on purpose, must not spend the one asking on
// nothing.
func (s *secrets) ask(ctx context.Context, asking chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, sourceFor)
	defer cancel()
	fresh, err := s.fresh(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = nil; err != nil {
		s.failed = fmt.Errorf("webhook: read the secrets again: %w", err)
	} else {
		s.known = fresh
	}
	s.asking = nil
	close(asking)
}

// fresh is what the source has now. A source that panics would end the process from this goroutine, which no server recovers.
func (s *secrets) fresh(ctx context.Context) (fresh []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the source panicked: %v", p)
		}
	}()
	if fresh, err = s.source(ctx); err == nil {
		err = validSecrets(fresh)
	}
	return fresh, err
}
