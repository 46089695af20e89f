// Package fill writes many rows to DynamoDB at once.
package fill

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	batch   = 25 // what BatchWriteItem takes at once
	writers = 4
)

// Write writes so many rows as they are made, and tells of each tenth part.
func Write(
	ctx context.Context, raw *dynamodb.Client, rows int, row func(context.Context, int) (string, types.WriteRequest, error), told func(done int),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan map[string][]types.WriteRequest, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for b := range batches {
				if err := writeBatch(ctx, raw, b); err != nil {
					cancel(err)
				}
			}
		})
	}
	for from := 0; from < rows && ctx.Err() == nil; from += batch {
		b := map[string][]types.WriteRequest{}
		for i := from; i < min(from+batch, rows); i++ {
			table, put, err := row(ctx, i)
			if err != nil {
				cancel(err)
				break
			}
			b[table] = append(b[table], put)
		}
		batches <- b
		if tenth := max(rows/10, 1); from/tenth != (from+batch)/tenth {
			told(min(from+batch, rows))
		}
	}
	close(batches)
	group.Wait()
	return context.Cause(ctx)
}

// writeBatch writes a batch, and what the endpoint left of it.
func writeBatch(ctx context.Context, raw *dynamodb.Client, b map[string][]types.WriteRequest) error {
	for len(b) > 0 {
		out, err := raw.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: b})
		if err != nil {
			return err
		}
		b = out.UnprocessedItems
	}
	return nil
}
