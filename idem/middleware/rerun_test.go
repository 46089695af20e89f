package middleware_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// docs/semantics.md "Kinds": a handler that lost its lock runs again, on the request as it came. What the first run made of its
// body, its header and its address is that run's own.
func TestEachRunIsGivenTheRequestAsItCame(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic, idem.KindDeferred} {
		t.Run(string(kind), func(t *testing.T) {
			a := newAPI(t, nil)
			runs := 0
			a.handle("POST /orders", idem.Operation{Kind: kind}, middleware.Route{}, func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
				runs++
				read, err := io.ReadAll(r.HTTP.Body)
				if err != nil || string(r.Body) != `{"amount":500}` || !bytes.Equal(read, r.Body) || r.HTTP.Header.Get("Shop") != "17" || r.HTTP.URL.Path != "/orders" {
					t.Errorf("run %d got %q, %q, %v, %q of %q", runs, r.Body, read, err, r.HTTP.Header.Get("Shop"), r.HTTP.URL.Path)
				}
				copy(r.Body, "spoiled")
				r.HTTP.Header.Set("Shop", "18")
				r.HTTP.URL.Path = "/elsewhere"
				tx.Write(memstore.Write{Key: "lock", Condition: func([]byte) bool { return tx.Attempt() > 1 }, Failure: idem.Retry()})
				if kind == idem.KindDeferred {
					tx.Send("orders.place", []byte("order"))
					return idem.JSON(http.StatusAccepted, runs)
				}
				return idem.JSON(http.StatusCreated, runs)
			})
			got := a.do(key(ask{body: `{"amount":500}`, header: map[string]string{"Shop": "17"}}))
			if string(got.body) != "2" || runs != 2 {
				t.Errorf("%d %s after %d runs", got.StatusCode, got.body, runs)
			}
		})
	}
}
