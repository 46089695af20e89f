package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/docs/examples/postgres/internal/pgtest"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
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
