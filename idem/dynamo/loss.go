package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// lossRow is the key of the row that says when data may have been lost. It has no TTL and stands in no index.
func lossRow() item { return item{recordKey: stringValue(schema.LossKey)} }

// RefuseBefore implements storage.Loss: one GetItem, read strongly.
func (s *Store) RefuseBefore(ctx context.Context) (time.Time, error) {
	it, err := s.getItem(ctx, s.cfg.IdempotencyTable, lossRow())
	if err == nil && it != nil {
		return readLoss(it)
	}
	if err != nil {
		err = fmt.Errorf("dynamo: read refuse before: %w", err)
	}
	return time.Time{}, err
}

// readLoss reads the row. One that does not say what it is there for is an error: nobody knows what was lost. A row without an instant is
// what a restore leaves (package awsctl): [storage.ErrLossNotDated].
func readLoss(it item) (time.Time, error) {
	r := &reader{item: it}
	at := r.instant(schema.RefuseBefore)
	switch _, dated := it[schema.RefuseBefore]; {
	case !dated:
		return time.Time{}, fmt.Errorf("dynamo: read refuse before: %w", storage.ErrLossNotDated)
	case r.err != nil:
		return time.Time{}, fmt.Errorf("dynamo: read refuse before: %w", r.err)
	}
	return at, nil
}

// SetRefuseBefore implements storage.Loss: one conditional UpdateItem, which leaves the row's other attributes.
func (s *Store) SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error) {
	at = at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
	if at.UnixMilli() <= 0 {
		return time.Time{}, fmt.Errorf("dynamo: RefuseBefore can't be %v: it must be after 1970", at)
	}
	e := newExpression()
	w := &writer{item: item{}}
	w.instant(schema.RefuseBefore, at)
	earlier := e.name(schema.RefuseBefore) + " < " + e.value(w.item[schema.RefuseBefore])
	condition := condition{e, new(either(e.absent(schema.RefuseBefore), earlier))}
	kept, lost := at, errors.New("a later one is already set")
	err := s.updateItem(ctx, "set refuse before", s.cfg.IdempotencyTable, lossRow(), e.assign([]string{schema.RefuseBefore}, w.item), condition,
		func(stored item) error {
			var err error
			if kept, err = readLoss(stored); err != nil {
				return err
			}
			return lost
		})
	if errors.Is(err, lost) {
		return kept, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return at, nil
}
