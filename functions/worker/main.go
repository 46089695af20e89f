// Command worker delivers messages of the outbox: it is woken by the table's stream and by the queue of wake-ups.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

// batchRecordsMax is how many records an invocation brings (the mappings' batch size).
const batchRecordsMax = 10

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Worker]()))))
}

func handler(ctx context.Context, cfg config.Worker) (awslambda.Handler, error) {
	parts, err := delivery.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	worker, err := outbox.NewWorker(parts.Store, parts.Topics, parts.Queue, parts.Queue)
	if err != nil {
		return nil, err
	}
	parts.RecordShards(ctx)
	// Messages have no order to keep, and one slow provider must not delay those behind it: a whole batch runs at once.
	adapter := awslambda.Config{Logger: parts.Logger, RecordTime: cfg.ClaimLease, Concurrency: batchRecordsMax, FunctionTimeout: cfg.FunctionTimeout, Batch: parts.Tracing.Batch}
	return parts.Tracing.Lambda(awslambda.Sources(map[string]awslambda.Handler{
		awslambda.SourceDynamoDB: awslambda.Stream(awslambda.Inserted(inserted(parts, worker)), adapter),
		awslambda.SourceSQS:      awslambda.SQS(woken(worker), adapter),
	})), nil
}

// inserted delivers a new message as its stream record shows it: no read is needed, the fence tells if it is stale.
func inserted(parts delivery.Parts, worker *outbox.Worker) func(context.Context, map[string]types.AttributeValue) error {
	return func(ctx context.Context, image map[string]types.AttributeValue) error {
		m, err := parts.Store.Image(ctx, image)
		switch {
		case worker.Unreadable(ctx, err): // it would stop the shard, and every tenant with it
			return nil
		case err != nil:
			return err
		}
		return worker.DeliverSeen(ctx, m)
	}
}

// woken delivers the message that a wake-up names, as it stands now.
func woken(worker *outbox.Worker) func(context.Context, events.SQSMessage) error {
	return func(ctx context.Context, wakeUp events.SQSMessage) error {
		id, err := sqsqueue.Read(wakeUp.Body)
		if err != nil {
			return err
		}
		return worker.Deliver(ctx, id)
	}
}
