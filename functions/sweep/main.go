// Command sweep offers messages again whose wake-ups were lost or whose workers died, cancels what nobody has begun in time,
// and parks wrapped operations whose holders died: once a minute, by schedule, and whenever it is invoked. Its event may name the
// shards that it looks into, {"shards":[0]}; without it looks into all. The run of shard 0 also folds what collecting accounts have
// received into their balances (ADR 0047).
package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/outbox"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Worker]()))))
}

func handler(ctx context.Context, cfg config.Worker) (lambdaapp.Scheduled, error) {
	parts, err := delivery.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := parts.CheckTables(ctx, cfg.Tables); err != nil {
		return nil, err
	}
	if err := parts.CheckShards(ctx); err != nil {
		return nil, err
	}
	runner, err := parts.Runner()
	if err != nil {
		return nil, err
	}
	folder := payments.Folder{
		Collections: payments.Table{Client: parts.Client, Name: cfg.PaymentsTable}, RefuseBefore: parts.Store.RefuseBefore, Now: time.Now, Pause: idem.Pause,
	}
	return parts.Tracing.Scheduled(folding(lambdaapp.Sweep(runner, parts.Logger), folder, parts.Logger)), nil
}

// folding has the run of the first shard fold the collecting accounts too, beside sweeping: neither takes the other's time or fails
// with it. A fold that fails is an error of the invocation.
func folding(sweep lambdaapp.Scheduled, folder payments.Folder, logger *slog.Logger) lambdaapp.Scheduled {
	return func(ctx context.Context, run lambdaapp.Run) (outbox.Report, error) {
		if run.Check() != nil || !run.First() {
			return sweep(ctx, run)
		}
		var failed error
		var beside sync.WaitGroup
		beside.Go(func() {
			var did payments.Folded
			if did, failed = folder.Run(ctx); failed != nil {
				logger.ErrorContext(ctx, "folding collecting accounts failed", "folded", did) // the error is the invocation's
			} else if did.Accounts > 0 {
				logger.InfoContext(ctx, "collecting accounts folded", "folded", did)
			}
		})
		did, err := sweep(ctx, run)
		beside.Wait()
		return did, errors.Join(err, failed)
	}
}
