// Package delivery wires what the functions that deliver share: the store, the topics and the queues.
package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/internal/secretstore"
	"github.com/idem-go/idem-aws/functions/internal/tracing"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

// Parts are what a worker, a sweep, a reconciler or an inline delivery is made of.
type Parts struct {
	Client *dynamodb.Client
	Store  *Store
	Topics *outbox.Topics
	// Provider is what the topics call.
	Provider *payments.Provider
	Queue    *sqsqueue.Queue
	Logger   *slog.Logger
	Tracing  tracing.Tracing
	// functionTimeout is what the deployment gives the function, freezeAllowance how long it may be frozen.
	functionTimeout, freezeAllowance time.Duration
}

// New makes the parts, or an error that names the variable or field.
func New(ctx context.Context, cfg config.Worker) (Parts, error) {
	aws, err := config.AWS(ctx)
	if err != nil {
		return Parts{}, err
	}
	logger, err := cfg.Logger()
	if err != nil {
		return Parts{}, err
	}
	client := dynamodb.NewFromConfig(aws, dynamo.LogRefused(logger))
	traces, err := tracing.New(ctx, cfg.Tracing, logger)
	if err != nil {
		return Parts{}, err
	}
	store, err := newStore(aws, client, cfg, logger)
	if err != nil {
		return Parts{}, err
	}
	authorize, err := secretstore.Provider(ctx, cfg.Provider, logger)
	if err != nil {
		return Parts{}, err
	}
	provider, err := payments.NewProvider(cfg.Provider.URL, authorize)
	if err != nil {
		return Parts{}, err
	}
	topics, err := outbox.NewTopics(outbox.Config{
		ClaimLease: cfg.ClaimLease, CallTimeout: cfg.Provider.Timeout, FunctionTimeout: cfg.FunctionTimeout,
		InlinePause: cfg.InlinePause, BackoffMin: cfg.BackoffMin, BackoffMax: cfg.BackoffMax, LongestRequest: cfg.LongestRequest, ListingDelay: cfg.ListingDelay,
		FreezeAllowance: cfg.FreezeAllowance, ResponseBytesMax: cfg.ResponseBytesMax, WakeUpsMax: cfg.WakeUpsMax, Logger: logger, Tracer: traces.Tracer,
	}, provider.Topics(payments.Bounds{
		AttemptsMax: cfg.AttemptsMax, ProbesMax: cfg.ProbesMax, LongestRequest: cfg.LongestRequest, ListingDelay: cfg.ListingDelay,
	})...)
	if err != nil {
		return Parts{}, err
	}
	queue, err := sqsqueue.New(sqs.NewFromConfig(aws), cfg.WakeUpQueueURL, cfg.DeadLetterQueueURL)
	if err != nil {
		return Parts{}, err
	}
	return Parts{
		Client: client, Store: store, Topics: topics, Provider: provider, Queue: queue, Logger: logger, Tracing: traces, functionTimeout: cfg.FunctionTimeout, freezeAllowance: cfg.FreezeAllowance,
	}, nil
}

// Runner makes what sweeps and reconciles, in the shards of every release. The application has no wrapped operation, and no probe of
// one: what is unknown all the same, another release's, is a person's.
func (p Parts) Runner() (*outbox.Runner, error) {
	worker, err := outbox.NewWorker(p.Store, p.Topics, p.Queue, p.Queue)
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(p.Store, idem.Config{FunctionTimeout: p.functionTimeout, FreezeAllowance: p.freezeAllowance, Logger: p.Logger})
	if err != nil {
		return nil, err
	}
	runner, err := outbox.NewRunner(worker, engine, nil)
	if err != nil {
		return nil, err
	}
	runner.AdoptShards(p.Store.rows.CheckShards)
	return runner, nil
}
