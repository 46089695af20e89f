package dynamo

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
)

// Message implements outbox.Store.
func (s *Store) Message(ctx context.Context, id idem.MessageID) (*idem.Message, error) {
	it, err := s.getItem(ctx, s.cfg.OutboxTable, item{messageKey: stringValue(string(id))})
	if err != nil {
		return nil, fmt.Errorf("dynamo: message %s: %w", id, err)
	}
	if it == nil {
		return nil, nil
	}
	message, err := s.decodeMessage(it)
	if err != nil {
		return nil, fmt.Errorf("dynamo: message %s: %w", id, err)
	}
	return message, nil
}

// UpdateMessage implements outbox.Store: one conditional PutItem.
func (s *Store) UpdateMessage(ctx context.Context, m idem.Message, fence idem.MessageFence) error {
	doing := fmt.Sprintf("update message %s", m.ID)
	it, err := s.encodeMessage(m)
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	e := newExpression()
	text := fencedMessage(e, fence)
	return s.putItem(ctx, doing, s.cfg.OutboxTable, it, condition{e, &text}, s.messageConflict)
}
