package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Message implements outbox.Store.
func (s *Store) Message(ctx context.Context, id storage.MessageID) (*storage.Message, error) {
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
func (s *Store) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	doing := "update message " + string(m.ID)
	it, err := s.encodeMessage(m)
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	c, err := fencedMessage(fence)
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	return s.putItem(ctx, doing, s.cfg.OutboxTable, it, c, s.messageConflict)
}

// PatchMessage implements outbox.Store: one conditional UpdateItem.
func (s *Store) PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error {
	doing := "patch message " + string(end.ID)
	it, attributes, err := s.patch(end)
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	return s.updateMessage(ctx, doing, end.ID, it, attributes, fence)
}

// PostponeMessage implements outbox.Store: one conditional UpdateItem, which moves the message within the index.
func (s *Store) PostponeMessage(ctx context.Context, id storage.MessageID, at time.Time, fence storage.MessageFence) error {
	doing := "postpone message " + string(id)
	if at.IsZero() {
		return fmt.Errorf("dynamo: %s: the time must not be zero", doing)
	}
	w := &writer{item: item{}}
	w.instant(schema.QueueAt, at)
	return s.updateMessage(ctx, doing, id, w.item, []string{schema.QueueAt}, fence)
}

// updateMessage gives attributes of the stored message the values that they have in the item.
func (s *Store) updateMessage(ctx context.Context, doing string, id storage.MessageID, it item, attributes []string, fence storage.MessageFence) error {
	c, err := fencedMessage(fence)
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	update := c.assign(attributes, it)
	return s.updateItem(ctx, doing, s.cfg.OutboxTable, item{messageKey: stringValue(string(id))}, update, c, s.messageConflict)
}
