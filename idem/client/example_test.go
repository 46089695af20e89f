package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// newOrders is an API that loses its first answer.
func newOrders(runs *atomic.Int64) (*httptest.Server, error) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		return nil, err
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}})
	if err != nil {
		return nil, err
	}
	op := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	orders, err := mw.Handle(op, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		return idem.JSON(http.StatusCreated, map[string]int64{"order": runs.Add(1)})
	})
	if err != nil {
		return nil, err
	}
	var requests atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			orders.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		orders.ServeHTTP(w, r)
	})), nil
}

// A lost answer is asked for again with the same key, and the order is made once.
func Example() {
	var runs atomic.Int64
	api, err := newOrders(&runs)
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	transport, err := client.New(client.Config{BackoffBase: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	res, err := (&http.Client{Transport: transport}).Post(api.URL+"/orders", "application/json", strings.NewReader(`{"item":"book"}`))
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.StatusCode, string(body), "- replayed:", res.Header.Get("Idempotent-Replayed"), "- runs:", runs.Load())
	// Output:
	// 201 {"order":1} - replayed: true - runs: 1
}

// A process that ends before it has the answer goes on with the same key when it is back.
func ExampleWithOperation() {
	var runs atomic.Int64
	api, err := newOrders(&runs)
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	dir, err := os.MkdirTemp("", "journal-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for range 2 { // each turn is a process
		journal, err := client.OpenFileJournal(dir, 0)
		if err != nil {
			log.Fatal(err)
		}
		transport, err := client.New(client.Config{Journal: journal, AttemptsMax: 1})
		if err != nil {
			log.Fatal(err)
		}
		ctx := client.WithOperation(context.Background(), "cart-17/order")
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, api.URL+"/orders", strings.NewReader(`{"item":"book"}`))
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := (&http.Client{Transport: transport}).Do(r)
		if errors.Is(err, client.ErrUnknown) {
			fmt.Println("unknown; the journal has the key")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		res.Body.Close()
		fmt.Println(res.StatusCode, "- runs:", runs.Load())
		// The answer is kept where a restart finds it; only then:
		if err := transport.Done(ctx, "cart-17/order", client.KeyOf(res)); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// unknown; the journal has the key
	// 201 - runs: 1
}
