package payments

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
)

// LedgerShards is how many partitions an hour of the ledger index has, as a row of the payments table keeps it: the most that rows
// were written with. Who reads fewer would miss rows, such as those of a release that was gone back from.
type LedgerShards struct {
	Client *dynamodb.Client
	Table  string
	// Number is this process's.
	Number int
}

// Written is for who lists: the row's number, or this process's where that is higher. An error says that the row could not be read, and
// that nobody knows.
func (s LedgerShards) Written(ctx context.Context) (int, error) {
	kept, err := s.kept(ctx)
	return max(int(kept), s.Number), err
}

// Same is for who writes and does not decide the number, such as an operator's command: what it wrote with more would be listed by
// nobody. It returns an [*idem.ConfigError] for any other number than the row's.
func (s LedgerShards) Same(ctx context.Context) error {
	kept, err := s.kept(ctx)
	if err == nil && kept != 0 && kept != int64(s.Number) {
		return &idem.ConfigError{
			Field: "LEDGER_SHARDS", Value: s.Number, Rule: "must be " + strconv.FormatInt(kept, 10) + ", the number that rows were written with",
		}
	}
	return err
}

// kept is the row's number; 0 where there is no row yet.
func (s LedgerShards) kept(ctx context.Context) (int64, error) {
	out, err := s.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.Table, Key: key(table.ShardsKey), ConsistentRead: aws.Bool(true)})
	switch {
	case err != nil:
		return 0, fmt.Errorf("payments: check ledger shards: %w", err)
	case out.Item == nil:
		return 0, nil
	}
	d := &decoder{item: out.Item}
	return d.num(table.Shards), d.err
}

// Record is for who writes: it raises the number in the row. A lower one is no error, because what is written under it is listed
// under the higher one: while a deployment raises it, instances of the one before still start.
func (s LedgerShards) Record(ctx context.Context) error {
	_, err := s.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Table, Key: key(table.ShardsKey), UpdateExpression: aws.String("SET " + table.Shards + " = :own"),
		ConditionExpression:       aws.String("attribute_not_exists(" + table.Shards + ") OR " + table.Shards + " < :own"),
		ExpressionAttributeValues: item{":own": num(int64(s.Number))},
	})
	if as := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &as) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("payments: record ledger shards: %w", err)
	}
	return nil
}
