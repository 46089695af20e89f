package drift

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/secretstore"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
)

// Open makes the Job that the environment describes, or returns an error that names the variable or the field; LEDGER_SHARDS
// below the number that rows were written with is one. Without a logger nothing is logged, and nothing counted.
func Open(ctx context.Context, cfg config.Drift, logger *slog.Logger) (*Job, error) {
	aws, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	authorize, err := secretstore.Provider(ctx, cfg.Provider, logger)
	if err != nil {
		return nil, err
	}
	job, err := New(Config{
		Client:           dynamodb.NewFromConfig(aws, dynamo.LogRefused(logger)),
		IdempotencyTable: cfg.IdempotencyTable, OutboxTable: cfg.OutboxTable, PaymentsTable: cfg.PaymentsTable,
		ProviderURL: cfg.Provider.URL, Authorize: authorize, ProviderTimeout: cfg.Provider.Timeout, ListingDelay: cfg.ListingDelay,
		Window: cfg.Window, Grace: cfg.Grace, Retention: cfg.Retention, LedgerShards: cfg.LedgerShards, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, shardsTimeout)
	defer cancel()
	if err := job.CheckShards(ctx); errors.As(err, new(*idem.ConfigError)) {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return job, nil
}

// shardsTimeout bounds the check at a start. Where the table does not answer by then, the job asks before it compares.
const shardsTimeout = 2 * time.Second
