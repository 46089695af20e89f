package lambdaapp

import (
	"context"
	"log/slog"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// Scheduled is the handler of a function that a schedule calls, and that may be called by hand.
type Scheduled func(ctx context.Context, run Run) (outbox.Report, error)

// Sweep returns the handler of the sweep function: it offers messages again whose wake-ups were lost or whose workers died,
// cancels what nobody has begun in time, and parks wrapped operations whose holders died. The run of the first shard
// counts what waits, before it begins.
func Sweep(runner *outbox.Runner, logger *slog.Logger) Scheduled {
	return func(ctx context.Context, run Run) (outbox.Report, error) {
		if err := run.Check(); err != nil {
			return outbox.Report{}, err
		}
		if run.First() {
			runner.LogBacklog(ctx, logger)
		}
		did, err := runner.Sweep(ctx, run.Shards...)
		if err != nil {
			logger.ErrorContext(ctx, "sweep failed", "shards", run.Shards, "report", did) // the error is the invocation's
			return did, err
		}
		logger.InfoContext(ctx, metric.SweepRun, "shards", run.Shards, "report", did)
		return did, nil
	}
}

// Reconcile returns the handler of the reconciler function: it decides what is unknown by asking the provider.
func Reconcile(runner *outbox.Runner, logger *slog.Logger) Scheduled {
	return func(ctx context.Context, run Run) (outbox.Report, error) {
		if err := run.Check(); err != nil {
			return outbox.Report{}, err
		}
		did, err := runner.Reconcile(ctx, run.Shards...)
		if err != nil {
			logger.ErrorContext(ctx, "reconciliation failed", "shards", run.Shards, "report", did) // the error is the invocation's
			return did, err
		}
		logger.InfoContext(ctx, metric.ReconcileRun, "shards", run.Shards, "report", did)
		return did, nil
	}
}
