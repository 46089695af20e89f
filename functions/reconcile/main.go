// Command reconcile decides what is unknown by asking the provider: once a minute, by schedule.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem/outbox"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Worker]()))))
}

func handler(ctx context.Context, cfg config.Worker) (func(context.Context) (outbox.ReconcileReport, error), error) {
	parts, err := delivery.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	reconciler, err := outbox.NewReconciler(parts.Store, parts.Topics, parts.Queue, parts.Queue)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (outbox.ReconcileReport, error) {
		report, err := reconciler.Run(ctx)
		parts.Logger.InfoContext(ctx, "reconciled", "report", report)
		return report, err
	}, nil
}
