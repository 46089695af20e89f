package jmespath_test

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/function/jmespath"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// The key of a shipment is its order and the place that it goes to, wherever in the event the latter stands.
func ExampleKey() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		panic(err)
	}
	shipments, err := function.New(engine,
		idem.Operation{Name: "shipments.create", Kind: idem.KindAtomic, Policy: idem.IETF()},
		function.Config{Tenant: "shop", Key: jmespath.Key("detail.order", "detail.addresses[?type=='delivery'] | [0].id")})
	if err != nil {
		panic(err)
	}
	ship := func(context.Context, *idem.Tx, []byte) ([]byte, error) { return []byte("shipped"), nil }
	for _, event := range []string{
		`{"detail":{"order":17,"addresses":[{"type":"invoice","id":"a1"},{"type":"delivery","id":"a2"}]}}`,
		`{"detail":{"order":17,"addresses":[{"type":"invoice","id":"a1"},{"type":"delivery","id":"a2"}]}}`,
		`{"detail":{"order":17,"addresses":[{"type":"delivery","id":"a3"}]}}`,
		`{"detail":{"order":17,"addresses":[]}}`,
	} {
		result, err := shipments.Do(context.Background(), []byte(event), ship)
		fmt.Printf("%s replayed=%v %v\n", result.Output, result.Replayed, err)
	}
	// Output:
	// shipped replayed=false <nil>
	// shipped replayed=true <nil>
	// shipped replayed=false <nil>
	//  replayed=false function: no key: part 1 ("detail.addresses[?type=='delivery'] | [0].id"): null or missing
}
