package function_test

import (
	"context"
	"fmt"
	"log"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/memstore"
)

type order struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

func chargeOnce(_ context.Context, tx *idem.Tx, o order) error {
	tx.Write(charged(o)) // on DynamoDB a dynamo.Put
	return nil
}

func chargeBatch(engine *idem.Engine) (awslambda.Handler, error) {
	charges, err := function.New(engine,
		idem.Operation{Name: "orders.charge", Kind: idem.KindAtomic, Policy: function.QueuePolicy()},
		function.Config{Tenant: "shop", Key: function.JSONPointer("/id")})
	if err != nil {
		return nil, err
	}
	return awslambda.SQS(function.Each(charges, awslambda.Body, chargeOnce), awslambda.Config{}), nil
}

// charged is a row for each order.
func charged(o order) idem.Write {
	return memstore.Write{Key: o.ID, Apply: func([]byte) []byte { return fmt.Append(nil, o.Amount) }}
}

// A queue's messages as Go values, each charged once, with partial failures: lambda.Start(handler) in main, and
// ReportBatchItemFailures on the event source mapping. All of it is order, chargeOnce and chargeBatch.
func ExampleEach() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := chargeBatch(engine)
	if err != nil {
		log.Fatal(err)
	}
	report, err := handler.Invoke(context.Background(), []byte(`{"Records": [
		{"messageId": "m1", "eventSource": "aws:sqs", "body": "{\"id\": \"a\", \"amount\": 500}"},
		{"messageId": "m2", "eventSource": "aws:sqs", "body": "{\"id\": \"a\", \"amount\": 500}"},
		{"messageId": "m3", "eventSource": "aws:sqs", "body": "{\"id\": \"b\", \"amount\": \"much\"}"},
		{"messageId": "m4", "eventSource": "aws:sqs", "body": "{\"id\": \"a\", \"amount\": 900}"}]}`))
	fmt.Printf("%s %v\n", report, err)
	fmt.Printf("charged %s\n", store.Row("a"))
	// Output:
	// {"batchItemFailures":[{"itemIdentifier":"m3"},{"itemIdentifier":"m4"}]} <nil>
	// charged 500
}
