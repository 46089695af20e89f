package memstore

import (
	"context"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Place implements outbox.Store.
func (s *Store) Place(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[name], nil
}

// SetPlace implements outbox.Store.
func (s *Store) SetPlace(ctx context.Context, name, cursor string) error {
	if err := s.late(ctx); err != nil {
		return &storage.NotAskedError{Cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[name] = cursor
	return nil
}
