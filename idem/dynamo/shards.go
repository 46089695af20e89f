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
// because what it writes under a lower number is listed under the higher one. An operator's process calls [Store.SameShards] instead.
// It makes one strong GetItem, and one conditional UpdateItem where the number was raised.
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

// SameShards checks that Config.Shards is the number that rows are written with, as [Store.CheckShards] keeps it, and writes nothing. Of
// another number it returns an [*idem.ConfigError]: with fewer shards rows are missed, and what is written with more is missed by
// whatever lists. Where no number is kept yet, each is admitted.
//
// It is for what does not decide the number, such as an operator's command: call it at the start. It makes one strong GetItem.
func (s *Store) SameShards(ctx context.Context) error {
	it, err := s.getItem(ctx, s.cfg.IdempotencyTable, item{recordKey: stringValue(schema.ShardsKey)})
	if err != nil {
		return fmt.Errorf("dynamo: check shards: %w", err)
	}
	if it == nil {
		return nil
	}
	kept, err := keptShards(it)
	if err == nil && kept != s.cfg.Shards {
		err = &idem.ConfigError{
			Field: "Config.Shards", Value: s.cfg.Shards, Rule: "must be " + strconv.Itoa(kept) + ", the number that rows are written with",
		}
	}
	return err
}

// errRaised says that the row has as high a number: another process has raised it meanwhile.
var errRaised = errors.New("the stored number is already as high")

// compareShards says whether the row's number must be raised.
func (s *Store) compareShards(it item) (raise bool, err error) {
	kept, err := keptShards(it)
	if err == nil && kept > s.cfg.Shards {
		err = &idem.ConfigError{
			Field: "Config.Shards", Value: s.cfg.Shards, Rule: "must be at least " + strconv.Itoa(kept) + ", the number that rows were written with",
		}
	}
	return kept < s.cfg.Shards, err
}

// keptShards is the row's number.
func keptShards(it item) (int, error) {
	r := &reader{item: it}
	kept := int(r.number(schema.Shards))
	if r.err != nil || kept < 1 {
		r.malformed(schema.Shards)
		return 0, fmt.Errorf("dynamo: check shards: %w", r.err)
	}
	return kept, nil
}
