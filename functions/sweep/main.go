// Command sweep offers messages again whose wake-ups were lost or whose workers died, cancels what nobody has begun in time,
// and parks opaque operations whose holders died: once a minute, by schedule, and whenever it is invoked.
package main

import (
	"context"
	"errors"
	"sync"

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
	engine, err := idem.New(parts.Store, idem.Config{Logger: parts.Logger})
	if err != nil {
		return nil, err
	}
	records, err := recovery.NewSweep(engine, parts.Store, recovery.Config{Logger: parts.Logger})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (report, error) {
		var (
			both                    sync.WaitGroup // so that neither waits for the other's end
			did                     report
			messagesErr, recordsErr error
		)
		both.Go(func() { did.Messages, messagesErr = messages.Run(ctx) })
		both.Go(func() { did.Records, recordsErr = records.Run(ctx) })
		both.Wait()
		parts.Logger.InfoContext(ctx, "swept", "report", did)
		return did, errors.Join(messagesErr, recordsErr)
	}, nil
}
