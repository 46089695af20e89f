package dynamotest_test

import (
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// t is the argument of a test, which an Example has not. So the Example is compiled only.
var t *testing.T

// A test makes an engine on each real endpoint.
func Example() {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables, err := dynamotest.CreateTables(t.Context(), client, "payment")
		if err != nil {
			t.Fatal(err)
		}
		store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
		if err != nil {
			t.Fatal(err)
		}
		engine, err := idem.New(store, idem.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("register operations with", engine)
	})
}
