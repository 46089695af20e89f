package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idem-go/idem-aws/idem/storage"
)

// What the contract allows in one transaction. These are DynamoDB's bounds; a store that took more would let an application
// grow that no other store can run.
const (
	itemsMax      = 100
	tokenBytesMax = 36
)

// transaction is frozen: nothing of it is shared with its caller.
type transaction struct {
	// items are judged in this order: the first whose condition fails decides.
	items  []item
	writes []Write
	// token is "" for a write of one row, which is no transaction of the contract's.
	token   string
	content [sha256.Size]byte
}

// Prepare implements storage.Store.
func (s *Store) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	fence := storage.Fence{FreeAt: c.Now}
	if c.Fence != nil {
		fence = *c.Fence
		fence.States = slices.Clone(fence.States)
	}
	var b builder
	b.add(s.newPutRecord(c.Record, fence))
	for _, m := range c.Messages {
		b.add(newPutMessage(m, nil))
	}
	return s.prepare("commit "+string(c.Record.Key), b, c.Writes, c.Token)
}

// PrepareSettle implements outbox.Store.
func (s *Store) PrepareSettle(settlement storage.Settlement) (send func(context.Context) error, err error) {
	fence := settlement.Fence
	fence.States = slices.Clone(fence.States)
	var b builder
	if settlement.Replace != nil {
		b.add(newPutMessage(*settlement.Replace, &fence))
	} else {
		b.add(newEndMessage(settlement.Message, fence))
	}
	if settlement.Record != nil {
		b.add(s.newEndRecord(*settlement.Record))
	}
	if settlement.Check != nil {
		b.add(checkRecord{*settlement.Check}, nil)
	}
	if settlement.Next != nil {
		b.add(newPutMessage(*settlement.Next, nil))
	}
	removeAt := settlement.Message.RemoveAt
	for _, id := range settlement.Earlier {
		b.add(&changeMessage{id: id, optional: true, changes: removeAt, change: func(m *storage.Message) { m.RemoveAt = removeAt }}, nil)
	}
	return s.prepare("settle "+string(settlement.Message.ID), b, settlement.Writes, settlement.Token)
}

// builder collects items, and the first reason why one can't be made.
type builder struct {
	items []item
	err   error
}

func (b *builder) add(i item, err error) {
	b.items = append(b.items, i)
	b.err = cmp.Or(b.err, err)
}

func (s *Store) prepare(doing string, b builder, writes []storage.Write, token string) (func(context.Context) error, error) {
	own, err := native(writes)
	if err = cmp.Or(b.err, err); err != nil {
		return nil, wrapped(doing, err)
	}
	t := transaction{items: b.items, writes: own, token: token}
	if err := t.validate(); err != nil {
		return nil, wrapped(doing, err)
	}
	contents := []any{own}
	for _, i := range t.items {
		contents = append(contents, i.name(), i.content())
	}
	content, err := json.Marshal(contents)
	if err != nil {
		return nil, wrapped(doing, err)
	}
	t.content = sha256.Sum256(content)
	return func(ctx context.Context) error { return wrapped(doing, s.send(ctx, t)) }, nil
}

// validate refuses what the contract does not allow in one transaction.
func (t transaction) validate() error {
	if n := len(t.items) + len(t.writes); n > itemsMax {
		return fmt.Errorf("pgstore: a transaction of %d items, at most %d fit", n, itemsMax)
	}
	if t.token == "" || len(t.token) > tokenBytesMax {
		return fmt.Errorf("pgstore: a client request token of %d bytes, want 1 to %d", len(t.token), tokenBytesMax)
	}
	written := map[string]bool{}
	for _, name := range t.names() {
		if written[name] {
			return fmt.Errorf("pgstore: a transaction writes %s twice", name)
		}
		written[name] = true
	}
	return nil
}

func (t transaction) names() []string {
	var names []string
	for _, i := range t.items {
		names = append(names, i.name())
	}
	for _, w := range t.writes {
		names = append(names, "row "+w.row)
	}
	return names
}

