// Command webhook takes the provider's webhooks behind API Gateway: what they tell is settled as the worker would have.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/internal/secretstore"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/webhook"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.Webhook]()))))
}

func handler(ctx context.Context, cfg config.Webhook) (awslambda.Handler, error) {
	parts, err := delivery.New(ctx, cfg.Worker)
	if err != nil {
		return nil, err
	}
	verifier, err := verifier(ctx, cfg, parts.Logger)
	if err != nil {
		return nil, err
	}
	worker, err := outbox.NewWorker(parts.Store, parts.Topics, parts.Queue, parts.Queue)
	if err != nil {
		return nil, err
	}
	secret, err := secretstore.Scope(ctx, cfg.Scopes)
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(parts.Store, idem.Config{FunctionTimeout: cfg.FunctionTimeout, Logger: parts.Logger, ScopeSecret: secret})
	if err != nil {
		return nil, err
	}
	endpoint, err := payments.NewWebhook(payments.WebhookConfig{
		Verifier: verifier, Engine: engine, Messages: parts.Store, Worker: worker, Logger: parts.Logger,
	})
	if err != nil {
		return nil, err
	}
	parts.RecordShards(ctx)
	return parts.Tracing.Lambda(awslambda.HTTP(parts.Tracing.HTTP(endpoint), awslambda.Config{
		Logger: parts.Logger, DocsURL: payments.DocsURL, FunctionTimeout: cfg.FunctionTimeout, SignedPaths: []string{payments.WebhookPath},
	})), nil
}

func verifier(ctx context.Context, cfg config.Webhook, logger *slog.Logger) (*webhook.Verifier, error) {
	settings := webhook.Config{Secrets: cfg.WebhookSecrets, Header: payments.SignatureHeader, Logger: logger}
	if cfg.WebhookSecretID != "" {
		source, err := secrets(ctx, cfg.WebhookSecretID)
		if err == nil {
			settings.Secrets, err = source(ctx)
		}
		if err != nil {
			return nil, err
		}
		settings.Source = source
	}
	verifier, err := webhook.New(settings)
	if err != nil {
		return nil, fmt.Errorf("configuration: WEBHOOK_SECRET, WEBHOOK_SECRET_ID: %w", err)
	}
	return verifier, nil
}

// secrets reads a list, which it is while one secret is replaced by another.
func secrets(ctx context.Context, id string) (func(context.Context) ([]string, error), error) {
	source, err := secretstore.Source(ctx, "WEBHOOK_SECRET_ID", id)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]string, error) {
		text, err := source(ctx)
		if err != nil {
			return nil, err
		}
		all := strings.Split(text, ",")
		for i := range all {
			all[i] = strings.TrimSpace(all[i])
		}
		return all, nil
	}, nil
}
