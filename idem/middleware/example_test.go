package middleware_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// newOrders protects one endpoint: what it writes, its messages and its response become visible together, once.
func newOrders(engine *idem.Engine, identify func(*http.Request) (middleware.Identity, error)) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: identify})
	if err != nil {
		return nil, err
	}
	op := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	return mw.Handle(op, middleware.Route{}, func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		id := string(tx.OperationID())
		tx.Write(insertOrder(id, r.Body))                                 // in the one transaction,
		tx.Send("orders.ship", []byte(id))                                // with the message that asks for an effect
		return idem.JSON(http.StatusCreated, map[string]string{"id": id}) // and the response that every retry gets
	})
}

// insertOrder is a business write. On DynamoDB it would be a Put of the SDK.
func insertOrder(id string, body []byte) idem.Write {
	return memstore.Write{
		Key:       "order#" + id,
		Condition: func(row []byte) bool { return row == nil },
		Apply:     func([]byte) []byte { return body },
		Failure:   idem.Reject(idem.NewProblem(http.StatusConflict, "order_exists", "Order exists", "There is such an order.")),
	}
}

func Example() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := newOrders(engine, func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil // from the gateway's authorizer
	})
	if err != nil {
		log.Fatal(err)
	}
	var bodies []string
	for range 2 {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"item":"book"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", `"order-17"`)
		w := httptest.NewRecorder()
		orders.ServeHTTP(w, r)
		bodies = append(bodies, w.Body.String())
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
	}
	fmt.Println("same bytes:", bodies[0] == bodies[1], "- orders:", len(store.Rows()), "- messages:", len(store.Messages()))
	// Output:
	// 201 executed
	// 201 replayed
	// same bytes: true - orders: 1 - messages: 1
}

// An existing handler is protected as it is. What it did when it crashed is not known, so it is not run again.
func ExampleMiddleware_Wrap() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	existing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("power cut") })
	protected, err := mw.Wrap(idem.Operation{Name: "orders.import", UnknownToOperator: true, Policy: idem.IETF()}, middleware.Route{}, existing)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		r := httptest.NewRequest("POST", "/import", strings.NewReader("a,b"))
		r.Header.Set("Idempotency-Key", `"import-1"`)
		w := httptest.NewRecorder()
		protected.ServeHTTP(w, r)
		fmt.Printf("%d, Retry-After %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 500, Retry-After ""
	// 409, Retry-After "10"
}
