// Command sweep offers messages again whose wake-ups were lost or whose workers died, cancels what nobody has begun in time,
// and parks wrapped operations whose holders died: once a minute, by schedule, and whenever it is invoked.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/recovery"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Worker]()))))
}

// report counts what a run did.
type report struct {
	Messages outbox.Report   `json:"messages"`
	Records  recovery.Report `json:"records"`
}

func handler(ctx context.Context, cfg config.Worker) (func(context.Context) (report, error), error) {
	parts, err := delivery.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	messages, err := outbox.NewSweep(parts.Store, parts.Topics, parts.Queue, parts.Queue)
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(parts.Store, idem.Config{FunctionTimeout: cfg.FunctionTimeout, Logger: parts.Logger})
	if err != nil {
		return nil, err
	}
	records, err := recovery.NewSweep(engine, parts.Store, recovery.Config{Logger: parts.Logger})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (report, error) {
		var did report
		err := delivery.Both(
			func() (err error) { did.Messages, err = messages.Run(ctx); return err },
			func() (err error) { did.Records, err = records.Run(ctx); return err },
		)
		parts.Logger.InfoContext(ctx, "swept", "report", did)
		return did, err
	}, nil
}
