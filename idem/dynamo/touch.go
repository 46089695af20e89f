package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Renew implements storage.Store: one conditional UpdateItem. No attribute of it is in the index. Native TTL follows the lease
// of a record that it may remove.
func (s *Store) Renew(ctx context.Context, r storage.Record, fence storage.Fence) error {
	w := &writer{item: item{}}
	w.instant(schema.LeaseUntil, r.LeaseUntil)
	w.revision(schema.Revision, r.Revision)
	attributes := []string{schema.LeaseUntil, schema.Revision}
	if removeAfter, may := r.RemoveAfter(); may {
		w.expiry(schema.TTL, removeAfter, may)
		attributes = append(attributes, schema.TTL)
	}
	return s.touch(ctx, "renew "+string(r.Key), r.Key, w, attributes, fence)
}

// Postpone implements storage.Store: one conditional UpdateItem, which moves the record within the index.
func (s *Store) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	if r.LookAt.IsZero() {
		return fmt.Errorf("dynamo: postpone %s: the time must not be zero", r.Key)
	}
	w := &writer{item: item{}}
	w.lookAt(r)
	return s.touch(ctx, "postpone "+string(r.Key), r.Key, w, []string{schema.QueueAt}, fence)
}

// touch gives attributes of the stored record the values that they have in the writer's item.
func (s *Store) touch(ctx context.Context, doing string, key storage.RecordKey, w *writer, attributes []string, fence storage.Fence) error {
	c, err := fencedStored(key, fence)
	if err == nil {
		err = w.err
	}
	if err != nil {
		return fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	update := c.assign(attributes, w.item)
	return s.updateItem(ctx, doing, s.cfg.IdempotencyTable, item{recordKey: stringValue(string(key))}, update, c, s.recordConflict)
}

// updateItem makes one UpdateItem, conditional where c has a text; lost makes its error of what is stored where the condition failed.
func (s *Store) updateItem(ctx context.Context, doing, table string, key item, update string, c condition, lost func(stored item) error) error {
	watched := s.begin("UpdateItem")
	ctx = watched.trace(ctx)
	in := &dynamodb.UpdateItemInput{
		TableName: &table, Key: key, UpdateExpression: &update, ConditionExpression: c.text,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values, ReturnConsumedCapacity: s.capacityMode(),
	}
	if c.text != nil {
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	out, err := s.client.UpdateItem(ctx, in, watched.writes)
	if err == nil {
		watched.over(ctx, nil, false, consumed(out.ConsumedCapacity)...)
		return nil
	}
	return watched.lost(ctx, doing, err, lost)
}
