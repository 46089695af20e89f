// Package dynamoquota keeps the counters of package quota in a DynamoDB table. Use it where several instances of a
// service must share a tenant's limits. A service of one process can use quota.Memory instead. The table has the
// shape that schema.Quota describes: an item for each counter, removed by native TTL.
//
// An addition is one UpdateItem and costs one write unit. It is not idempotent: if its reply is lost and the SDK
// sends it again, it counts twice, and the tenant gets that much less for one window or one hour. What an instance
// gives back is sent again only where it was throttled: counted twice, it would be more keys than the limit has. A read is one
// eventually consistent BatchGetItem, and costs half a read unit for each counter.
package dynamoquota

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Counters implements quota.Counters. It is safe for concurrent use.
type Counters struct {
	client *dynamodb.Client
	table  string
}

// New returns the counters in a table, by its name or ARN, or an [*idem.ConfigError].
func New(client *dynamodb.Client, table string) (*Counters, error) {
	switch {
	case client == nil:
		return nil, &idem.ConfigError{Field: "client", Value: nil, Rule: "must be a DynamoDB client"}
	case table == "":
		return nil, &idem.ConfigError{Field: "table", Value: `""`, Rule: "must be a table's name or ARN"}
	}
	return &Counters{client, table}, nil
}

type item = map[string]types.AttributeValue

func key(counter string) item {
	return item{schema.CounterName: &types.AttributeValueMemberS{Value: counter}}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Add implements quota.Counters. It returns the SDK's errors.
func (c *Counters) Add(ctx context.Context, counter, field string, n int64, removeAfter time.Time) (int64, error) {
	var options []func(*dynamodb.Options)
	if n < 0 {
		options = append(options, countedOnce)
	}
	out, err := c.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &c.table, Key: key(counter), UpdateExpression: aws.String("ADD #field :n SET #ttl = :ttl"),
		ExpressionAttributeNames:  map[string]string{"#field": field, "#ttl": schema.TTL},
		ExpressionAttributeValues: item{":n": number(n), ":ttl": number(removeAfter.Unix())},
		ReturnValues:              types.ReturnValueUpdatedNew,
	}, options...)
	if err != nil {
		return 0, fmt.Errorf("dynamoquota: add to a counter: %w", err)
	}
	return read(out.Attributes, field)
}

// countedOnce has the SDK send a call again only where DynamoDB has said that it did not do it: it was throttled.
func countedOnce(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(standard *retry.StandardOptions) {
		standard.Retryables = []retry.IsErrorRetryable{retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}}
	})
}

// readTries bounds how often what a BatchGetItem left out is asked for again.
const readTries = 3

// errUnread: the table left out counters each time.
var errUnread = errors.New("dynamoquota: the table did not return all counters")

// Read implements quota.Counters. It returns the SDK's errors.
func (c *Counters) Read(ctx context.Context, counters []string) ([]map[string]int64, error) {
	ask := make([]item, len(counters))
	for i, name := range counters {
		ask[i] = key(name)
	}
	found := make(map[string]map[string]int64, len(counters))
	for range readTries {
		out, err := c.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{c.table: {Keys: ask}},
		})
		if err != nil {
			return nil, fmt.Errorf("dynamoquota: read counters: %w", err)
		}
		for _, it := range out.Responses[c.table] {
			if err := decode(it, found); err != nil {
				return nil, err
			}
		}
		if ask = out.UnprocessedKeys[c.table].Keys; len(ask) == 0 {
			return inOrder(counters, found), nil
		}
	}
	return nil, errUnread
}

func decode(it item, found map[string]map[string]int64) error {
	name, ok := it[schema.CounterName].(*types.AttributeValueMemberS)
	if !ok {
		return errors.New("dynamoquota: a counter without a name")
	}
	fields := map[string]int64{}
	for field := range it {
		if field == schema.CounterName || field == schema.TTL {
			continue
		}
		n, err := read(it, field)
		if err != nil {
			return err
		}
		fields[field] = n
	}
	found[name.Value] = fields
	return nil
}

func inOrder(counters []string, found map[string]map[string]int64) []map[string]int64 {
	all := make([]map[string]int64, len(counters))
	for i, name := range counters {
		all[i] = found[name]
	}
	return all
}

func read(it item, field string) (int64, error) {
	value, ok := it[field].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("dynamoquota: field %s of a counter is not a number", field)
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("dynamoquota: field %s of a counter: %w", field, err)
	}
	return n, nil
}
