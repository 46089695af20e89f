package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Message implements outbox.Store.
func (s *Store) Message(ctx context.Context, id storage.MessageID) (*storage.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.message(id), nil
}

// message is a copy of the stored message. The lock is held.
func (s *Store) message(id storage.MessageID) *storage.Message {
	stored, ok := s.messages[id]
	if !ok {
		return nil
	}
	m := copyMessage(stored)
	return &m
}

// UpdateMessage implements outbox.Store.
func (s *Store) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	return s.write(ctx, putMessage{Message: m, Fence: &fence})
}

// PatchMessage implements outbox.Store.
func (s *Store) PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error {
	return s.write(ctx, endMessage{End: copyMessageEnd(end), Fence: fence})
}

// PostponeMessage implements outbox.Store.
func (s *Store) PostponeMessage(ctx context.Context, id storage.MessageID, at time.Time, fence storage.MessageFence) error {
	if at.IsZero() {
		return fmt.Errorf("memstore: postpone message %s: the time must not be zero", id)
	}
	return s.write(ctx, postponeMessage{ID: id, At: at, Fence: fence})
}
