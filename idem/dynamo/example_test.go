package dynamo_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
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

// A store needs a client and the names of its two tables; everything else has a default.
func ExampleNew() {
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1"})
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: "idempotency", OutboxTable: "outbox", Shards: 4})
	if err != nil {
		panic(err)
	}
	var _ idem.Store = store
}
