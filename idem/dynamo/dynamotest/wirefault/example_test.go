package wirefault_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
)

// t is the argument of a test, which an Example has not. So the Example is compiled only.
var t *testing.T

// A test loses the reply to the next transaction, and has the one after it throttled.
func Example() {
	faults := &wirefault.Transport{}
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	client := dynamotest.Client(url, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: faults} })
	tables, err := dynamotest.CreateTables(t.Context(), client, "payment")
	if err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
	if err != nil {
		t.Fatal(err)
	}
	faults.Inject("TransactWriteItems", wirefault.LoseReply, wirefault.Throttle("ThrottlingException"))
	t.Log("run operations on", store)
}
