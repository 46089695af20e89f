// Command reconcile decides what is unknown by asking the provider: once a minute, by schedule, and whenever it is invoked. Its
// event may name the shards that it looks into, {"shards":[0]}; without it looks into all.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Worker]()))))
}

func handler(ctx context.Context, cfg config.Worker) (lambdaapp.Scheduled, error) {
	parts, err := delivery.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	runner, err := parts.Runner()
	if err != nil {
		return nil, err
	}
	return parts.Tracing.Scheduled(lambdaapp.Reconcile(runner, parts.Logger)), nil
}
