package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

const rowsTable = "overhead-rows"

// answer is the body of every response: 300 bytes of JSON.
var answer = []byte(`{"id":"pay_0123456789abcdef","status":"succeeded","note":"` + strings.Repeat("x", 240) + `"}`)

// createTables makes the store's tables and the business table.
func createTables(ctx context.Context, url string) (dynamotest.Tables, error) {
	client := dynamotest.Client(url)
	tables, err := dynamotest.CreateTables(ctx, client, "overhead")
	if err != nil {
		return tables, err
	}
	return tables, dynamotest.CreateTable(ctx, client, rowsTable, schema.Table{Key: "pk"})
}

// newClient makes a client that keeps a connection for each of many callers.
func newClient(url string, options ...func(*dynamodb.Options)) *dynamodb.Client {
	pooled := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*concurrent, 2*concurrent
	})
	return dynamotest.Client(url, append(options, func(o *dynamodb.Options) { o.HTTPClient = sdkhttp.BufferedBody(pooled) })...)
}

// newApp makes the endpoints of the paths on one store, in the order of the paths.
func newApp(client *dynamodb.Client, tables dynamotest.Tables, paths []path) ([]http.Handler, error) {
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
	if err != nil {
		return nil, err
	}
	silent := slog.New(slog.DiscardHandler) // what a log costs is its handler's
	engine, err := idem.New(store, idem.Config{Logger: silent})
	if err != nil {
		return nil, err
	}
	if err := engine.CheckScopeSecret(context.Background()); err != nil { // once a process, whatever it serves
		return nil, err
	}
	mw, err := middleware.New(engine, middleware.Config{Logger: silent, Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}})
	if err != nil {
		return nil, err
	}
	endpoints := make([]http.Handler, len(paths))
	for i, p := range paths {
		if p.operation.Kind == idem.KindWrapped {
			endpoints[i], err = mw.Wrap(p.operation, middleware.Route{}, http.HandlerFunc(respond))
		} else {
			endpoints[i], err = mw.Handle(p.operation, middleware.Route{}, insert)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return endpoints, nil
}

// insert is a handler that writes one business row.
func insert(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
	tx.Write(dynamo.Put(types.Put{
		TableName: aws.String(rowsTable), ConditionExpression: aws.String("attribute_not_exists(pk)"),
		Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: string(tx.OperationID())},
			"st": &types.AttributeValueMemberS{Value: "pending"},
		},
	}, idem.Reject(idem.NewProblem(http.StatusConflict, "row_exists", "Row exists", "There is such a row."))))
	return idem.Response{Status: http.StatusCreated, Header: []idem.Field{{Name: "Content-Type", Value: "application/json"}}, Body: answer}, nil
}

// respond is an existing handler; what it would write is not idem's.
func respond(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer)
}
