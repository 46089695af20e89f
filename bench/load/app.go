package main

import (
	"context"
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

const (
	topic = "load.charges"
	// keyHeader is where a request's key stands for every side, beside idem's own header.
	keyHeader = "X-Key"
	// connectionsMax is how many connections to DynamoDB and to the sides are kept open.
	connectionsMax = 128
)

// answer is the body of final responses: 300 bytes of JSON.
var answer = []byte(`{"id":"pay_0123456789abcdef","status":"succeeded","note":"` + strings.Repeat("x", 240) + `"}`)

// tables are those of an app.
type tables struct {
	dynamotest.Tables
	Rows string
}

func (t tables) shapes() map[string]schema.Table {
	return map[string]schema.Table{t.Idempotency: schema.Idempotency(), t.Outbox: schema.Outbox(), t.Rows: rowsShape}
}

var rowsShape = schema.Table{Key: "pk"}

// createTables makes tables of an app. The outbox has no stream: nobody reads it here, and emulators keep it in memory.
func createTables(ctx context.Context, url, name string) (tables, error) {
	t := tables{dynamotest.Tables{Idempotency: name + "-idempotency", Outbox: name + "-outbox"}, name + "-rows"}
	raw := dynamotest.Client(url)
	for table, shape := range t.shapes() {
		shape.StreamNewImage = false
		if err := dynamotest.CreateTable(ctx, raw, table, shape); err != nil {
			return t, err
		}
	}
	return t, nil
}

// newClient makes a client that keeps a connection for each of many callers.
func newClient(url string, options ...func(*dynamodb.Options)) *dynamodb.Client {
	pooled := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = connectionsMax, connectionsMax
	})
	pool := func(o *dynamodb.Options) { o.HTTPClient = sdkhttp.BufferedBody(pooled) }
	return dynamotest.Client(url, append([]func(*dynamodb.Options){pool}, options...)...)
}

// app is a small service on idem, each of whose operations writes one business row:
//
//	POST /v1/payments, deferred: the row and a message, answered 202
//	GET  /v1/operations/{id}
//	POST /atomic: the row in the transaction, answered 201
//	POST /wrapped: an http.Handler that writes the row itself, answered 201
type app struct {
	*http.ServeMux
	client *dynamodb.Client
	rows   string
}

// newApp makes the service on tables of an endpoint, and lets it ask for what an engine asks for once a process and once a
// minute.
func newApp(ctx context.Context, client *dynamodb.Client, t tables) (*app, error) {
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: t.Idempotency, OutboxTable: t.Outbox})
	if err != nil {
		return nil, err
	}
	silent := slog.New(slog.DiscardHandler) // what a log costs is its handler's
	engine, err := idem.New(store, idem.Config{Logger: silent})
	if err != nil {
		return nil, err
	}
	if err := engine.CheckScopeSecret(ctx); err != nil {
		return nil, err
	}
	mw, err := middleware.New(engine, middleware.Config{Logger: silent, Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}})
	if err != nil {
		return nil, err
	}
	a := &app{http.NewServeMux(), client, t.Rows}
	policy := idem.IETF()
	payments, err := mw.Handle(idem.Operation{Name: "load.payments", Kind: idem.KindDeferred, Policy: policy}, middleware.Route{}, a.accept)
	if err != nil {
		return nil, err
	}
	atomic, err := mw.Handle(idem.Operation{Name: "load.atomic", Kind: idem.KindAtomic, Policy: policy}, middleware.Route{}, a.insert)
	if err != nil {
		return nil, err
	}
	wrapped, err := mw.Wrap(idem.Operation{Name: "load.wrapped", Kind: idem.KindWrapped, Policy: policy, UnknownToOperator: true},
		middleware.Route{}, http.HandlerFunc(a.existing))
	if err != nil {
		return nil, err
	}
	a.Handle("POST /v1/payments", payments)
	a.Handle("GET /v1/operations/{id}", mw.Status(store))
	a.Handle("POST /atomic", atomic)
	a.Handle("POST /wrapped", wrapped)
	return a, a.warm(ctx)
}

// warm sends a first request.
func (a *app) warm(ctx context.Context) error {
	return post(ctx, inProcessClient(a), "/atomic", newKey())
}

func (a *app) put(key string) types.Put {
	return types.Put{
		TableName: &a.rows, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: key}, "st": &types.AttributeValueMemberS{Value: "pending"},
		},
	}
}

func (a *app) write(tx *idem.Tx) {
	tx.Write(dynamo.Put(a.put(string(tx.OperationID())),
		idem.Reject(idem.NewProblem(http.StatusConflict, "row_exists", "Row exists", "There is such a row."))))
}

func (a *app) accept(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
	a.write(tx)
	tx.Send(topic, r.Body)
	return idem.JSON(http.StatusAccepted, map[string]string{"operation": string(tx.OperationID()), "state": "pending"})
}

func (a *app) insert(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
	a.write(tx)
	return idem.Response{Status: http.StatusCreated, Header: []idem.Field{{Name: "Content-Type", Value: "application/json"}}, Body: answer}, nil
}

// existing is a handler that writes for itself.
func (a *app) existing(w http.ResponseWriter, r *http.Request) {
	put := a.put(r.Header.Get(keyHeader))
	_, err := a.client.PutItem(r.Context(), &dynamodb.PutItemInput{TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	respond(w)
}

func respond(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer)
}
