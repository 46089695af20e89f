package lambdaapp

import (
	"cmp"
	"context"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Images reads the message that an image of the outbox table's stream shows.
type Images func(ctx context.Context, image map[string]types.AttributeValue) (storage.Message, error)

// Worker returns the handler of the worker function: it delivers the messages that records of the outbox table's stream show, and
// those that wake-ups of the queue name. Messages have no order to keep, and one slow provider must not delay those behind it:
// a whole batch runs at once, unless cfg.Concurrency says otherwise.
func Worker(worker *outbox.Worker, images Images, cfg awslambda.Config) awslambda.Handler {
	cfg.Concurrency = cmp.Or(cfg.Concurrency, environment.BatchWakeUpsMax)
	return awslambda.Sources(map[string]awslambda.Handler{
		awslambda.SourceDynamoDB: awslambda.Stream(awslambda.Inserted(inserted(worker, images)), cfg),
		awslambda.SourceSQS:      awslambda.SQS(woken(worker), cfg),
	})
}

// inserted delivers a new message as its stream record shows it: no read is needed, the fence tells if it is stale.
func inserted(worker *outbox.Worker, images Images) func(context.Context, map[string]types.AttributeValue) error {
	return func(ctx context.Context, image map[string]types.AttributeValue) error {
		m, err := images(ctx, image)
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
