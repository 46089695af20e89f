// Command nethttp is a service that was there before idem: orders, on net/http, which its own PutItem writes to DynamoDB.
// What protects it stands between the markers; nothing else of it changed.
//
// What the handler did when its process died, or when it answered with a 5xx, is not known: UnknownToOperator keeps such a
// key until a person decides.
//
// Before the first start, the two tables of package schema must be there: infra/idemconstruct.NewTables makes them.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	// idem: begin
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/middleware"
	// idem: end
)

func main() {
	client := dynamodb.NewFromConfig(must(config.LoadDefaultConfig(context.Background())))
	server := http.Server{Addr: ":8080", Handler: newService(client), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newService is the service's routes.
func newService(client *dynamodb.Client) http.Handler {
	orders := orders{client}
	var create http.Handler = http.HandlerFunc(orders.create)
	// idem: begin
	store := must(dynamo.New(client, dynamo.Config{IdempotencyTable: "shop-idempotency", OutboxTable: "shop-outbox"}))
	engine := must(idem.New(store, idem.Config{}))
	mw := must(middleware.New(engine, middleware.Config{Identify: func(r *http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: customer(r)}, nil
	}}))
	protect := must(mw.Middleware(idem.Operation{Name: "orders.create", Policy: idem.IETF(), UnknownToOperator: true}, middleware.Route{}))
	create = protect(create)
	// idem: end
	mux := http.NewServeMux()
	mux.Handle("POST /orders", create)
	mux.HandleFunc("GET /orders/{id}", orders.get)
	return authenticated(mux)
}

const ordersTable = "shop-orders"

type orders struct{ client *dynamodb.Client }

type order struct {
	ID   string `json:"id"`
	Item string `json:"item"`
}

func (o orders) create(w http.ResponseWriter, r *http.Request) {
	var placed order
	if err := json.NewDecoder(r.Body).Decode(&placed); err != nil || placed.Item == "" {
		http.Error(w, "an order names an item", http.StatusBadRequest)
		return
	}
	placed.ID = uuid.NewString() // and never what the body says
	_, err := o.client.PutItem(r.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(ordersTable),
		Item: map[string]types.AttributeValue{
			"pk":   &types.AttributeValueMemberS{Value: customer(r) + "/" + placed.ID},
			"item": &types.AttributeValueMemberS{Value: placed.Item},
		},
	})
	if err != nil {
		log.Printf("put order: %v", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Location", "/orders/"+placed.ID)
	answer(w, http.StatusCreated, placed)
}

func (o orders) get(w http.ResponseWriter, r *http.Request) {
	found, err := o.client.GetItem(r.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(ordersTable),
		Key:       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: customer(r) + "/" + r.PathValue("id")}},
	})
	if err != nil {
		log.Printf("get order: %v", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	item, ok := found.Item["item"].(*types.AttributeValueMemberS)
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer(w, http.StatusOK, order{ID: r.PathValue("id"), Item: item.Value})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Printf("answer: %v", err)
	}
}

// authenticated lets customers in. A service would check the password.
func authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if customer(r) == "" {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// customer is who sent the request.
func customer(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return name
}

// must ends a service that can't start.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
