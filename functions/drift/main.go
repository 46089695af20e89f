// Command drift compares keys, messages, payments and the provider's objects of a window of time: once an hour and once a
// day, by schedule, and whenever it is invoked. Drift is no error of the function: it is in the report, and a metric.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Drift]()))))
}

// event says what to compare; a schedule's own says nothing of it.
type event struct {
	// From and To bound the window. Default: the last DRIFT_WINDOW, up to DRIFT_GRACE ago.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Window is how long it is where From is not given, in Go's notation: "50h".
	Window string `json:"window"`
	// Tenant restricts it to one.
	Tenant string `json:"tenant"`
}

// reporting is kept of the function's time for the answer, so that a run that has no time left says how far it came.
const reporting = 3 * time.Second

func handler(ctx context.Context, cfg config.Drift) (func(context.Context, event) (drift.Report, error), error) {
	if least := reporting + cfg.Provider.Timeout; cfg.FunctionTimeout != 0 && cfg.FunctionTimeout < least {
		return nil, &idem.ConfigError{Field: "FUNCTION_TIMEOUT", Value: cfg.FunctionTimeout, Rule: fmt.Sprintf("must be at least PROVIDER_TIMEOUT + %v = %v: less leaves no time to compare", reporting, least)}
	}
	logger, err := cfg.Logger()
	if err != nil {
		return nil, err
	}
	job, err := drift.Open(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, e event) (drift.Report, error) {
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-reporting))
			defer cancel()
		}
		w, err := e.asked(time.Now(), cfg.Grace)
		if err != nil {
			return drift.Report{}, err
		}
		report, err := job.Check(ctx, w)
		level, line := slog.LevelInfo, metric.DriftRun
		if err != nil {
			level, line = slog.LevelError, "drift run failed" // the error is the invocation's
		}
		logger.Log(ctx, level, line, "window", report.Window, "unfinished", report.Unfinished, "unanswered", report.Unanswered, "compared", report.Compared, "open", report.Open,
			"with_operator", report.WithOperator, "drift", report.Drift, "cost", report.Cost)
		return report, err
	}, nil
}

// asked is the window that the event asks for.
func (e event) asked(now time.Time, grace time.Duration) (drift.Window, error) {
	w := drift.Window{From: e.From, To: e.To, Tenant: e.Tenant}
	if e.Window == "" {
		return w, nil
	}
	length, err := time.ParseDuration(e.Window)
	if err != nil || length <= 0 || !e.From.IsZero() {
		return w, fmt.Errorf("event: window = %q: must be a duration above 0, and stand without from", e.Window)
	}
	if w.To.IsZero() {
		w.To = now.Add(-grace)
	}
	w.From = w.To.Add(-length)
	return w, nil
}
