package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// ScopeMark implements storage.Store: one strong GetItem, and where nothing is kept yet one conditional PutItem.
func (s *Store) ScopeMark(ctx context.Context, keep string) (string, error) {
	const doing = "scope mark"
	key := item{recordKey: stringValue(schema.ScopeMarkKey)}
	it, err := s.getItem(ctx, s.cfg.IdempotencyTable, key)
	if err != nil {
		return "", fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	if it != nil || keep == "" {
		return markIn(it)
	}
	e := &expression{names: map[string]string{}} // an empty map of values is refused
	absent := condition{e, all(e.absent(recordKey))}
	it = item{recordKey: key[recordKey], schema.ScopeMark: stringValue(keep)}
	err = s.putItem(ctx, doing, s.cfg.IdempotencyTable, it, absent, func(stored item) error {
		it = stored
		return errKept
	})
	if err != nil && !errors.Is(err, errKept) {
		return "", err
	}
	return markIn(it)
}

// errKept says that somebody else was first.
var errKept = errors.New("a mark is already stored")

// markIn reads the mark; "" where there is no row. A row without one is an error: nothing is known then.
func markIn(it item) (string, error) {
	if it == nil {
		return "", nil
	}
	r := &reader{item: it}
	mark := r.text(schema.ScopeMark)
	if mark == "" {
		r.malformed(schema.ScopeMark)
	}
	return mark, r.err
}
