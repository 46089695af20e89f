// Command memory is the first step of docs/start/ten-minutes.md: a POST that runs once for each key, on a store in memory.
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

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func main() {
	store := must(memstore.New(memstore.Config{}))
	service := must(routes(store))
	listener := must(net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080")))
	log.Printf("listening on %s", listener.Addr())
	server := http.Server{Handler: service, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

// routes protects POST /orders.
func routes(store *memstore.Store) (http.Handler, error) {
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

// insert is the row of an order.
func insert(placed order) idem.Write {
	return memstore.Write{
		Key:   "order/" + placed.ID,
		Apply: func([]byte) []byte { return []byte(placed.Item) },
	}
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
