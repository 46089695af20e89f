// Command postgres is a service whose store is PostgreSQL: a shop that takes orders. An order, the stock that it takes and the
// answer that every retry gets are one transaction of the database.
//
//	DATABASE_URL=postgres://shop@127.0.0.1/shop go run .
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

//go:embed orders.sql
var ordersSchema string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("DATABASE_URL"), cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"), idem.Config{}); err != nil {
		log.Fatal(err)
	}
}

// run serves until the context ends.
func run(ctx context.Context, database, listen string, cfg idem.Config) error {
	pool, err := open(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgstore.New(pool, pgstore.Config{})
	if err != nil {
		return err
	}
	service, err := routes(pool, store, cfg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	log.Printf("listening on %s", listener.Addr())
	go purge(ctx, store)
	server := &http.Server{Handler: service, ReadHeaderTimeout: 10 * time.Second}
	shut := make(chan error, 1)
	context.AfterFunc(ctx, func() { shut <- server.Shutdown(context.WithoutCancel(ctx)) })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-shut // requests that were under way are answered
}

// open connects to the database and makes the tables that are not there yet.
func open(ctx context.Context, database string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	pgstore.Bound(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	err = pgstore.Create(ctx, pool, "idem_records", pgstore.Schema)
	if err == nil {
		err = pgstore.Create(ctx, pool, "orders", ordersSchema)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// routes are POST /orders, which is protected, and GET /orders/{id}.
func routes(pool *pgxpool.Pool, store *pgstore.Store, cfg idem.Config) (http.Handler, error) {
	engine, err := idem.New(store, cfg)
	if err != nil {
		return nil, err
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	place, err := mw.Handle(operation, middleware.Route{}, placeOrder)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", place)
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) { showOrder(pool, w, r) })
	return mux, nil
}

// identify says whose key it is. A service would check the password.
func identify(r *http.Request) (middleware.Identity, error) {
	name, _, ok := r.BasicAuth()
	if !ok || name == "" {
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}
	return middleware.Identity{Tenant: name}, nil
}

// purge does once a minute what native TTL does on DynamoDB. Any number of instances may do it.
func purge(ctx context.Context, store *pgstore.Store) {
	every := time.NewTicker(time.Minute)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-every.C:
			if _, err := store.Purge(ctx, now); err != nil {
				log.Print(err)
			}
		}
	}
}
