// Command sweep offers messages again whose wake-ups were lost or whose workers died, cancels what nobody has begun in time,
// and parks wrapped operations whose holders died: once a minute, by schedule, and whenever it is invoked. Its event may name the
// shards that it looks into, {"shards":[0]}; without it looks into all.
package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Worker]()))))
}

func handler(ctx context.Context, cfg config.Worker) (func(context.Context, delivery.Run) (outbox.Report, error), error) {
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
	return func(ctx context.Context, run delivery.Run) (outbox.Report, error) {
		defer parts.Tracing.Flush(ctx)
		if err := run.Check(); err != nil {
			return outbox.Report{}, err
		}
		if run.First() {
			count(ctx, parts.Logger, runner)
		}
		did, err := runner.Sweep(ctx, run.Shards...)
		if err != nil {
			parts.Logger.ErrorContext(ctx, "sweep failed", "shards", run.Shards, "report", did) // the error is the invocation's
			return did, err
		}
		parts.Logger.InfoContext(ctx, metric.SweepRun, "shards", run.Shards, "report", did)
		return did, nil
	}, nil
}

// count tells what waits before the run, in all shards. Where it can't be counted the sweep goes on, and fails for the same cause or does not.
func count(ctx context.Context, logger *slog.Logger, runner *outbox.Runner) {
	b, err := runner.Backlog(ctx)
	if err != nil {
		logger.WarnContext(ctx, "backlog not counted", "error", err)
		return
	}
	logger.InfoContext(ctx, metric.OutboxBacklog, "due", b.Due, "due_age_ms", b.DueAge.Milliseconds(), "unknown", b.Unknown, "dead", b.Dead, "more", b.More)
}
