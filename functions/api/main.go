// Command api is the payments API behind API Gateway.
package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/identity"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func main() {
	lambda.Start(config.Must(handler(context.Background(), config.Must(config.Read[config.API]()))))
}

func handler(ctx context.Context, cfg config.API) (awslambda.Handler, error) {
	aws, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	client, logger := dynamodb.NewFromConfig(aws), cfg.Logger()
	store, err := delivery.Store(client, cfg.Tables)
	if err != nil {
		return nil, err
	}
	fingerprints, err := canonical.New(canonical.Config{BodyBytesMax: cfg.BodyBytesMax})
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(store, idem.Config{ResponseBytesMax: cfg.ResponseBytesMax, Fingerprinter: fingerprints, Logger: logger})
	if err != nil {
		return nil, err
	}
	identify, err := identifier(cfg, client)
	if err != nil {
		return nil, err
	}
	app, err := payments.New(payments.Config{
		Engine: engine, Ledger: payments.Table{Client: client, Name: cfg.PaymentsTable}, Messages: store, Identify: identify,
		Retention: cfg.Retention, BodyBytesMax: cfg.BodyBytesMax, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	return awslambda.HTTP(app, awslambda.Config{Logger: logger}), nil
}

func identifier(cfg config.API, client *dynamodb.Client) (func(*http.Request) (middleware.Identity, error), error) {
	switch cfg.Auth {
	case config.AuthGateway:
		return identity.Gateway, nil
	case config.AuthFunction:
		return identity.Function(apikey.Authenticator{Client: client, Table: cfg.PaymentsTable}), nil
	}
	return nil, fmt.Errorf("configuration: AUTH = %q", cfg.Auth)
}
