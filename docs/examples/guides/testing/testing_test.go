// Package testing_test is the program of docs/guides/testing.md: the tests that a service with idem has.
package testing_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/middleware/audit"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

var place = idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}

// order is the handler under test.
func order(_ context.Context, tx *idem.Tx) (idem.Response, error) {
	tx.Write(memstore.Write{Key: "order/" + string(tx.OperationID()), Apply: func([]byte) []byte { return []byte("book") }})
	tx.Send("orders.ship", []byte(tx.OperationID()))
	return idem.JSON(http.StatusCreated, "placed")
}

// registered is the operation on a store.
func registered(t *testing.T, store storage.Store, cfg idem.Config) *idem.Registered {
	t.Helper()
	engine, err := idem.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	orders, err := engine.Register(place)
	if err != nil {
		t.Fatal(err)
	}
	return orders
}

func request(body string) idem.Request {
	return idem.Request{Tenant: "tenant-a", Key: "order-17", Input: canonical.Input{MediaType: "application/json", Body: []byte(body)}}
}

// 1. The handler alone: what it would commit.
func TestAnOrderIsShipped(t *testing.T) {
	result := idemtest.Run(t, order, idemtest.Of(place))
	if len(result.Writes) != 1 || result.Messages[0].Topic != "orders.ship" || result.Response.Status != 201 {
		t.Errorf("%+v", result)
	}
}

// 2. The process dies before and after each call to the store.
func TestAnOrderSurvivesCrashes(t *testing.T) {
	points := idemtest.Crash(t, idemtest.App{
		Operation: idem.Operation{Name: "orders.pay", Kind: idem.KindAtomic, Policy: idem.IETF()},
		Handler: func(*memstore.Store) idem.Handler {
			return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Write(memstore.Write{Key: "order", Apply: func([]byte) []byte { return []byte("paid") }})
				return idem.JSON(http.StatusCreated, "paid")
			}
		},
	})
	if points == 0 {
		t.Error("nothing crashed")
	}
}

// 3. A frozen clock, and a commit whose reply is lost: nobody waits, and one order is placed.
func TestALostReplyPlacesOneOrder(t *testing.T) {
	clock := idemtest.NewClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	inner, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	store := faulty.New(inner)
	orders := registered(t, store, idem.Config{Now: clock.Now, Pause: clock.Pause})

	store.On(faulty.Commit, 1, faulty.LoseReply())
	first, err := orders.Do(t.Context(), request(`{"item":"book"}`), order)
	if err != nil || first.Outcome != idem.OutcomeExecuted {
		t.Fatalf("%v, %v", first.Outcome, err)
	}
	clock.Advance(time.Hour)
	again, err := orders.Do(t.Context(), request(`{"item":"book"}`), order)
	if err != nil || again.Outcome != idem.OutcomeReplayed || string(again.Response.Body) != string(first.Response.Body) {
		t.Errorf("%v, %s, %v", again.Outcome, again.Response.Body, err)
	}
	if n := len(inner.Rows()); n != 1 {
		t.Errorf("%d orders", n)
	}
	clock.Advance(24 * time.Hour) // the retention is over: the key is new
	if later, err := orders.Do(t.Context(), request(`{"item":"book"}`), order); err != nil || later.Outcome != idem.OutcomeExecuted {
		t.Errorf("%v, %v", later.Outcome, err)
	}
}

// 4. Two requests at once, in a bubble of testing/synctest: its clock stands still until every goroutine waits.
func TestADuplicateInFlightIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		orders := registered(t, store, idem.Config{})
		slow := func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
			time.Sleep(time.Second)
			return order(ctx, tx)
		}
		first := make(chan *idem.Result, 1)
		go func() {
			result, err := orders.Do(t.Context(), request(`{}`), slow)
			if err != nil {
				t.Error(err)
			}
			first <- result
		}()
		synctest.Wait() // the first one sleeps in its handler
		second, err := orders.Do(t.Context(), request(`{}`), order)
		if err != nil || second.Outcome != idem.OutcomeInProgress || second.RetryAfter <= 0 {
			t.Errorf("%+v, %v", second, err)
		}
		if result := <-first; result.Outcome != idem.OutcomeExecuted {
			t.Errorf("%+v", result)
		}
	})
}

// 5. The same on a real DynamoDB endpoint: expressions and items, which memory does not check.
func TestOnDynamoDB(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables, err := dynamotest.CreateTables(t.Context(), client, "testing")
		if err != nil {
			t.Fatal(err)
		}
		store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
		if err != nil {
			t.Fatal(err)
		}
		orders := registered(t, store, idem.Config{})
		ship := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Send("orders.ship", []byte(tx.OperationID()))
			return idem.JSON(http.StatusCreated, "placed")
		}
		for _, want := range []idem.Outcome{idem.OutcomeExecuted, idem.OutcomeReplayed} {
			if result, err := orders.Do(t.Context(), request(`{"item":"book"}`), ship); err != nil || result.Outcome != want {
				t.Errorf("%v, %v, want %s", result.Outcome, err, want)
			}
		}
		mismatch, err := orders.Do(t.Context(), request(`{"item":"pen"}`), ship)
		if err != nil || mismatch.Outcome != idem.OutcomeMismatch {
			t.Errorf("%v, %v", mismatch.Outcome, err)
		}
	})
}

// 6. A release that loses the keys of clients: a name that vanished, or a scope that changed. A file beside the code has what was released.
func TestNoReleasedNameIsLost(t *testing.T) {
	for released, found := range map[string]string{
		`{"operations": [{"name": "orders.create", "scope": "tenant+operation+key"}]}`:               "",
		`{"operations": [{"name": "orders.place", "scope": "tenant+operation+key"}]}`:                "orders.place",
		`{"operations": [{"name": "orders.create", "scope": "tenant+key"}]}`:                         "scope",
		`{"operations": [{"name": "orders.create", "retired": "nobody has placed an order by it"}]}`: "retired",
	} {
		err := lost(t, released)
		if found == "" && err != nil || found != "" && (err == nil || !strings.Contains(err.Error(), found)) {
			t.Errorf("%s: %v", released, err)
		}
	}
}

func identify(*http.Request) (middleware.Identity, error) {
	return middleware.Identity{Tenant: "tenant-a"}, nil
}

// lost is what a release with this route has lost of what was released.
func lost(t *testing.T, released string) error {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: identify})
	if err != nil {
		t.Fatal(err)
	}
	router := mw.NewRouter()
	router.Handle("POST /orders", place, middleware.Route{}, func(ctx context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		return order(ctx, tx)
	})
	operations, err := audit.Read(strings.NewReader(released))
	if err != nil {
		t.Fatal(err)
	}
	return audit.Check(router.Routes(), operations)
}
