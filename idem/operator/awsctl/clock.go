package awsctl

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// clockOff asks DynamoDB for an entry of the audit log that does not exist, and compares this machine's clock with the Date of the answer, which
// is of whole seconds. The SDK corrects the time of its signatures by itself, so that nothing else complains of a wrong
// clock. An emulator that says no Date is as if the clocks agreed.
func clockOff(client *dynamodb.Client, table string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &table, Key: map[string]types.AttributeValue{schema.EntryID: &types.AttributeValueMemberS{Value: "clock"}},
		})
		if err != nil {
			return 0, about(table, err)
		}
		server, told := middleware.GetServerTime(out.ResultMetadata)
		here, at := middleware.GetResponseAt(out.ResultMetadata)
		if !told || !at {
			return 0, nil
		}
		return here.Sub(server.Add(time.Second / 2)), nil
	}
}
