// Command sqsbatch is a Lambda function that consumes a queue: each order is charged once, however often its message is delivered.
// All that an adopter writes stands between the markers, with the imports, must and timeout beside it.
//
// The event source mapping needs ReportBatchItemFailures, and the queue a visibility time-out of at least six times the
// function's, plus the mapping's window, and a dead-letter queue: it takes what never succeeds, such as a body that is no order. A message that was charged can get there too,
// if its function died before it said so. So a key is remembered for longer than SQS keeps a message, in one queue and then in the
// other, 14 days each: function.QueuePolicy says so. Before the first start, the two tables of package schema and the table of totals must be there.
package main

import (
	"context"
	"log"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/function"
)

// timeout is the time-out that the function is deployed with.
const timeout = 28 * time.Second

// idem: begin
type order struct {
	ID, Customer string
	Amount       int
}

// charge adds to a total, which would show a second run.
func charge(_ context.Context, tx *idem.Tx, o order) error {
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: o.Customer}}
	values := map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: strconv.Itoa(o.Amount)}}
	tx.Write(dynamo.Update(types.Update{TableName: aws.String("shop-totals"), Key: key,
		UpdateExpression: aws.String("ADD charged :amount"), ExpressionAttributeValues: values}))
	return nil
}

func main() {
	client := dynamodb.NewFromConfig(must(config.LoadDefaultConfig(context.Background())))
	store := must(dynamo.New(client, dynamo.Config{IdempotencyTable: "shop-idempotency", OutboxTable: "shop-outbox"}))
	engine := must(idem.New(store, idem.Config{KillsAtDeadline: true, FunctionTimeout: timeout}))
	operation := idem.Operation{Name: "orders.charge", Kind: idem.KindAtomic, Policy: function.QueuePolicy()}
	charges := must(function.New(engine, operation, function.Config{Tenant: "shop", Key: function.JSONPointer("/id")}))
	lambda.Start(awslambda.SQS(function.Each(charges, awslambda.Body, charge), awslambda.Config{FunctionTimeout: timeout}))
}

// idem: end

// must ends a function that can't start.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
