package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// secrets are those that are known. With a source they are read again when none of them has made a signature, at most once
// in every: who forges signatures can't have it asked more often.
type secrets struct {
	source func(context.Context) ([]string, error)
	every  time.Duration

	mu     sync.Mutex // over what follows, and held while the source is asked: another caller waits for its answer
	known  []string
	asked  time.Time
	failed error // of the last time that the source was asked
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
	defer s.mu.Unlock()
	if now.Sub(s.asked) < s.every {
		return s.known, s.failed
	}
	s.asked = now
	fresh, err := s.source(ctx)
	if err == nil {
		err = validSecrets(fresh)
	}
	if err != nil {
		s.failed = fmt.Errorf("webhook: read the secrets again: %w", err)
		return nil, s.failed
	}
	s.known, s.failed = fresh, nil
	return fresh, nil
}