// racesMax bounds how often a transaction is begun again because another one inserted a row that it had found absent.
const racesMax = 3

// send makes the transaction happen, unless its token says that it has.
func (s *Store) send(ctx context.Context, t transaction) error {
	for range racesMax {
		err := s.atomically(ctx, func(tx pgx.Tx) error { return t.run(ctx, tx, s.cfg.Now()) })
		switch {
		case errors.Is(err, errHappened):
			return nil
		case !errors.Is(err, errRaced):
			return err
		}
	}
	return &storage.ContentionError{}
}

// errHappened says that the token's transaction has been committed. The present one is rolled back: it wrote nothing.
var errHappened = errors.New("pgstore: the transaction happened already")

// errTokenReused is what DynamoDB calls IdempotentParameterMismatch.
var errTokenReused = errors.New("pgstore: a client request token was used again with other content")

// run is the transaction within the database's: the token, all locks in one order, all conditions, then all writes.
func (t transaction) run(ctx context.Context, tx pgx.Tx, now time.Time) error {
	if t.token != "" {
		if err := t.claim(ctx, tx, now); err != nil {
			return err
		}
	}
	writes, err := t.judge(ctx, tx)
	if err != nil {
		return err
	}
	for _, write := range writes {
		if err := write(ctx); err != nil {
			return err
		}
	}
	return execute(ctx, tx, t.writes)
}

// claim keeps the token. It waits for a transaction of the same token that has not ended.
func (t transaction) claim(ctx context.Context, tx pgx.Tx, now time.Time) error {
	err := inserted(tx.Exec(ctx, "insert into idem_tokens (token, content, sent_at) values ($1, $2, $3) on conflict do nothing", t.token, t.content[:], now.UTC()))
	if !errors.Is(err, errRaced) {
		return err
	}
	var content []byte
	err = tx.QueryRow(ctx, "select content from idem_tokens where token = $1", t.token).Scan(&content)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // Purge took it
		return errRaced
	case err != nil:
		return err
	case !bytes.Equal(content, t.content[:]):
		return errTokenReused
	}
	return errHappened
}

// judge locks all rows and evaluates every condition on the state before. The first record or message that fails decides; a
// record's conflict tells of the first message that was in the way too.
func (t transaction) judge(ctx context.Context, tx pgx.Tx) (writes []func(context.Context) error, err error) {
	conflicts := make([]error, len(t.items))
	writes = make([]func(context.Context) error, len(t.items))
	for _, i := range byName(t.items, item.name) {
		if conflicts[i], writes[i], err = lockedBy(ctx, tx, t.items[i]); err != nil {
			return nil, err
		}
	}
	var first error
	var message *storage.MessageConflictError
	for _, conflict := range conflicts {
		first = cmp.Or(first, conflict)
		var found *storage.MessageConflictError
		if errors.As(conflict, &found) {
			message = cmp.Or(message, found)
		}
	}
	var record *storage.RecordConflictError
	if errors.As(first, &record) && message != nil {
		record.Message = message.Existing
	}
	return writes, first
}

// lockedBy reads the item's row again where it seems to be missing: the lock that the first statement waited for may have been of
// an incarnation that the next one has replaced, and only a later statement sees that one.
func lockedBy(ctx context.Context, tx pgx.Tx, i item) (conflict error, write func(context.Context) error, err error) {
	conflict, write, err = i.read(ctx, tx)
	var record *storage.RecordConflictError
	if err == nil && errors.As(conflict, &record) && record.Existing == nil {
		return i.read(ctx, tx)
	}
	return conflict, write, err
}

// byName are the positions of what has names, in the order of the names.
func byName[T any](all []T, name func(T) string) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(name(all[i]), name(all[j])) })
	return order
}

// write makes one conditional write, which has no token: a caller that gets no reply sends it again and finds its revision.
func (s *Store) write(ctx context.Context, doing string, i item, err error) error {
	if err != nil {
		return wrapped(doing, err)
	}
	return wrapped(doing, s.send(ctx, transaction{items: []item{i}}))
}
