// Package consumed tells tests of the capacity that calls to DynamoDB consume, as the endpoint reports it.
package consumed

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Option has a client ask what its UpdateItem and BatchGetItem calls consume. Tell gets the units of each that succeeds, with its
// context, from the goroutine that makes the call.
func Option(tell func(ctx context.Context, writes, reads float64)) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Consumed", func(
				ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
			) (middleware.InitializeOutput, middleware.Metadata, error) {
				ask(in.Parameters)
				out, metadata, err := next.HandleInitialize(ctx, in)
				if err == nil {
					writes, reads := units(out.Result)
					tell(ctx, writes, reads)
				}
				return out, metadata, err
			}), middleware.Before)
		})
	}
}

func ask(input any) {
	switch input := input.(type) {
	case *dynamodb.UpdateItemInput:
		input.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.BatchGetItemInput:
		input.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	}
}

func units(result any) (writes, reads float64) {
	switch output := result.(type) {
	case *dynamodb.UpdateItemOutput:
		writes = aws.ToFloat64(output.ConsumedCapacity.CapacityUnits)
	case *dynamodb.BatchGetItemOutput:
		for _, of := range output.ConsumedCapacity {
			reads += aws.ToFloat64(of.CapacityUnits)
		}
	}
	return writes, reads
}
