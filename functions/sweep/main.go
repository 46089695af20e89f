// Command sweep offers messages again whose wake-ups were lost or whose workers died, cancels what nobody has begun in time,
// and parks wrapped operations whose holders died: once a minute, by schedule, and whenever it is invoked. Its event may name the
// shards that it looks into, {"shards":[0]}; without it looks into all. The run of shard 0 also folds what collecting accounts have
// received into their balances (ADR 0047), and writes the log lines of what operators have changed by hand.
package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/byhand"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/operator/auditlog"
	"github.com/idem-go/idem-aws/idem/outbox"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Sweep]()))))
}

func handler(ctx context.Context, cfg config.Sweep) (lambdaapp.Scheduled, error) {
	parts, err := delivery.New(ctx, cfg.Worker)
	if err != nil {
		return nil, err
	}
	if err := parts.CheckTables(ctx, cfg.Tables); err != nil {
		return nil, err
	}
	runner, err := parts.Runner()
	if err != nil {
		return nil, err
	}
	folder := payments.Folder{
		Collections: payments.Table{Client: parts.Client, Name: cfg.PaymentsTable}, RefuseBefore: parts.Store.RefuseBefore, Now: time.Now, Pause: idem.Pause,
	}
	tasks := []task{folding(folder, parts.Logger)}
	if cfg.AuditTable != "" {
		log, err := auditlog.New(parts.Client, cfg.AuditTable)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, telling(&byhand.Watch{Audit: log, Logger: parts.Logger, Now: time.Now}, parts.Logger))
	}
	return parts.Tracing.Scheduled(beside(lambdaapp.Sweep(runner, parts.Logger), tasks...)), nil
}

// task is what the run of the first shard does besides.
type task func(context.Context) error

// beside has the run of the first shard do tasks too, beside sweeping: none of them takes another's time or fails with it. A task that
// fails is an error of the invocation.
func beside(sweep lambdaapp.Scheduled, tasks ...task) lambdaapp.Scheduled {
	return func(ctx context.Context, run lambdaapp.Run) (outbox.Report, error) {
		if run.Check() != nil || !run.First() {
			return sweep(ctx, run)
		}
		failed := make([]error, len(tasks))
		var running sync.WaitGroup
		for n, do := range tasks {
			running.Go(func() { failed[n] = do(ctx) })
		}
		did, err := sweep(ctx, run)
		running.Wait()
		return did, errors.Join(append(failed, err)...)
	}
}

// folding folds the collecting accounts.
func folding(folder payments.Folder, logger *slog.Logger) task {
	return func(ctx context.Context) error {
		did, err := folder.Run(ctx)
		if err != nil {
			logger.ErrorContext(ctx, "folding collecting accounts failed", "folded", did) // the error is the invocation's
		} else if did.Accounts > 0 {
			logger.InfoContext(ctx, "collecting accounts folded", "folded", did)
		}
		return err
	}
}

// telling writes the log lines of what was changed by hand.
func telling(watch *byhand.Watch, logger *slog.Logger) task {
	return func(ctx context.Context) error {
		err := watch.Run(ctx)
		if err != nil {
			logger.ErrorContext(ctx, "counting changes by hand failed") // the error is the invocation's
		}
		return err
	}
}
