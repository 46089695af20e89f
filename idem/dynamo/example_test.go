package dynamo_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A business write is one of the SDK's own types, with what its failed condition means: here, an answer that is stored
// and replayed like any result.
func ExampleUpdate() {
	debit := dynamo.Update(types.Update{
		TableName:           aws.String("accounts"),
		Key:                 map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "acct_1"}},
		UpdateExpression:    aws.String("SET balance = balance - :amount"),
		ConditionExpression: aws.String("balance >= :amount"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":amount": &types.AttributeValueMemberN{Value: "500"},
		},
	}, idem.Reject(idem.NewProblem(402, "insufficient_funds", "Insufficient funds", "The account does not hold the amount.")))

	tx := &idem.Tx{} // a handler gets it
	tx.Write(debit)
}

// placeOrder writes one row, whatever is there: without a condition a put takes no failure.
func placeOrder(_ context.Context, tx *idem.Tx) (storage.Response, error) {
	tx.Write(dynamo.Put(types.Put{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "ord_1"},
	}}))
	return idem.JSON(201, "ord_1")
}

// A unit test of a handler looks at the items that it wrote, in memory and without an emulator.
func ExampleItem() {
	store, err := memstore.New(memstore.Config{Translate: func(w storage.Write) (memstore.Write, error) {
		item, ok := dynamo.Item(w)
		if !ok || item.Put == nil {
			return memstore.Write{}, fmt.Errorf("unexpected: %T", w)
		}
		id := item.Put.Item["pk"].(*types.AttributeValueMemberS).Value
		fmt.Println("put", id, "into", *item.Put.TableName)
		return memstore.Write{Key: id, Apply: func([]byte) []byte { return []byte("stored") }}, nil
	}})
	if err != nil {
		panic(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		panic(err)
	}
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: storage.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		panic(err)
	}
	request := idem.Request{Tenant: "tenant-a", Key: "order-17", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
	for range 2 {
		result, err := orders.Do(context.Background(), request, placeOrder)
		fmt.Println(result.Outcome, err)
	}
	// Output:
	// put ord_1 into orders
	// executed <nil>
	// replayed <nil>
}

// A store needs a client and the names of its two tables; everything else has a default.
func ExampleNew() {
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1"})
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: "idempotency", OutboxTable: "outbox", Shards: 4})
	if err != nil {
		panic(err)
	}
	var _ storage.Store = store
}
