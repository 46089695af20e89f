package telemetry_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/telemetry"
)

// A request, and its duplicate: two lines, each of which is a metric.
func Example() {
	var out bytes.Buffer // os.Stdout, in a function
	handler, err := telemetry.NewHandler(slog.NewJSONHandler(&out, nil), telemetry.Config{Service: "orders"})
	if err != nil {
		panic(err)
	}
	store, err := memstore.New(memstore.Config{Now: time.Now})
	if err != nil {
		panic(err)
	}
	engine, err := idem.New(store, idem.Config{Logger: slog.New(handler)})
	if err != nil {
		panic(err)
	}
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		panic(err)
	}
	request := idem.Request{Tenant: "acme", Key: "k", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
	for range 2 {
		if _, err := orders.Do(context.Background(), request, func(context.Context, *idem.Tx) (idem.Response, error) {
			return idem.JSON(201, "made")
		}); err != nil {
			panic(err)
		}
	}
	for _, name := range []string{"created", "replay"} {
		fmt.Println(bytes.Count(out.Bytes(), []byte(`"idempotency.reserve.`+name+`":1`)), name)
	}
	// Output:
	// 1 created
	// 1 replay
}
