package dynamo

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Shards implements outbox.Store.
func (s *Store) Shards() int { return s.cfg.Shards }

// queueKey is the sparse index's partition key of an item.
func (s *Store) queueKey(queue, id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	return shardKey(queue, int(h.Sum32()%uint32(s.cfg.Shards)))
}

func shardKey(queue string, shard int) string { return queue + "#" + strconv.Itoa(shard) }

// QueuedMessages implements outbox.Store. It refuses a shard that does not exist, a limit below 1 and a cursor that it
// did not return.
func (s *Store) QueuedMessages(
	ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string,
) (refs []idem.MessageRef, next string, err error) {
	doing := fmt.Sprintf("dynamo: messages queued in %s", shardKey(queue, shard))
	if shard < 0 || shard >= s.cfg.Shards || limit < 1 || limit > math.MaxInt32 {
		return nil, "", fmt.Errorf("%s: shard %d of %d, limit %d", doing, shard, s.cfg.Shards, limit)
	}
	partition := item{schema.Queue: stringValue(shardKey(queue, shard))}
	start, err := parseCursor(cursor, partition)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", doing, err)
	}
	e := newExpression()
	condition := all(e.is(schema.Queue, partition), e.name(schema.QueueAt)+" <= "+e.value(numberValue(until.UnixMilli())))
	c := s.begin("Query")
	out, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.cfg.OutboxTable, IndexName: aws.String(schema.Outbox().Index.Name), KeyConditionExpression: condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, Limit: aws.Int32(int32(limit)),
		ExclusiveStartKey: start, ReturnConsumedCapacity: s.capacityMode(),
	}, c.watch)
	if err != nil {
		c.meter(err, true)
		return nil, "", fmt.Errorf("%s: %w", doing, err)
	}
	c.meter(nil, true, consumed(out.ConsumedCapacity)...)
	for _, it := range out.Items {
		ref, err := decodeRef(it)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", doing, err)
		}
		refs = append(refs, ref)
	}
	return refs, formatCursor(out.LastEvaluatedKey), nil
}

func decodeRef(it item) (idem.MessageRef, error) {
	r := &reader{item: it}
	ref := idem.MessageRef{
		ID:     idem.MessageID(r.text(schema.MessageID)),
		Tenant: r.text(schema.Tenant),
		Topic:  r.text(schema.Topic),
		At:     r.queueAt(),
	}
	return ref, r.err
}

// A cursor holds what of the last key the query doesn't say: time and id. It is opaque so that it may change.
func formatCursor(last item) string {
	if len(last) == 0 {
		return ""
	}
	r := &reader{item: last}
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(r.number(schema.QueueAt), 10) + " " + r.text(schema.MessageID)))
}

func parseCursor(cursor string, partition item) (item, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	at, id, ok := strings.Cut(string(raw), " ")
	ms, numberErr := strconv.ParseInt(at, 10, 64)
	if err != nil || numberErr != nil || !ok || id == "" {
		return nil, errors.New("a cursor that no page returned")
	}
	return item{
		schema.Queue:     partition[schema.Queue],
		schema.QueueAt:   numberValue(ms),
		schema.MessageID: stringValue(id),
	}, nil
}
