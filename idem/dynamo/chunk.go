package dynamo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// encodedBody is a body as it is stored.
type encodedBody struct {
	bytes    []byte
	encoding string
}

func (b encodedBody) chunks(size int) int { return (len(b.bytes) + size - 1) / size }

// chunkOutlives is how much longer than its record a chunk may be removed: native TTL keeps no order between items, and
// a record must not be there without its chunks.
const chunkOutlives = time.Hour

// chunkKey names a chunk by the incarnation, so that a later one never tears the body of an earlier: its chunks stay readable. No record's key has
// a "#" in it, so no look-up of a record meets a chunk.
func chunkKey(id storage.OperationID, n int) string { return string(id) + "#" + strconv.Itoa(n) }

// chunkItems splits a body over items. Each carries the digest of the whole, and so does the record: what is read together was
// written together, and with the record. The key alone does not tell: a cache-bust keeps the operation id, and a later execution
// writes over the chunks.
func (s *Store) chunkItems(r storage.Record, body encodedBody) []item {
	digest := sha256.Sum256(body.bytes)
	removeAfter, may := r.RemoveAfter()
	count := int64(body.chunks(s.cfg.ChunkBytes))
	var items []item
	for piece := range slices.Chunk(body.bytes, s.cfg.ChunkBytes) {
		w := &writer{item: item{}}
		w.name(schema.RecordKey, chunkKey(r.OperationID, len(items)))
		w.bytes(schema.ResponseBody, piece)
		w.name(schema.ResponseEncoding, body.encoding)
		w.number(schema.ResponseChunks, count)
		w.bytes(schema.ChunkDigest, digest[:])
		w.number(schema.SchemaVersion, storage.SchemaVersion)
		w.expiry(schema.TTL, removeAfter.Add(chunkOutlives), may)
		items = append(items, w.item)
	}
	return items
}

// LoadResponse implements storage.Store.
func (s *Store) LoadResponse(ctx context.Context, r storage.Record) (storage.Record, error) {
	if r.Sealed {
		return r, fmt.Errorf("dynamo: load response %s: it is encrypted: read it through a seal.Store", r.Key)
	}
	if r.Chunks == 0 {
		return r, nil
	}
	items, err := s.readChunks(ctx, r)
	if err != nil {
		return r, fmt.Errorf("dynamo: load response %s: %w", r.Key, err)
	}
	body, err := s.joinChunks(items, r)
	if err != nil {
		return r, fmt.Errorf("dynamo: load response %s: %w: %w", r.Key, storage.ErrChunksMissing, err)
	}
	r.Response.Body = body
	return r, nil
}

// readChunks reads all chunks strongly, by key. What a batch left unprocessed is read one by one: the SDK backs off on a
// throttled GetItem, while a batch that is answered in part counts as a success.
func (s *Store) readChunks(ctx context.Context, r storage.Record) (map[string]item, error) {
	if r.Chunks < 0 || r.Chunks > batchGetItemsMax {
		return nil, fmt.Errorf("a response in %d chunks", r.Chunks)
	}
	keys := make([]item, r.Chunks)
	for n := range keys {
		keys[n] = item{schema.RecordKey: stringValue(chunkKey(r.OperationID, n))}
	}
	c := s.begin("BatchGetItem")
	ctx = c.trace(ctx)
	out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{s.cfg.IdempotencyTable: {Keys: keys, ConsistentRead: aws.Bool(true)}},
		ReturnConsumedCapacity: s.capacityMode(),
	}, c.reads)
	if err != nil {
		c.over(ctx, err, true)
		return nil, err
	}
	c.over(ctx, nil, true, out.ConsumedCapacity...)
	found := map[string]item{}
	for _, items := range out.Responses {
		for _, it := range items {
			found[keyOf(it)] = it
		}
	}
	for _, left := range out.UnprocessedKeys {
		for _, key := range left.Keys {
			it, err := s.getItem(ctx, s.cfg.IdempotencyTable, key)
			if err != nil {
				return nil, err
			}
			if it != nil {
				found[keyOf(it)] = it
			}
		}
	}
	return found, nil
}

func keyOf(it item) string { return (&reader{item: it}).text(schema.RecordKey) }

// joinChunks puts a body together and checks that it is the whole of what was written.
func (s *Store) joinChunks(items map[string]item, r storage.Record) ([]byte, error) {
	var joined bytes.Buffer
	var encoding string
	var digest []byte
	for n := range r.Chunks {
		key := chunkKey(r.OperationID, n)
		it, ok := items[key]
		if !ok {
			return nil, fmt.Errorf("chunk %d of %d is gone", n, r.Chunks)
		}
		chunk := &reader{item: it}
		if count := chunk.count(schema.ResponseChunks, chunksMax); count != r.Chunks {
			return nil, fmt.Errorf("chunk %d is one of %d, not of %d", n, count, r.Chunks)
		}
		joined.Write(chunk.bytes(schema.ResponseBody))
		written := chunk.bytes(schema.ChunkDigest)
		encoding = chunk.text(schema.ResponseEncoding)
		if chunk.err != nil {
			return nil, fmt.Errorf("chunk %d: %w", n, chunk.err)
		}
		if n > 0 && !bytes.Equal(written, digest) {
			return nil, fmt.Errorf("chunk %d was not written with those before it", n)
		}
		digest = written
	}
	switch sum := sha256.Sum256(joined.Bytes()); {
	case !bytes.Equal(sum[:], digest):
		return nil, fmt.Errorf("the %d chunks were not written together", r.Chunks)
	case r.ChunksDigest != string(digest):
		return nil, fmt.Errorf("the %d chunks were written with another answer", r.Chunks)
	}
	return s.decode(joined.Bytes(), encoding)
}
