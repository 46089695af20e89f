package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/idem-go/idem-aws/idem/codec"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Store keeps records and messages in DynamoDB. It implements storage.Store and outbox.Store, remembers
// nothing but how many shards there are, and is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	// protocol is the client's, which makes requests of inputs.
	protocol smithyhttp.ClientProtocol
	cfg      Config
	codec    *codec.Codec
	// kept is the number of shards that the tables keep, where it was read: see CheckShards.
	kept *atomic.Int64
}

// Keys of the two tables.
const (
	recordKey  = schema.RecordKey
	messageKey = schema.MessageID
)

// ResponseBytesMax implements storage.ResponseBound.
func (s *Store) ResponseBytesMax() int { return s.cfg.ResponseBytesMax }

// Get implements storage.Store.
func (s *Store) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	it, err := s.getItem(ctx, s.cfg.IdempotencyTable, item{recordKey: stringValue(string(key))})
	if err != nil {
		return nil, fmt.Errorf("dynamo: get %s: %w", key, err)
	}
	if it == nil {
		return nil, nil
	}
	record, err := s.decodeRecord(it)
	if err != nil {
		return nil, fmt.Errorf("dynamo: get %s: %w", key, err)
	}
	return record, nil
}

// getItem reads an item strongly; nil when there is none.
func (s *Store) getItem(ctx context.Context, table string, key item) (item, error) {
	c := s.begin("GetItem")
	ctx = c.trace(ctx)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: key, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: s.capacityMode(),
	}, c.reads)
	if err != nil {
		c.over(ctx, err, true)
		return nil, err
	}
	c.over(ctx, nil, true, consumed(out.ConsumedCapacity)...)
	return out.Item, nil
}

// Insert implements storage.Store: one conditional PutItem, or a transaction where the response needs chunks.
func (s *Store) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	return s.write(ctx, "insert "+string(r.Key), r, storage.Fence{FreeAt: now})
}

// Update implements storage.Store, as Insert does.
func (s *Store) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.write(ctx, "update "+string(r.Key), r, fence)
}

// write replaces the whole record under a fence.
func (s *Store) write(ctx context.Context, doing string, r storage.Record, fence storage.Fence) error {
	c, err := fenced(r.Key, fence)
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	it, chunks, err := s.encodeRecord(r)
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	if len(chunks) == 0 {
		return s.putItem(ctx, doing, s.cfg.IdempotencyTable, it, c, s.recordConflict)
	}
	t := &transaction{}
	t.putRecord(s, it, c)
	t.putChunks(s, chunks)
	if err := t.validate(); err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	return s.send(ctx, doing, t, s.input(t)) // under a token of the SDK's: sent again it is judged again
}

// putItem is one conditional write; lost makes the error of a failed condition from what is stored.
func (s *Store) putItem(ctx context.Context, doing, table string, it item, c condition, lost func(stored item) error) error {
	watched := s.begin("PutItem")
	ctx = watched.trace(ctx)
	out, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &table, Item: it, ConditionExpression: c.text,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              s.capacityMode(),
	}, watched.writes)
	if err == nil {
		watched.over(ctx, nil, false, consumed(out.ConsumedCapacity)...)
		return nil
	}
	return watched.lost(ctx, doing, err, lost)
}

// lost is the error of a conditional write of one item; conflict makes it of what is stored where the condition failed.
func (c *call) lost(ctx context.Context, doing string, err error, conflict func(stored item) error) error {
	c.over(ctx, err, false)
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return fmt.Errorf("dynamo: %s: %w", doing, conflict(failed.Item))
	}
	return fmt.Errorf("dynamo: %s: %w", doing, c.translate(err))
}

func consumed(capacity *types.ConsumedCapacity) []types.ConsumedCapacity {
	if capacity == nil {
		return nil
	}
	return []types.ConsumedCapacity{*capacity}
}
