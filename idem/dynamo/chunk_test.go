package dynamo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A large response lies in chunks that are written with its record, by the incarnation's name, and outlive it.
func TestALargeResponseLiesInChunks(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{ChunkBytes: 64 << 10, ResponseBytesMax: 1<<20 + 1<<10})
	done := completed(reserved(t), random(1<<20))
	must(t, store.Insert(t.Context(), done, base))
	record := stored(t, client, tables.Idempotency, "pk", string(done.Key))
	if _, inline := record["rb"]; inline || record["rc"].(*types.AttributeValueMemberN).Value != "16" {
		t.Errorf("the record holds %v chunks, body inline %v", record["rc"], inline)
	}
	ttl := numberOf(t, record["ttl"])
	for n := range 16 {
		chunk := stored(t, client, tables.Idempotency, "pk", fmt.Sprintf("%s#%d", done.OperationID, n))
		if chunk == nil {
			t.Fatalf("chunk %d is missing", n)
		}
		if late := numberOf(t, chunk["ttl"]) - ttl; late <= 0 {
			t.Errorf("chunk %d goes %d s after its record", n, late)
		}
	}
	if back := got(t, store, done.Key); !bytes.Equal(back.Response.Body, done.Response.Body) {
		t.Error("the body differs")
	}
}

func numberOf(t *testing.T, v types.AttributeValue) int {
	t.Helper()
	n, err := strconv.Atoi(v.(*types.AttributeValueMemberN).Value)
	must(t, err)
	return n
}

// A chunk that is gone, damaged, or of another writing is never replayed as the answer.
func TestAnIncompleteResponseIsNeverReplayed(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{ChunkBytes: 64 << 10, ResponseBytesMax: 1<<20 + 1<<10})
	other := completed(reserved(t), random(256<<10))
	must(t, store.Insert(t.Context(), other, base))
	put := func(t *testing.T, item map[string]types.AttributeValue) {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Idempotency, Item: item})
		must(t, err)
	}
	for name, damage := range map[string]func(t *testing.T, key string, chunk map[string]types.AttributeValue){
		"gone": func(t *testing.T, key string, _ map[string]types.AttributeValue) {
			_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tables.Idempotency, Key: rowKey(key)})
			must(t, err)
		},
		"of another response": func(t *testing.T, key string, _ map[string]types.AttributeValue) {
			foreign := stored(t, client, tables.Idempotency, "pk", string(other.OperationID)+"#1")
			foreign["pk"] = &types.AttributeValueMemberS{Value: key}
			put(t, foreign)
		},
		"changed": func(t *testing.T, _ string, chunk map[string]types.AttributeValue) {
			chunk["rb"].(*types.AttributeValueMemberB).Value[7] ^= 1
			put(t, chunk)
		},
		"one of more": func(t *testing.T, _ string, chunk map[string]types.AttributeValue) {
			chunk["rc"] = number("5")
			put(t, chunk)
		},
		"of another type": func(t *testing.T, _ string, chunk map[string]types.AttributeValue) {
			chunk["rb"] = number("5")
			put(t, chunk)
		},
	} {
		t.Run(name, func(t *testing.T) {
			done := completed(reserved(t), random(256<<10))
			must(t, store.Insert(t.Context(), done, base))
			key := string(done.OperationID) + "#1"
			damage(t, key, stored(t, client, tables.Idempotency, "pk", key))
			r, err := store.Get(t.Context(), done.Key)
			must(t, err)
			if r.Chunks != 4 {
				t.Fatalf("the record has %d chunks, want 4", r.Chunks)
			}
			loaded, err := store.LoadResponse(t.Context(), *r)
			if !errors.Is(err, storage.ErrChunksMissing) || len(loaded.Response.Body) != 0 {
				t.Errorf("got %d bytes, %v, want ErrChunksMissing", len(loaded.Response.Body), err)
			}
		})
	}
}

// A batch that is answered in part is a success to the SDK: what is left is read on its own, or it would
// be missing without an error.
func TestUnprocessedKeysAreRead(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	tables := createTables(t, client)
	store := newStore(t, client, tables, dynamo.Config{ChunkBytes: 64 << 10, ResponseBytesMax: 1<<20 + 1<<10})
	done := completed(reserved(t), random(256<<10))
	must(t, store.Insert(t.Context(), done, base))
	keys := make([]string, 4)
	for n := range keys {
		keys[n] = fmt.Sprintf(`{"pk":{"S":"%s#%d"}}`, done.OperationID, n)
	}
	none := fmt.Sprintf(`{"Responses":{},"UnprocessedKeys":{%q:{"Keys":[%s],"ConsistentRead":true}}}`, tables.Idempotency, strings.Join(keys, ","))
	faults.Inject("BatchGetItem", func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(none))}, nil
	})
	if back := got(t, store, done.Key); !bytes.Equal(back.Response.Body, done.Response.Body) {
		t.Error("the body differs")
	}
	if n := len(faults.Bodies("GetItem")); n != 1+4 {
		t.Errorf("%d items were read on their own, want the record and 4 chunks", n)
	}
}

// A 202 is never chunked: the final answer's chunks would overwrite it under a reader, and nothing would remove them.
func TestAPendingResponseLiesInTheRecord(t *testing.T) {
	store, _, _ := onDynoxide(t, dynamo.Config{})
	r := pending(reserved(t))
	r.Response.Body = random(64 << 10)
	must(t, store.Insert(t.Context(), r, base))
	if back, err := store.Get(t.Context(), r.Key); err != nil || back.Chunks != 0 || !bytes.Equal(back.Response.Body, r.Response.Body) {
		t.Errorf("got %v, %v", back, err)
	}
	r = pending(reserved(t))
	r.Response.Body = random(500 << 10)
	if err := store.Insert(t.Context(), r, base); !errors.Is(err, storage.ErrResponseTooLarge) {
		t.Errorf("got %v, want ErrResponseTooLarge", err)
	}
}
