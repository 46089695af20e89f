// Command relay puts a wake-up for each new message of the outbox into a queue: it is called with the records of the
// table's stream.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Relay]()))))
}

func handler(ctx context.Context, cfg config.Relay) (awslambda.Handler, error) {
	aws, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	logger, err := cfg.Logger()
	if err != nil {
		return nil, err
	}
	return lambdaapp.Relay(sqs.NewFromConfig(aws), cfg.WakeUpQueueURL, awslambda.Config{Logger: logger, FunctionTimeout: cfg.FunctionTimeout}), nil
}
