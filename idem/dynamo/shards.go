package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// CheckShards checks that Config.Shards is not lower than the number that any store of these tables was checked with, which a row
// of the idempotency table keeps. Of a lower number it returns an [*idem.ConfigError]: what lies in the upper shards would be
// listed by nobody. A higher number is written into the row. Every other error says that the row could not be read or
// written; the number may then have been written all the same, and another call tells.
//
// Call it before a process lists, and list nothing where it fails; and at the start of a process that writes, which may go on,
// because what it writes under a lower number is listed under the higher one. It makes one strong GetItem, and one conditional UpdateItem
// where the number was raised.
func (s *Store) CheckShards(ctx context.Context) error {
	const doing = "check shards"
	key := item{recordKey: stringValue(schema.ShardsKey)}
	it, err := s.getItem(ctx, s.cfg.IdempotencyTable, key)
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	if it != nil {
		if raise, err := s.compareShards(it); err != nil || !raise {
			return err
		}
	}
	e := newExpression()
	written := item{schema.Shards: numberValue(int64(s.cfg.Shards))}
	fewer := e.name(schema.Shards) + " < " + e.value(written[schema.Shards])
	condition := condition{e, new(either(e.absent(schema.Shards), fewer))}
	var refused error
	err = s.updateItem(ctx, doing, s.cfg.IdempotencyTable, key, e.assign([]string{schema.Shards}, written), condition, func(stored item) error {
		_, refused = s.compareShards(stored)
		return errRaised
	})
	if errors.Is(err, errRaised) {
		return refused
	}
	return err
}

// errRaised says that the row has as high a number: another process has raised it meanwhile.
var errRaised = errors.New("the stored number is already as high")

// compareShards says whether the row's number must be raised.
func (s *Store) compareShards(it item) (raise bool, err error) {
	r := &reader{item: it}
	kept := int(r.number(schema.Shards))
	switch {
	case r.err != nil || kept < 1:
		r.malformed(schema.Shards)
		return false, fmt.Errorf("dynamo: check shards: %w", r.err)
	case kept > s.cfg.Shards:
		return false, &idem.ConfigError{
			Field: "Config.Shards", Value: s.cfg.Shards, Rule: "must be at least " + strconv.Itoa(kept) + ", the number that rows were written with",
		}
	}
	return kept < s.cfg.Shards, nil
}
