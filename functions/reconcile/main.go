// Command reconcile decides what is unknown by asking the provider: once a minute, by schedule, and whenever it is invoked.
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

// report counts what a run decided.
type report struct {
	Messages outbox.ReconcileReport   `json:"messages"`
	Records  recovery.ReconcileReport `json:"records"`
}

// probes are those of wrapped operations, of which the application has none: one that is unknown all the same, another
// release's, is a person's.
var probes map[string]recovery.Probe

func handler(ctx context.Context, cfg config.Worker) (func(context.Context) (report, error), error) {
	parts, err := delivery.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	messages, err := outbox.NewReconciler(parts.Store, parts.Topics, parts.Queue, parts.Queue)
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(parts.Store, idem.Config{FunctionTimeout: cfg.FunctionTimeout, Logger: parts.Logger})
	if err != nil {
		return nil, err
	}
	records, err := recovery.NewReconciler(engine, parts.Store, probes, recovery.Config{
		LongestRequest: cfg.LongestRequest, ListingDelay: cfg.ListingDelay, Logger: parts.Logger,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (report, error) {
		var did report
		err := delivery.Both(
			func() (err error) { did.Messages, err = messages.Run(ctx); return err },
			func() (err error) { did.Records, err = records.Run(ctx); return err },
		)
		parts.Logger.InfoContext(ctx, "reconciled", "report", did)
		return did, err
	}, nil
}
