package memstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	itemsMax      = 100 // TransactWriteItems
	tokenBytesMax = 36  // ClientRequestToken
	// tokenWindow is how long a token is remembered after its transaction.
	tokenWindow = 10 * time.Minute
)

// errTokenReused is DynamoDB's IdempotentParameterMismatch.
var errTokenReused = errors.New("memstore: a client request token was used again with other content")

// sent is a transaction that happened. Tokens are forgotten when they come back too late, not before: a store in memory
// does not live long.
type sent struct {
	content [sha256.Size]byte
	at      time.Time
}

// transaction is frozen: nothing of it is shared with its caller.
type transaction struct {
	// items are judged in order; business writes stand behind the records and messages.
	items   []item
	token   string
	content [sha256.Size]byte
}

// Prepare implements storage.Store. It refuses, besides, more than 100 items, an item written twice, a token that is empty or
// longer than 36 characters, and a write that can't be translated. The content that a token stands for includes of a
// business write only its key: functions can't be compared.
func (s *Store) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	fence := storage.Fence{FreeAt: c.Now}
	if c.Fence != nil {
		fence = copyFence(*c.Fence)
	}
	items := []item{putRecord{Record: copyRecord(c.Record), Fence: fence}}
	for _, m := range c.Messages {
		items = append(items, putMessage{Message: copyMessage(m)})
	}
	return s.prepare(items, c.Writes, c.Token)
}

// PrepareSettle implements outbox.Store. It refuses what Prepare refuses.
func (s *Store) PrepareSettle(settlement storage.Settlement) (send func(context.Context) error, err error) {
	fence := copyMessageFence(settlement.Fence)
	items := []item{endMessage{End: copyMessageEnd(settlement.Message), Fence: fence}}
	if settlement.Replace != nil {
		items = []item{putMessage{Message: copyMessage(*settlement.Replace), Fence: &fence}}
	}
	if settlement.Record != nil {
		items = append(items, endRecord{End: copyRecordEnd(*settlement.Record)})
	}
	if settlement.Check != nil {
		items = append(items, checkRecord{Check: *settlement.Check})
	}
	if settlement.Next != nil {
		items = append(items, putMessage{Message: copyMessage(*settlement.Next)})
	}
	for _, id := range settlement.Earlier {
		items = append(items, removeMessage{ID: id, At: seconds(settlement.Message.RemoveAt)})
	}
	return s.prepare(items, settlement.Writes, settlement.Token)
}

func (s *Store) prepare(items []item, writes []storage.Write, token string) (func(context.Context) error, error) {
	rows, err := s.translate(writes)
	if err != nil {
		return nil, err
	}
	items = append(items, rows...)
	if len(items) > itemsMax {
		return nil, fmt.Errorf("memstore: the transaction has %d items, at most %d fit", len(items), itemsMax)
	}
	if token == "" || len(token) > tokenBytesMax {
		return nil, fmt.Errorf("memstore: a client request token of %d characters, want 1 to %d", len(token), tokenBytesMax)
	}
	written := map[string]bool{}
	for _, i := range items {
		if written[i.id()] {
			return nil, fmt.Errorf("memstore: a transaction writes %s twice", i.id())
		}
		written[i.id()] = true
		if err := i.validate(s); err != nil {
			return nil, err
		}
	}
	content, err := json.Marshal(items)
	if err != nil {
		return nil, fmt.Errorf("memstore: encode a transaction's content: %w", err)
	}
	tx := transaction{items: items, token: token, content: sha256.Sum256(content)}
	return func(ctx context.Context) error { return s.send(ctx, tx) }, nil
}

// send makes the transaction happen, unless its token says that it has.
func (s *Store) send(ctx context.Context, tx transaction) error {
	if err := s.late(ctx); err != nil {
		return &storage.NotAskedError{Cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	if earlier, ok := s.tokens[tx.token]; ok && now.Sub(earlier.at) < tokenWindow {
		if earlier.content != tx.content {
			return errTokenReused
		}
		return nil
	}
	if err := s.judge(tx.items); err != nil {
		return err
	}
	for _, i := range tx.items {
		i.apply(s)
	}
	s.tokens[tx.token] = sent{content: tx.content, at: now}
	return nil
}

// judge evaluates every condition on the state as it is. The first record or message that fails decides, whatever
// else failed; a record's conflict tells of the first message that was in the way too. Else all writes
// that fail are named.
func (s *Store) judge(items []item) error {
	var failed []int
	var record *storage.RecordConflictError
	var message *storage.MessageConflictError
	var first error
	for _, i := range items {
		err := i.judge(s)
		switch conflict := err.(type) { //nolint:errorlint // judge wraps nothing
		case *storage.WriteFailedError:
			failed = append(failed, conflict.Indexes...)
			continue
		case *storage.RecordConflictError:
			record = conflict
		case *storage.MessageConflictError:
			message = cmp.Or(message, conflict)
		}
		first = cmp.Or(first, err)
	}
	switch {
	case first != nil && first == error(record) && message != nil: //nolint:errorlint // this very error
		record.Message = message.Existing
		return record
	case first != nil:
		return first
	case len(failed) > 0:
		return &storage.WriteFailedError{Indexes: failed}
	}
	return nil
}
