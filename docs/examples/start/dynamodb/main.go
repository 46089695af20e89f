// Command dynamodb is the second step of docs/start/ten-minutes.md: the same POST, on DynamoDB.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func main() {
	client := dynamodb.NewFromConfig(must(config.LoadDefaultConfig(context.Background())))
	store := must(dynamo.New(client, dynamo.Config{IdempotencyTable: "shop-idempotency", OutboxTable: "shop-outbox"}))
	service := must(routes(store))
	listener := must(net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080")))
	log.Printf("listening on %s", listener.Addr())
	server := http.Server{Handler: service, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

// routes protects POST /orders.
func routes(store *dynamo.Store) (http.Handler, error) {
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		return nil, err
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	protected, err := mw.Handle(operation, middleware.Route{}, create)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", protected)
	return mux, nil
}

// order is what a customer ordered.
type order struct {
	ID   string `json:"id"`
	Item string `json:"item"`
}

// create reads the request and decides. It writes nothing itself: what it passes to tx is committed together with its answer.
func create(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
	var wanted struct{ Item string }
	if err := json.Unmarshal(r.Body, &wanted); err != nil || wanted.Item == "" {
		return idem.JSON(http.StatusBadRequest, map[string]string{"error": "an order names an item"})
	}
	placed := order{ID: string(tx.OperationID()), Item: wanted.Item}
	tx.Write(insert(placed))
	return idem.JSON(http.StatusCreated, placed)
}

// insert is the row of an order: one of the SDK's own writes.
func insert(placed order) idem.Write {
	return dynamo.Put(types.Put{
		TableName: aws.String("shop-orders"),
		Item: map[string]types.AttributeValue{
			"id":   &types.AttributeValueMemberS{Value: placed.ID},
			"item": &types.AttributeValueMemberS{Value: placed.Item},
		},
	})
}

// identify says whose key it is. A key of one tenant never meets a key of another. A service would check the password.
func identify(r *http.Request) (middleware.Identity, error) {
	name, _, ok := r.BasicAuth()
	if !ok || name == "" {
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}
	return middleware.Identity{Tenant: name}, nil
}

// must ends a program that can't start.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
