package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// RefuseBefore implements storage.Loss.
func (s *Store) RefuseBefore(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuseBefore, nil
}

// SetRefuseBefore implements storage.Loss.
func (s *Store) SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error) {
	at = at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
	if at.UnixMilli() <= 0 {
		return time.Time{}, fmt.Errorf("memstore: RefuseBefore can't be %v: it must be after 1970", at)
	}
	if err := s.late(ctx); err != nil {
		return time.Time{}, &storage.NotAskedError{Cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.refuseBefore) {
		s.refuseBefore = at
	}
	return s.refuseBefore, nil
}
