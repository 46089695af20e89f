// Command sweep offers messages again whose wake-ups were lost or whose workers died: once a minute, by schedule.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem/outbox"
)

func main() {
	parts := config.Must(delivery.New(context.Background(), config.Must(config.Read[config.Worker]())))
	sweep := config.Must(outbox.NewSweep(parts.Store, parts.Topics, parts.Queue, parts.Queue))
	lambda.Start(func(ctx context.Context) (outbox.Report, error) {
		report, err := sweep.Run(ctx)
		parts.Logger.InfoContext(ctx, "swept", "report", report)
		return report, err
	})
}
