package dynamo_test

import (
	"crypto/rand"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/storage"
)

// base is when every test begins: after 2100, so that no native TTL removes anything.
var base = time.Date(2101, 2, 3, 4, 5, 6, int(789*time.Millisecond), time.UTC)

var mint = storage.IDGenerator{Random: rand.Reader}

func owner(t *testing.T) storage.Owner {
	t.Helper()
	owner, err := mint.Owner()
	if err != nil {
		t.Fatal(err)
	}
	return owner
}

func revision(t *testing.T) storage.Revision {
	t.Helper()
	revision, err := mint.Revision()
	must(t, err)
	return revision
}

// reserved is a record as a reserve inserts it, under a key of its own.
func reserved(t *testing.T) storage.Record {
	t.Helper()
	key := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: string(owner(t))}.RecordKey()
	id, err := mint.OperationID(key)
	if err != nil {
		t.Fatal(err)
	}
	return storage.Record{
		Key: key, State: storage.StateInProgress, OperationID: id, Epoch: 1, Owner: owner(t), Revision: revision(t), LeaseUntil: base.Add(time.Minute),
		Tenant: "tenant", Operation: "orders.create", Kind: storage.KindAtomic,
		Fingerprint: canonical.Fingerprint{Version: 1, Sum: sha256.Sum256([]byte(key))},
		CreatedAt:   base, Retention: 24 * time.Hour, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
}

// renewed is the record with a longer lease.
func renewed(r storage.Record) storage.Record {
	r.Revision, r.LeaseUntil = r.Revision+"r", r.LeaseUntil.Add(time.Minute)
	return r
}

// completed is the record with its final answer.
func completed(r storage.Record, body []byte) storage.Record {
	r.State, r.LeaseUntil, r.DoneAt, r.ExpiresAt = storage.StateCompleted, time.Time{}, base, base.Add(24*time.Hour)
	r.Revision, r.FreeAt = "-"+r.Revision[1:], r.ExpiresAt
	r.Response = storage.Response{Status: 201, Header: []storage.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}
	return r
}

// pending is the record of a deferred operation, with its 202.
func pending(r storage.Record) storage.Record {
	r.Kind, r.State, r.LeaseUntil = storage.KindDeferred, storage.StatePending, time.Time{}
	r.Response = storage.Response{Status: 202, Body: []byte(`{"state":"pending"}`)}
	return r
}

// message is the n-th of the record's chain.
func message(r storage.Record, n int) storage.Message {
	return storage.Message{
		Revision: "inserted", ID: r.OperationID.Message(n), Index: n, OperationID: r.OperationID, RecordKey: r.Key, Tenant: r.Tenant,
		Topic: "orders.charge", Payload: []byte(`{"amount":1}`), State: storage.MessagePending, CreatedAt: base,
		NextAttemptAt: base, SweepAt: base.Add(15 * time.Second), Retention: r.Retention, SchemaVersion: storage.SchemaVersion,
	}
}

// settlement ends the message and its pending record.
func settlement(t *testing.T, r storage.Record, m storage.Message, body []byte) storage.Settlement {
	t.Helper()
	done := completed(r, body)
	return storage.Settlement{
		Message: storage.MessageEnd{ID: m.ID, State: storage.MessageDelivered, DoneAt: base, Revision: "settled", Reference: "ch_1", LastOutcome: "delivered", RemoveAt: base.Add(48 * time.Hour)},
		Fence:   storage.MessageFence{Open: true},
		Record: &storage.RecordEnd{
			Key: r.Key, OperationID: r.OperationID, State: done.State, Revision: done.Revision, Response: done.Response,
			DoneAt: done.DoneAt, ExpiresAt: done.ExpiresAt, FreeAt: done.FreeAt,
		},
		Token: string(owner(t)),
	}
}

func random(size int) []byte {
	body := make([]byte, size)
	rand.Read(body)
	return body
}

// deferred commits a pending record and its first message.
func deferred(t *testing.T, store *dynamo.Store) (storage.Record, storage.Message) {
	t.Helper()
	r := pending(reserved(t))
	m := message(r, 1)
	send, err := store.Prepare(storage.Commit{Record: r, Now: base, Token: string(owner(t)), Messages: []storage.Message{m}})
	must(t, err)
	must(t, send(t.Context()))
	return r, m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got reads a record, which must be there, with its body.
func got(t *testing.T, store *dynamo.Store, key storage.RecordKey) storage.Record {
	t.Helper()
	r, err := store.Get(t.Context(), key)
	must(t, err)
	if r == nil {
		t.Fatalf("there is no record %s", key)
	}
	loaded, err := store.LoadResponse(t.Context(), *r)
	must(t, err)
	return loaded
}

// stored reads an item as it lies in the table; nil where there is none.
func stored(t *testing.T, client *dynamodb.Client, table, key, value string) map[string]types.AttributeValue {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{key: &types.AttributeValueMemberS{Value: value}}, ConsistentRead: aws.Bool(true),
	})
	must(t, err)
	return out.Item
}

// onDynoxide makes a store with its tables on the emulator that starts in milliseconds.
func onDynoxide(t *testing.T, cfg dynamo.Config) (*dynamo.Store, *dynamodb.Client, tables) {
	t.Helper()
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]))
	tables := createTables(t, client)
	return newStore(t, client, tables, cfg), client, tables
}
