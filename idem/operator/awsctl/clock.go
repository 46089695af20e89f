package awsctl

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/internal/timers"
)

// Bounds of the comparison of clocks. An answer that came promptly is not old.
const (
	clockReadingsMax = 3
	promptly         = 500 * time.Millisecond
)

// clockOff compares this machine's clock with the Date of an answer of DynamoDB's, which is of whole seconds. The SDK corrects the
// time of its signatures by itself, so that nothing else complains of a wrong clock.
//
// An answer that comes late makes the clock look ahead by as much, or hides that it is behind. So DynamoDB is asked until an answer comes
// promptly. Where none does, the least counts: however late an answer is, it never makes the clock look behind.
func clockOff(client *dynamodb.Client, table string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		least, prompt, err := readClock(ctx, client, table)
		for readings := 1; readings < clockReadingsMax && !prompt && err == nil; readings++ {
			var off time.Duration
			off, prompt, err = readClock(ctx, client, table)
			least = min(least, off)
		}
		return least, err
	}
}

// readClock asks for an entry of the audit log that does not exist, and returns how far the clock is ahead of the answer's Date, and whether
// the answer came promptly. An emulator that says no Date is as if the clocks agreed.
func readClock(ctx context.Context, client *dynamodb.Client, table string) (off time.Duration, prompt bool, err error) {
	asked := timers.Begin()
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{schema.EntryID: &types.AttributeValueMemberS{Value: "clock"}},
	})
	if err != nil {
		return 0, false, about(table, err)
	}
	server, told := middleware.GetServerTime(out.ResultMetadata)
	here, at := middleware.GetResponseAt(out.ResultMetadata)
	if !told || !at {
		return 0, true, nil
	}
	return here.Sub(server.Add(time.Second / 2)), !here.After(asked.Deadline(promptly)), nil
}
