package cache_test

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/cache"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Replays of a recent request are answered from memory: only the first of them is a read of the store.
func Example() {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	store, err := cache.New(mem, cache.Config{EntriesMax: 1000})
	if err != nil {
		panic(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		panic(err)
	}
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: storage.KindAtomic, ReadFirst: true, Policy: idem.IETF()})
	if err != nil {
		panic(err)
	}
	request := idem.Request{Tenant: "tenant-a", Key: "order-17", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
	for range 4 {
		result, err := orders.Do(context.Background(), request, func(context.Context, *idem.Tx) (storage.Response, error) {
			return idem.JSON(201, "ord_1")
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(result.Outcome, string(result.Response.Body))
	}
	fmt.Println("answered from memory:", store.Stats().Hits)
	// Output:
	// executed "ord_1"
	// replayed "ord_1"
	// replayed "ord_1"
	// replayed "ord_1"
	// answered from memory: 2
}
