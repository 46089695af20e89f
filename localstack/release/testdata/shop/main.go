// Command shop is what a team writes first: a POST that runs once for each key. It prints what two requests with one key got.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"go.opentelemetry.io/otel"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/telemetry/otelidem"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

func main() {
	if _, err := dynamo.New(nil, dynamo.Config{}); err == nil {
		log.Fatal("a store without a client or tables was made")
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := handler(store)
	if err != nil {
		log.Fatal(err)
	}
	service := trace.Handler(otelidem.New(otel.GetTracerProvider()), orders)
	for range 2 {
		request := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{}`))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "order-17")
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, request)
		fmt.Println(answer.Code, answer.Header().Get("Idempotency-Status"))
	}
}

func handler(store *memstore.Store) (http.Handler, error) {
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		return nil, err
	}
	identify := func(*http.Request) (middleware.Identity, error) { return middleware.Identity{Tenant: "acme"}, nil }
	mw, err := middleware.New(engine, middleware.Config{Identify: identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	return mw.Handle(operation, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		return idem.JSON(http.StatusCreated, map[string]string{"id": "17"})
	})
}
