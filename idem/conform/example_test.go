package conform_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/conform"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// A service is held against the policy that it declares, from outside.
func Example() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := newOrders(engine)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(orders)
	defer server.Close()

	report, err := conform.Check(context.Background(), conform.Target{
		URL: server.URL + "/orders", Body: []byte(`{"item":"book"}`), Policy: idem.IETF(),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Verdict != conform.Holds {
			fmt.Printf("%s %s: %s\n", f.Check, f.Verdict, f.Saw)
		}
	}
	fmt.Println("conforms:", report.Conforms())
	// Output:
	// no_credentials skipped: no Authorization is given
	// other_tenant skipped: there are no credentials of another tenant
	// conforms: true
}

func newOrders(engine *idem.Engine) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil // from the gateway's authorizer
	}})
	if err != nil {
		return nil, err
	}
	return mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{},
		func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
			return idem.JSON(http.StatusCreated, map[string]string{"id": string(tx.OperationID())})
		})
}
