// Command reconcile decides what is unknown by asking the provider: once a minute, by schedule, and whenever it is invoked. Its
// event may name the shards that it looks into, {"shards":[0]}; without it looks into all.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Worker]()))))
}

func handler(ctx context.Context, cfg config.Worker) (func(context.Context, delivery.Run) (outbox.Report, error), error) {
	parts, err := delivery.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := parts.CheckShards(ctx); err != nil {
		return nil, err
	}
	runner, err := parts.Runner()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, run delivery.Run) (outbox.Report, error) {
		defer parts.Tracing.Flush(ctx)
		if err := run.Check(); err != nil {
			return outbox.Report{}, err
		}
		did, err := runner.Reconcile(ctx, run.Shards...)
		if err != nil {
			parts.Logger.ErrorContext(ctx, "reconciliation failed", "shards", run.Shards, "report", did) // the error is the invocation's
			return did, err
		}
		parts.Logger.InfoContext(ctx, metric.ReconcileRun, "shards", run.Shards, "report", did)
		return did, nil
	}, nil
}
