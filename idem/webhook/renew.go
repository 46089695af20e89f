package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/internal/clock"
)

// sourceFor bounds one asking of the source.
const sourceFor = 5 * time.Second

// secrets are those that are known. With a source they are read again when none of them has made a signature, and when they are older
// than age, at most once in every: who forges signatures can't have it asked more often.
type secrets struct {
	source     func(context.Context) ([]string, error)
	now        func() time.Time
	every, age time.Duration
	log        *slog.Logger

	mu     sync.Mutex // over what follows, and never held while the source is asked
	known  []string
	read   time.Time // when the source was asked for what is known
	asked  time.Time
	failed error         // of the last time that the source was asked
	asking chan struct{} // closed when the source has answered; nil while it is not asked
}

// current are those that are known, and whether the source may have others by now. A replaced secret still signs what fits: nothing but
// their age makes anybody look.
func (s *secrets) current(now time.Time) (known []string, old bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known, s.source != nil && !clock.Within(now, s.read, s.age)
}

// renewed returns the secrets as they are now, or as they were less than every ago. Where the source has failed they are what is known,
// beside the error. They are nil where the context ends.
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
		go s.ask(context.WithoutCancel(ctx), now, asking)
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

// ask asks the source, and once more where the process was frozen meanwhile, so that the answer is older than age. It is nobody's request:
// one that hangs up, perhaps a forger's on purpose, must not spend the one asking on nothing.
func (s *secrets) ask(ctx context.Context, now time.Time, asking chan struct{}) {
	fresh, err := s.fresh(ctx)
	if thawed := s.now(); err == nil && !clock.Within(thawed, now, s.age) {
		now = thawed
		fresh, err = s.fresh(ctx)
	}
	if err != nil {
		s.log.WarnContext(ctx, "webhook.secrets_not_read", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = nil; err != nil {
		s.failed = fmt.Errorf("webhook: read the secrets again: %w", err)
	} else {
		s.known, s.read = fresh, now
	}
	s.asked, s.asking = now, nil
	close(asking)
}

// fresh is what the source has now. A source that panics would end the process from this goroutine, which no server recovers.
func (s *secrets) fresh(ctx context.Context) (fresh []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sourceFor)
	defer cancel()
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
