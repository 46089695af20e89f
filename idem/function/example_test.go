package function_test

import (
	"context"
	"fmt"
	"log"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// newCharges makes a function that charges once for each order.
func newCharges(engine *idem.Engine) (*function.Function, error) {
	return function.New(engine,
		idem.Operation{Name: "charges.create", Kind: idem.KindAtomic, Policy: idem.IETF()},
		function.Config{Tenant: "shop", Key: function.JSONPointer("/order")})
}

// chargeOrder writes through its transaction. On DynamoDB the write would be a Put of the SDK.
func chargeOrder(_ context.Context, tx *idem.Tx, order []byte) ([]byte, error) {
	fmt.Printf("charging %s\n", order)
	tx.Write(memstore.Write{Key: "charge", Apply: func([]byte) []byte { return order }})
	return []byte(`{"charged":true}`), nil
}

func newEngine() *idem.Engine {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return engine
}

func Example() {
	charges, err := newCharges(newEngine())
	if err != nil {
		log.Fatal(err)
	}
	for _, order := range []string{`{"order": 17}`, `{"order": 17}`, `{"order": null}`} {
		result, err := charges.Do(context.Background(), []byte(order), chargeOrder)
		fmt.Printf("%s replayed=%v %v\n", result.Output, result.Replayed, err)
	}
	// Output:
	// charging {"order": 17}
	// {"charged":true} replayed=false <nil>
	// {"charged":true} replayed=true <nil>
	//  replayed=false function: no key: part 0 ("/order"): null or missing
}

// A function of Go values, for lambda.Start.
func ExampleTyped() {
	charges, err := newCharges(newEngine())
	if err != nil {
		log.Fatal(err)
	}
	type order struct {
		Order int `json:"order"`
	}
	handler := function.Typed(charges, func(_ context.Context, tx *idem.Tx, o order) (string, error) {
		return fmt.Sprintf("charged for %d", o.Order), nil
	})
	fmt.Println(handler(context.Background(), order{17}))
	// Output: charged for 17 <nil>
}
