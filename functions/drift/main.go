// Command drift compares keys, messages, payments and the provider's objects. Every few minutes its schedule has it plan: it puts
// the pieces of the hours that are due into a queue, whose messages have it compare them (package hourly). Invoked by a person it
// compares the window that the event names. Drift is no error of the function: it is in the report, and a metric.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/drift/hourly"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.DriftJob]()))))
}

// event says what to compare. Without a member it is the window up to now.
type event struct {
	// Plan has the function plan instead: it is what the schedule sends.
	Plan bool `json:"plan"`
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

// lambdaMax is the longest that Lambda runs a function.
const lambdaMax = 15 * time.Minute

func handler(ctx context.Context, cfg config.DriftJob) (func(context.Context, json.RawMessage) (any, error), error) {
	if least := 2*hourly.TimeMin + cfg.Provider.Timeout; cfg.FunctionTimeout != 0 && cfg.FunctionTimeout < least {
		return nil, &idem.ConfigError{Field: "FUNCTION_TIMEOUT", Value: cfg.FunctionTimeout, Rule: fmt.Sprintf("must be at least PROVIDER_TIMEOUT + %v = %v: less leaves no time to compare", 2*hourly.TimeMin, least)}
	}
	logger, err := cfg.Logger()
	if err != nil {
		return nil, err
	}
	job, err := drift.Open(ctx, cfg.Drift, logger)
	if err != nil {
		return nil, err
	}
	planner, worker, err := pieces(ctx, cfg, job, logger)
	if err != nil {
		return nil, err
	}
	queue := awslambda.SQS(func(ctx context.Context, m events.SQSMessage) error {
		p, err := hourly.Read(m.Body)
		if err != nil {
			return err
		}
		return worker.Work(ctx, p)
	}, awslambda.Config{Logger: logger, FunctionTimeout: cfg.FunctionTimeout})
	compare := comparison(job, cfg.Drift, logger)
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		var source struct{ Records json.RawMessage }
		if err := json.Unmarshal(payload, &source); err == nil && source.Records != nil {
			answer, err := queue(ctx, payload)
			return json.RawMessage(answer), err
		}
		var e event
		if err := json.Unmarshal(payload, &e); err != nil {
			return nil, fmt.Errorf("event: %w", err)
		}
		if e.Plan {
			return planner.Plan(ctx)
		}
		return compare(ctx, e)
	}, nil
}

// pieces makes what compares hours in pieces.
func pieces(ctx context.Context, cfg config.DriftJob, job *drift.Job, logger *slog.Logger) (*hourly.Planner, *hourly.Worker, error) {
	aws, err := config.AWS(ctx)
	if err != nil {
		return nil, nil, err
	}
	own := hourly.Config{
		Job: job, Client: dynamodb.NewFromConfig(aws, dynamo.LogRefused(logger)), Table: cfg.DriftTable, Send: hourly.Queue(sqs.NewFromConfig(aws), cfg.DriftQueueURL),
		Parts: cfg.DriftParts, Grace: cfg.Grace, Lease: cmp.Or(cfg.FunctionTimeout, lambdaMax) + time.Minute, Logger: logger,
	}
	planner, err := hourly.NewPlanner(own)
	if err != nil {
		return nil, nil, err
	}
	worker, err := hourly.NewWorker(own)
	return planner, worker, err
}

// comparison compares the window that an event asks for.
func comparison(job *drift.Job, cfg config.Drift, logger *slog.Logger) func(context.Context, event) (drift.Report, error) {
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
	}
}

// asked is the window that the event asks for.
func (e event) asked(now time.Time, grace time.Duration) (drift.Window, error) {
	w := drift.Window{From: e.From, To: e.To, Tenant: e.Tenant}
	if e.Window == "" {
		return w, nil
	}
	length, err := time.ParseDuration(e.Window)
	if err != nil || length <= 0 || !e.From.IsZero() {
		return w, fmt.Errorf("event: window = %q: must be a duration above 0, and must not be given together with from", e.Window)
	}
	if w.To.IsZero() {
		w.To = now.Add(-grace)
	}
	w.From = w.To.Add(-length)
	return w, nil
}
