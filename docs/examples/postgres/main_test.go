package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgtest"
	"github.com/idem-go/idem-aws/idem"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childVariable); url != "" {
		serveAsChild(url)
	}
	os.Exit(pgtest.Main(m))
}

// shop is the service's database.
type shop struct{ *pgxpool.Pool }

func openShop(t *testing.T, url string) shop {
	t.Helper()
	pool, err := open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return shop{pool}
}

// want demands how many orders there are, and what is left of the stock.
func (s shop) want(t *testing.T, orders, books, lamps int) {
	t.Helper()
	var got [3]int
	err := s.QueryRow(context.WithoutCancel(t.Context()), `select (select count(*) from orders),
		(select in_stock from stock where item = 'book'), (select in_stock from stock where item = 'lamp')`).Scan(&got[0], &got[1], &got[2])
	if want := [3]int{orders, books, lamps}; err != nil || got != want {
		t.Errorf("orders, books and lamps are %v (%v), want %v", got, err, want)
	}
}

func TestOnPostgreSQLAnOrderThatIsSentTwiceIsPlacedOnce(t *testing.T) {
	s := openShop(t, pgtest.Database(t)(""))
	store, err := pgstore.New(s.Pool, pgstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	service, err := routes(s.Pool, store, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	first := check.Send(t, service, "POST", "/orders", "order-17", `{"item":"book","quantity":2}`).Want(t, 201, "executed")
	again := check.Send(t, service, "POST", "/orders", "order-17", `{ "quantity": 2, "item": "book" }`).Want(t, 201, "replayed")
	if again.Body != first.Body {
		t.Errorf("the retry got %s, the first request %s", again.Body, first.Body)
	}
	s.want(t, 1, 998, 1)
	check.Send(t, service, "POST", "/orders", "order-17", `{"item":"lamp"}`).Want(t, 422, "mismatch")
	check.Send(t, service, "POST", "/orders", "", `{"item":"book"}`).Want(t, 400, "")
	check.Send(t, service, "POST", "/orders", "order-18", `{"id":"mine","item":"book"}`).Want(t, 400, "executed")
	s.want(t, 1, 998, 1)

	check.Send(t, service, "POST", "/orders", "order-19", `{"item":"lamp"}`).Want(t, 201, "executed")
	sold := check.Send(t, service, "POST", "/orders", "order-20", `{"item":"lamp"}`).Want(t, 409, "executed")
	s.want(t, 2, 998, 0)
	if _, err := s.Exec(t.Context(), "update stock set in_stock = 5 where item = 'lamp'"); err != nil {
		t.Fatal(err)
	}
	if again := check.Send(t, service, "POST", "/orders", "order-20", `{"item":"lamp"}`).Want(t, 409, "replayed"); again.Body != sold.Body {
		t.Errorf("the retry got %s, the first request %s", again.Body, sold.Body)
	}
	s.want(t, 2, 998, 5)

	id := (orderOf(t, first)).ID
	if got := orderOf(t, check.Send(t, service, "GET", "/orders/"+id, "", "").Want(t, 200, "")); got != (order{id, "book", 2}) {
		t.Errorf("the order is %+v", got)
	}
	check.Send(t, service, "GET", "/orders/none", "", "").Want(t, 404, "")
}

// What the columns can't hold, and an item that nobody sells, are answers and not errors.
func TestOnPostgreSQLAnOrderThatCannotBePlacedIsAnswered(t *testing.T) {
	s := openShop(t, pgtest.Database(t)(""))
	store, err := pgstore.New(s.Pool, pgstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	service, err := routes(s.Pool, store, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for key, c := range map[string]struct {
		body   string
		status int
	}{
		"unknown":  {`{"item":"nobody sells it"}`, 409},
		"too-many": {`{"item":"book","quantity":3000000000}`, 400},
		"zero":     {`{"item":"a\u0000b"}`, 400},
	} {
		check.Send(t, service, "POST", "/orders", key, c.body).Want(t, c.status, "executed")
		check.Send(t, service, "POST", "/orders", key, c.body).Want(t, c.status, "replayed")
	}
	s.want(t, 0, 1000, 1)
}

// Instances of a service start at once, on a database that has nothing yet, and later beside transactions that write.
func TestOnPostgreSQLInstancesStartBesideEachOther(t *testing.T) {
	url := pgtest.Schema(t)
	starts := make(chan error)
	for range 4 {
		go func() {
			pool, err := open(t.Context(), url(""))
			if err == nil {
				pool.Close()
			}
			starts <- err
		}()
	}
	for range 4 {
		if err := <-starts; err != nil {
			t.Error(err)
		}
	}
	s := openShop(t, url(""))
	writing, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Rollback(context.WithoutCancel(t.Context()))
	if _, err := writing.Exec(t.Context(), "insert into idem_tokens (token, content, sent_at) values ('t', '', now())"); err != nil {
		t.Fatal(err)
	}
	openShop(t, url("")) // a wait for the writer ends with an error after four seconds
}

func TestOnPostgreSQLOfOrdersThatAreSentAtOnceOneIsPlaced(t *testing.T) {
	s := openShop(t, pgtest.Database(t)(""))
	store, err := pgstore.New(s.Pool, pgstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	service, err := routes(s.Pool, store, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := check.Send(t, service, "POST", "/orders", "order-17", `{"item":"book"}`); got.Status != 201 && got.Idempotency != "in_progress" {
				t.Errorf("got %+v", got)
			}
		})
	}
	all.Wait()
	check.Send(t, service, "POST", "/orders", "order-17", `{"item":"book"}`).Want(t, 201, "replayed")
	s.want(t, 1, 999, 1)
}
