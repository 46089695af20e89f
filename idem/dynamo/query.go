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
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Shards implements outbox.Store: it is Config.Shards, also where [Store.CheckShards] has read that rows lie in more.
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
) ([]storage.MessageRef, string, error) {
	in := listing{"messages", s.cfg.OutboxTable, schema.Outbox(), shardKey(queue, shard)}
	return queued(ctx, s, in, shard, until, limit, cursor, func(r *reader) storage.MessageRef {
		return storage.MessageRef{
			ID: storage.MessageID(r.text(schema.MessageID)), Tenant: r.text(schema.Tenant), Topic: r.text(schema.Topic), At: r.queueAt(),
		}
	})
}

// QueuedRecords implements outbox.Store. It refuses what QueuedMessages does.
func (s *Store) QueuedRecords(
	ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string,
) ([]storage.RecordRef, string, error) {
	in := listing{"records", s.cfg.IdempotencyTable, schema.Idempotency(), shardKey(queue, shard)}
	return queued(ctx, s, in, shard, until, limit, cursor, func(r *reader) storage.RecordRef {
		key := storage.RecordKey(r.text(schema.RecordKey))
		return storage.RecordRef{Key: key, OperationID: r.operation(key), Tenant: r.text(schema.Tenant), At: r.queueAt()}
	})
}

// listing is the partition of a table's sparse index that is listed.
type listing struct {
	what, table string
	shape       schema.Table
	partition   string
}

// queued lists one page of a partition, oldest first, and decodes what the index has of each item.
func queued[Ref any](
	ctx context.Context, s *Store, in listing, shard int, until time.Time, limit int, cursor string, decode func(*reader) Ref,
) (refs []Ref, next string, err error) {
	doing := fmt.Sprintf("dynamo: %s queued in %s", in.what, in.partition)
	if shard < 0 || shard >= s.listedShards() || limit < 1 || limit > math.MaxInt32 {
		return nil, "", fmt.Errorf("%s: shard %d of %d, limit %d", doing, shard, s.listedShards(), limit)
	}
	partition := item{schema.Queue: stringValue(in.partition)}
	start, err := in.parseCursor(cursor)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", doing, err)
	}
	e := newExpression()
	condition := all(e.is(schema.Queue, partition), e.name(schema.QueueAt)+" <= "+e.value(numberValue(until.UnixMilli())))
	c := s.begin("Query")
	ctx = c.trace(ctx)
	out, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &in.table, IndexName: aws.String(in.shape.Index.Name), KeyConditionExpression: condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, Limit: aws.Int32(int32(limit)),
		ExclusiveStartKey: start, ReturnConsumedCapacity: s.capacityMode(),
	}, c.reads)
	if err != nil {
		c.over(ctx, err, true)
		return nil, "", fmt.Errorf("%s: %w", doing, err)
	}
	c.over(ctx, nil, true, consumed(out.ConsumedCapacity)...)
	for _, it := range out.Items { // what can't be read here is judged by its row: it must not hide what is listed after it
		refs = append(refs, decode(&reader{item: it, lenient: true}))
	}
	return refs, in.formatCursor(out.LastEvaluatedKey), nil
}

// A cursor holds what of the last key the query doesn't say: time and id. It is opaque so that it may change.
func (in listing) formatCursor(last item) string {
	if len(last) == 0 {
		return ""
	}
	r := &reader{item: last}
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(r.number(schema.QueueAt), 10) + " " + r.text(in.shape.Key)))
}

func (in listing) parseCursor(cursor string) (item, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	at, id, ok := strings.Cut(string(raw), " ")
	ms, numberErr := strconv.ParseInt(at, 10, 64)
	if err != nil || numberErr != nil || !ok || id == "" {
		return nil, errors.New("the cursor was not returned with a page")
	}
	return item{
		schema.Queue:   stringValue(in.partition),
		schema.QueueAt: numberValue(ms),
		in.shape.Key:   stringValue(id),
	}, nil
}
