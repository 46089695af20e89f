package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// CheckShards returns how many shards rows of these tables may lie in: the highest Config.Shards that any store of them was checked
// with, which a row of the idempotency table keeps. Where this store's is higher, it is written into the row. An error says that the
// row could not be read or written; the number may then have been written all the same, and another call tells.
//
// A store with fewer shards than that, such as one of a release that was gone back to, writes into its own, and lists all of
// them once it was checked. So call it at the start of a process that writes, which may go on where it fails; and have a runner call
// it before each of its runs (outbox.Runner.AdoptShards). An operator's process calls [Store.SameShards] instead. It makes one strong
// GetItem, and one conditional UpdateItem where the number was raised.
func (s *Store) CheckShards(ctx context.Context) (kept int, err error) {
	key := item{recordKey: stringValue(schema.ShardsKey)}
	it, err := s.getItem(ctx, s.cfg.IdempotencyTable, key)
	if err != nil {
		return 0, fmt.Errorf("dynamo: check shards: %w", err)
	}
	if it != nil {
		if kept, err = keptShards(it); err != nil {
			return 0, err
		}
	}
	if kept < s.cfg.Shards {
		if kept, err = s.raiseShards(ctx, key); err != nil {
			return 0, err
		}
	}
	s.adoptShards(kept)
	return kept, nil
}

// raiseShards writes the store's number into the row, unless another process has raised it at least as high meanwhile, and returns
// what the row has then.
func (s *Store) raiseShards(ctx context.Context, key item) (kept int, err error) {
	e := newExpression()
	written := item{schema.Shards: numberValue(int64(s.cfg.Shards))}
	fewer := e.name(schema.Shards) + " < " + e.value(written[schema.Shards])
	condition := condition{e, new(either(e.absent(schema.Shards), fewer))}
	kept = s.cfg.Shards
	var malformed error
	err = s.updateItem(ctx, "check shards", s.cfg.IdempotencyTable, key, e.assign([]string{schema.Shards}, written), condition, func(stored item) error {
		kept, malformed = keptShards(stored)
		return errRaised
	})
	if errors.Is(err, errRaised) {
		err = malformed
	}
	return kept, err
}

// adoptShards has the store list as many shards as the row says. The number only rises, as the row's does.
func (s *Store) adoptShards(kept int) {
	for known := s.kept.Load(); int64(kept) > known && !s.kept.CompareAndSwap(known, int64(kept)); {
		known = s.kept.Load()
	}
}

// listedShards is how many shards the store lists: its own, or more, where it has read that there are.
func (s *Store) listedShards() int { return max(s.cfg.Shards, int(s.kept.Load())) }

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
