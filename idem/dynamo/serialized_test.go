package dynamo_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A transaction that is sent again sends identical bytes, though the SDK writes maps in their random order, and though
// the caller has changed what it prepared the transaction from.
func TestATransactionSentAgainSendsIdenticalBytes(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 3)
	tables := createTables(t, client)
	store := newStore(t, client, tables, dynamo.Config{})
	row := rowKey("frozen")
	for i := range 20 {
		row[fmt.Sprint("attribute", i)] = number("1")
	}
	r := reserved(t)
	send, err := store.Prepare(storage.Commit{
		Record: completed(r, random(2<<10)), Now: base, Token: string(owner(t)), Messages: []storage.Message{message(r, 1)},
		Writes: []storage.Write{dynamo.Put(types.Put{TableName: &tables.rows, Item: row})},
	})
	must(t, err)
	faults.Inject("TransactWriteItems", wirefault.LoseReply, wirefault.LoseReply, wirefault.LoseReply)
	for range 3 {
		if got := meaningOf(send(t.Context())); got != unknown {
			t.Fatalf("a sending without a reply means %q", got)
		}
	}
	row["attribute0"] = number("2")
	for range 3 {
		must(t, send(t.Context()))
	}
	bodies := faults.Bodies("TransactWriteItems")
	if len(bodies) != 6 {
		t.Fatalf("%d requests were sent, want 6", len(bodies))
	}
	for i, body := range bodies {
		if !bytes.Equal(body, bodies[0]) {
			t.Errorf("request %d differs from the first:\n%s\n%s", i, body, bodies[0])
		}
	}
	if n := stored(t, client, tables.rows, "pk", "frozen")["attribute0"].(*types.AttributeValueMemberN).Value; n != "1" {
		t.Errorf("the row has %s, want what it had when the transaction was prepared", n)
	}
}

// A prepared transaction says what it is to DynamoDB: the target, its token, and nothing that the SDK adds.
func TestAFrozenTransactionCarriesItsToken(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	store := newStore(t, client, createTables(t, client), dynamo.Config{})
	r, m := deferred(t, store)
	s := settlement(t, r, m, []byte("{}"))
	send, err := store.PrepareSettle(s)
	must(t, err)
	faults.Inject("TransactWriteItems")
	must(t, send(t.Context()))
	want := `"ClientRequestToken":"` + s.Token + `"`
	if bodies := faults.Bodies("TransactWriteItems"); len(bodies) != 1 || !bytes.Contains(bodies[0], []byte(want)) {
		t.Errorf("sent %s, want one request with %s", bodies, want)
	}
}

func TestATokenHasItsLength(t *testing.T) {
	store, _, _ := onDynoxide(t, dynamo.Config{})
	for _, token := range []string{"", "0123456789012345678901234567890123456"} {
		if _, err := store.Prepare(storage.Commit{Record: completed(reserved(t), nil), Now: base, Token: token}); err == nil {
			t.Errorf("a commit with the token %q was prepared", token)
		}
		r, m := deferred(t, store)
		s := settlement(t, r, m, nil)
		s.Token = token
		if _, err := store.PrepareSettle(s); err == nil {
			t.Errorf("a settlement with the token %q was prepared", token)
		}
	}
}
