package drift

import (
	"context"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/secretstore"
	"github.com/idem-go/idem-aws/idem/dynamo"
)

// Open makes the Job that the environment describes, or returns an error that names the variable or the field. Without a logger nothing
// is logged, and nothing counted.
func Open(ctx context.Context, cfg config.Drift, logger *slog.Logger) (*Job, error) {
	aws, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	authorize, err := secretstore.Provider(ctx, cfg.Provider, logger)
	if err != nil {
		return nil, err
	}
	return New(Config{
		Client:           dynamodb.NewFromConfig(aws, dynamo.LogRefused(logger)),
		IdempotencyTable: cfg.IdempotencyTable, OutboxTable: cfg.OutboxTable, PaymentsTable: cfg.PaymentsTable,
		ProviderURL: cfg.Provider.URL, Authorize: authorize, ProviderTimeout: cfg.Provider.Timeout, ListingDelay: cfg.ListingDelay,
		Window: cfg.Window, Grace: cfg.Grace, Retention: cfg.Retention, LedgerShards: cfg.LedgerShards, Logger: logger,
	})
}
