// Command worker delivers messages of the outbox: it is woken by the table's stream and by the queue of wake-ups.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/outbox"
)

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
	adapter := awslambda.Config{Logger: parts.Logger, RecordTime: cfg.ClaimLease, FunctionTimeout: cfg.FunctionTimeout, Batch: parts.Tracing.Batch}
	return parts.Tracing.Lambda(lambdaapp.Worker(worker, parts.Store.Image, adapter)), nil
}
