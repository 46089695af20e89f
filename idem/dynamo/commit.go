package dynamo

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Prepare implements storage.Store. The transaction's bytes are made here, once: what the caller does to the commit
// afterwards changes nothing. A message that exists already makes sending return an [*storage.MessageConflictError].
func (s *Store) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	doing := "commit " + string(c.Record.Key)
	t, err := s.commit(c)
	if err != nil {
		return nil, fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	return s.prepare(doing, t, c.Token)
}

func (s *Store) commit(c storage.Commit) (*transaction, error) {
	it, chunks, err := s.encodeRecord(c.Record)
	if err != nil {
		return nil, err
	}
	fence := storage.Fence{FreeAt: c.Now}
	if c.Fence != nil {
		fence = *c.Fence
	}
	guard, err := fenced(c.Record.Key, fence)
	if err != nil {
		return nil, err
	}
	t := &transaction{}
	t.putRecord(s, it, guard)
	for i, m := range c.Messages {
		if err := t.putMessage(s, m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	t.putChunks(s, chunks)
	if err := declared(c.Writes); err != nil {
		return nil, err
	}
	return t, s.resolve(t, c.Writes)
}
