package dynamo

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Prepare implements storage.Store. The transaction's bytes are made here, once: what the caller does to the commit
// afterwards changes nothing. A message that exists already makes sending return an [*storage.MessageConflictError].
func (s *Store) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	doing := "commit " + string(c.Record.Key)
	t, err := s.commit(c)
	if err != nil {
		return nil, fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	return s.prepare(doing, t, c.Token)
}

func (s *Store) commit(c storage.Commit) (*transaction, error) {
	it, chunks, err := s.encodeRecord(c.Record)
	if err != nil {
		return nil, err
	}
	fence := storage.Fence{FreeAt: c.Now}
	if c.Fence != nil {
		fence = *c.Fence
	}
	guard, err := fenced(c.Record.Key, fence)
	if err != nil {
		return nil, err
	}
	t := &transaction{}
	t.putRecord(s, it, guard)
	for i, m := range c.Messages {
		if err := t.putMessage(s, m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	t.putChunks(s, chunks)
	if err := declared(c.Writes); err != nil {
		return nil, err
	}
	return t, s.resolve(t, c.Writes)
}

// kind of an item that the store writes for itself.
type kind int

const (
	isRecord kind = iota
	isMessage
	isEarlier
	isChunk
)

// String names the kind in errors.
func (k kind) String() string {
	return [...]string{"the record", "a message", "an earlier message", "a chunk"}[k]
}

// transaction is what is sent together.
type transaction struct {
	// items are the store's own, first of them the record or message it is about, then the business writes in their order.
	items []types.TransactWriteItem
	// own says what the store's own items are.
	own []kind
}

// add adds an item of the store's own.
func (t *transaction) add(is kind, item types.TransactWriteItem) {
	t.own, t.items = append(t.own, is), append(t.items, item)
}

func (t *transaction) put(is kind, put types.Put) { t.add(is, types.TransactWriteItem{Put: &put}) }

func (t *transaction) update(is kind, update types.Update) {
	t.add(is, types.TransactWriteItem{Update: &update})
}

// putRecord adds the record under a condition, and the chunks of its response under none: their keys are the
// incarnation's, which the record's condition guards.
func (t *transaction) putRecord(s *Store, it item, c condition) {
	t.put(isRecord, types.Put{
		TableName: &s.cfg.IdempotencyTable, Item: it, ConditionExpression: c.text,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
}

func (t *transaction) putChunks(s *Store, chunks []item) {
	for _, chunk := range chunks {
		t.put(isChunk, types.Put{TableName: &s.cfg.IdempotencyTable, Item: chunk})
	}
}

// putMessage inserts a message if it is absent.
func (t *transaction) putMessage(s *Store, m storage.Message) error {
	it, err := s.encodeMessage(m)
	if err != nil {
		return err
	}
	e := newExpression()
	t.put(isMessage, types.Put{
		TableName: &s.cfg.OutboxTable, Item: it, ConditionExpression: all(e.absent(messageKey)),
		ExpressionAttributeNames:            e.names,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return nil
}

// validate refuses what DynamoDB would, before anything is sent.
func (t *transaction) validate() error {
	parts := make([]part, len(t.items))
	for i, item := range t.items {
		var err error
		if parts[i], err = partOf(item); err != nil {
			return err
		}
		if n := itemBytes(parts[i].put); n > itemBytesMax {
			return fmt.Errorf("%s has %d bytes, an item has at most %d", t.label(i), n, itemBytesMax)
		}
	}
	if writes := parts[len(t.own):]; len(writes) > 1 {
		if i, j, ok := twins(writes); ok {
			return fmt.Errorf("write %d and write %d are on the same item of table %s", i, j, writes[i].table)
		}
	}
	return t.fits(parts)
}

// label names an item in errors: a business write by its position among them.
func (t *transaction) label(i int) string {
	if i < len(t.own) {
		return fmt.Sprintf("%s (item %d)", t.own[i], i)
	}
	return fmt.Sprintf("write %d", i-len(t.own))
}

// fits holds the transaction against DynamoDB's bounds. What would fit without the chunks of a response is
// [storage.ErrResponseTooLarge]. An update's item is not known, so its share is what the request says of it.
func (t *transaction) fits(parts []part) error {
	var size, chunks, chunkSize int
	for i, p := range parts {
		n := itemBytes(p.key) + itemBytes(p.put) + itemBytes(p.values)
		size += n
		if i < len(t.own) && t.own[i] == isChunk {
			chunks++
			chunkSize += n
		}
	}
	if len(parts) <= transactionItemsMax && size <= transactionBytesMax {
		return nil
	}
	err := fmt.Errorf("a transaction of %d items and %d bytes, at most %d and %d fit", len(parts), size, transactionItemsMax, transactionBytesMax)
	if len(parts)-chunks <= transactionItemsMax && size-chunkSize <= transactionBytesMax {
		return fmt.Errorf("%w: %w", storage.ErrResponseTooLarge, err)
	}
	return err
}

// prepare freezes the transaction under its token and returns what sends it.
func (s *Store) prepare(doing string, t *transaction, token string) (func(context.Context) error, error) {
	if n := utf8.RuneCountInString(token); n < 1 || n > tokenCharactersMax {
		return nil, fmt.Errorf("dynamo: %s: a client request token of %d characters, want 1 to %d", doing, n, tokenCharactersMax)
	}
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	input := s.input(t)
	input.ClientRequestToken = &token
	request, err := s.serialize(input)
	if err != nil {
		return nil, fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	return func(ctx context.Context) error { return s.send(ctx, doing, t, input, request.use) }, nil
}

func (s *Store) input(t *transaction) *dynamodb.TransactWriteItemsInput {
	return &dynamodb.TransactWriteItemsInput{TransactItems: t.items, ReturnConsumedCapacity: s.capacityMode()}
}

// send sends the transaction once and says what became of it.
func (s *Store) send(ctx context.Context, doing string, t *transaction, input *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) error {
	c := s.begin("TransactWriteItems")
	ctx = c.trace(ctx)
	out, err := s.client.TransactWriteItems(ctx, input, append(options, c.writes)...)
	if err == nil {
		c.over(ctx, nil, false, out.ConsumedCapacity...)
		return nil
	}
	c.over(ctx, err, false)
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return fmt.Errorf("dynamo: %s: %w", doing, t.cancelled(s, cancelled))
	}
	return fmt.Errorf("dynamo: %s: %w", doing, c.translate(err))
}
