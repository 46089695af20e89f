package main

import (
	"testing"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/memstore"
)

func TestAnOrderThatIsSentTwiceIsPlacedOnce(t *testing.T) {
	store := must(memstore.New(memstore.Config{}))
	service := must(routes(store))
	first := check.Send(t, service, "POST", "/orders", "order-17", `{"item":"book"}`).Want(t, 201, "executed")
	again := check.Send(t, service, "POST", "/orders", "order-17", `{"item": "book"}`).Want(t, 201, "replayed")
	if again.Body != first.Body {
		t.Errorf("the retry got %s, the first request %s", again.Body, first.Body)
	}
	check.Send(t, service, "POST", "/orders", "order-17", `{"item":"pen"}`).Want(t, 422, "mismatch")
	check.Send(t, service, "POST", "/orders", "", `{"item":"book"}`).Want(t, 400, "")
	check.Send(t, service, "POST", "/orders", "order-18", `{}`).Want(t, 400, "executed")
	if rows := store.Rows(); len(rows) != 1 {
		t.Errorf("%d orders were placed, want 1", len(rows))
	}
}
