package memstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// An operation commits its own row, a message and its response in one transaction. The test then looks at what is stored.
func Example() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		log.Fatal(err)
	}
	place := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Write(memstore.Write{
			Key:       "order#17",
			Condition: func(row []byte) bool { return row == nil },
			Apply:     func([]byte) []byte { return []byte("one book") },
			Failure:   idem.Reject(idem.NewProblem(409, "order_exists", "Order exists", "There is such an order.")),
		})
		tx.Send("orders.ship", []byte("17"))
		return idem.JSON(201, "placed")
	}
	request := idem.Request{Tenant: "tenant-a", Key: "key-1", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
	for range 2 {
		result, err := orders.Do(context.Background(), request, place)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Outcome, result.Response.Status)
	}
	fmt.Printf("row: %s\n", store.Row("order#17"))
	fmt.Println("records:", len(store.Records()), "messages:", len(store.Messages()))
	// Output:
	// executed 201
	// replayed 201
	// row: one book
	// records: 1 messages: 1
}
