// Package service is the service: its API, its table, and the call of the warehouse. Command function runs it in Lambda, and command
// idemctl is its operator's.
package service

import (
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/lambdaapp/secret"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// OrdersTable is the variable that has the name of the table of orders.
const OrdersTable = "ORDERS_TABLE"

// Orders is the shape of the table of orders.
func Orders() schema.Table { return schema.Table{Key: "id"} }

// Configure is what the functions and the operator's command are made of.
func Configure(ctx context.Context) (lambdaapp.Config, error) {
	table, warehouse := os.Getenv(OrdersTable), os.Getenv("WAREHOUSE_URL")
	if table == "" || warehouse == "" {
		return lambdaapp.Config{}, errors.New(OrdersTable + " and WAREHOUSE_URL must be set")
	}
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return lambdaapp.Config{}, err
	}
	scope, err := secret.Scope(ctx, aws, os.Getenv(environment.ScopeSecretID)) // only the API and the command have one
	if err != nil {
		return lambdaapp.Config{}, err
	}
	topic, err := shipments(orders{table: table}, warehouse)
	return lambdaapp.Config{AWS: aws, Topics: []outbox.Topic{topic}, Engine: idem.Config{ScopeSecret: scope}}, err
}

// API is the service's HTTP API.
func API(app *lambdaapp.Application) (http.Handler, error) {
	return routes(app.Engine, app.Logger, orders{os.Getenv(OrdersTable), app.DynamoDB})
}

// Known is the order that an operation has placed, for operators; nil where there is none.
func Known(ctx context.Context, client *dynamodb.Client, customer string, id idem.OperationID, _ []operator.MessageView) (any, error) {
	found, err := orders{os.Getenv(OrdersTable), client}.find(ctx, customer, string(id))
	if found == nil {
		return nil, err
	}
	return found, err
}
