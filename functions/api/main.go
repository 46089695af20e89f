// Command api is the payments API behind API Gateway.
package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/identity"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/internal/secretstore"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/cache"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/middleware/cors"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/quota"
	"github.com/idem-go/idem-aws/idem/quota/dynamoquota"
	"github.com/idem-go/idem-aws/idem/storage"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.API]()))))
}

func handler(ctx context.Context, cfg config.API) (awslambda.Handler, error) {
	parts, err := delivery.New(ctx, cfg.Worker)
	if err != nil {
		return nil, err
	}
	inline, err := inline(parts)
	if err != nil {
		return nil, err
	}
	tenants, err := identity.NewLimits()
	if err != nil {
		return nil, err
	}
	engine, err := engine(ctx, cfg, parts, tenants)
	if err != nil {
		return nil, err
	}
	identify, err := identifier(cfg, parts, tenants)
	if err != nil {
		return nil, err
	}
	app, err := payments.New(payments.Config{
		Engine: engine, Ledger: payments.Table{Client: parts.Client, Name: cfg.PaymentsTable}, Messages: parts.Store,
		Inline: inline, Identify: identify, Retention: cfg.Retention, BodyBytesMax: cfg.BodyBytesMax, WaitMax: cfg.WaitMax, Logger: parts.Logger,
	})
	if err != nil {
		return nil, err
	}
	if app, err = crossOrigin(app, cfg.CORSOrigins); err != nil {
		return nil, err
	}
	parts.RecordShards(ctx)
	parts.RecordLedgerShards(ctx, cfg.Tables)
	return parts.Tracing.Lambda(awslambda.HTTP(parts.Tracing.HTTP(app), awslambda.Config{
		Logger: parts.Logger, DocsURL: payments.DocsURL, FunctionTimeout: cfg.FunctionTimeout,
		ExplicitRoutes: true, // of package route
	})), nil
}

// engine reads final records from memory where that is configured; whatever decides by writing asks the store.
func engine(ctx context.Context, cfg config.API, parts delivery.Parts, tenants *identity.Limits) (*idem.Engine, error) {
	fingerprints, err := fingerprinter(ctx, cfg)
	if err != nil {
		return nil, err
	}
	limits, err := limits(cfg, parts, tenants)
	if err != nil {
		return nil, err
	}
	secret, err := secretstore.Scope(ctx, cfg.Scopes)
	if err != nil {
		return nil, err
	}
	var store storage.Store = parts.Store
	if cfg.RecordCache {
		if store, err = cache.New(parts.Store, cache.Config{}); err != nil {
			return nil, err
		}
	}
	return idem.New(store, idem.Config{
		ResponseBytesMax: cfg.ResponseBytesMax, Fingerprinter: fingerprints, Quota: limits, Logger: parts.Logger, ScopeSecret: secret,
		KillsAtDeadline: true, // as AWS Lambda does
		FunctionTimeout: cfg.FunctionTimeout,
	})
}

// fingerprinter keys fingerprints where secrets are configured.
func fingerprinter(ctx context.Context, cfg config.API) (*canonical.Fingerprinter, error) {
	secrets := cfg.FingerprintSecrets
	if cfg.FingerprintSecretID != "" {
		source, err := secretstore.Source(ctx, "FINGERPRINT_SECRET_ID", cfg.FingerprintSecretID)
		if err != nil {
			return nil, err
		}
		text, err := source(ctx)
		if err != nil {
			return nil, err
		}
		if err := secrets.UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("configuration: FINGERPRINT_SECRET_ID = %q: %w", cfg.FingerprintSecretID, err)
		}
	}
	fingerprints, err := canonical.New(canonical.Config{Secrets: secrets, BodyBytesMax: cfg.BodyBytesMax})
	if err != nil {
		return nil, fmt.Errorf("configuration: FINGERPRINT_SECRETS, FINGERPRINT_SECRET_ID, BODY_BYTES_MAX: %w", err)
	}
	return fingerprints, nil
}

// limits are every tenant's, where there are any: its own, and the deployment's for the rest. A key counts as active for its
// retention, in whole hours.
func limits(cfg config.API, parts delivery.Parts, tenants *identity.Limits) (idem.Quota, error) {
	if !cfg.Limited() {
		return nil, nil
	}
	counters, err := dynamoquota.New(parts.Client, cfg.Quota.Table)
	if err != nil {
		return nil, err
	}
	of := func(tenant string) quota.Limits {
		own := tenants.Of(tenant)
		return quota.Limits{
			NewKeysPerSecond: cmp.Or(own.NewKeysPerSecond, cfg.NewKeysPerSecond), ActiveKeys: cmp.Or(own.ActiveKeys, cfg.ActiveKeys),
			LookUpsPerSecond: cmp.Or(own.LookUpsPerSecond, cfg.LookUpsPerSecond), WaitsPerSecond: cmp.Or(own.WaitsPerSecond, cfg.WaitsPerSecond),
		}
	}
	return quota.New(counters, quota.Config{
		Limits: of, ActiveFor: (cfg.Retention + time.Hour - 1).Truncate(time.Hour),
	})
}

// crossOrigin answers browsers before anybody is authenticated: a preflight carries no credentials.
func crossOrigin(app http.Handler, origins []string) (http.Handler, error) {
	if len(origins) == 0 {
		return app, nil
	}
	allow, err := cors.New(cors.Config{Origins: origins})
	if err != nil {
		return nil, fmt.Errorf("configuration: CORS_ORIGINS: %w", err)
	}
	return allow(app), nil
}

// inline delivers within the request by the worker's means.
func inline(parts delivery.Parts) (*outbox.Inline, error) {
	worker, err := outbox.NewWorker(parts.Store, parts.Topics, parts.Queue, parts.Queue)
	if err != nil {
		return nil, err
	}
	return outbox.NewInline(worker)
}

func identifier(cfg config.API, parts delivery.Parts, tenants *identity.Limits) (func(*http.Request) (middleware.Identity, error), error) {
	switch cfg.Auth {
	case config.AuthGateway:
		return identity.Gateway(tenants), nil
	case config.AuthFunction:
		keys, err := apikey.New(apikey.Config{
			Table: apikey.Table{Client: parts.Client, Name: cfg.APIKeysTable}, CacheAge: cfg.APIKeyCacheAge,
			RefuseTest: cfg.TestKeys == config.TestKeysRefuse, Logger: parts.Logger,
		})
		if err != nil {
			return nil, fmt.Errorf("configuration: API_KEY_CACHE_AGE: %w", err)
		}
		return identity.Function(keys, tenants, parts.Logger), nil
	}
	return nil, fmt.Errorf("configuration: AUTH = %q", cfg.Auth)
}
