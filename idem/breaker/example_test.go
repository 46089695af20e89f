package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// While the store is down, requests are answered at once: 503, and when to come again.
func Example() {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	down := faulty.New(mem)
	down.All(faulty.LoseRequest())
	store, err := breaker.New(down, breaker.Config{FailuresMax: 1, OpenFor: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		panic(err)
	}
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: storage.KindOptimistic, Policy: idem.IETF()})
	if err != nil {
		panic(err)
	}
	request := idem.Request{Tenant: "tenant-a", Key: "order-17", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
	for range 2 {
		_, err = orders.Do(context.Background(), request, func(context.Context, *idem.Tx) (storage.Response, error) {
			return idem.JSON(201, "never reached")
		})
	}
	var unavailable *idem.UnavailableError
	var notAsked *storage.NotAskedError
	fmt.Println(errors.As(err, &unavailable), errors.As(err, &notAsked), unavailable.RetryAfter.Round(time.Second))
	// Output: true true 10s
}
