package dynamo

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// placeRow is the key of the row that keeps a place. It has no TTL and stands in no index.
func placeRow(name string) item { return item{recordKey: stringValue(schema.PlacePrefix + name)} }

// Place implements outbox.Store: one GetItem.
func (s *Store) Place(ctx context.Context, name string) (string, error) {
	it, err := s.getItem(ctx, s.cfg.IdempotencyTable, placeRow(name))
	if err != nil {
		return "", fmt.Errorf("dynamo: read place %s: %w", name, err)
	}
	return (&reader{item: it}).text(schema.Place), nil
}

// SetPlace implements outbox.Store: one UpdateItem without a condition.
func (s *Store) SetPlace(ctx context.Context, name, cursor string) error {
	e := newExpression()
	update := e.assign([]string{schema.Place}, item{schema.Place: stringValue(cursor)})
	return s.updateItem(ctx, "set place "+name, s.cfg.IdempotencyTable, placeRow(name), update, condition{e, nil}, nil)
}
