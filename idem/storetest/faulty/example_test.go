package faulty_test

import (
	"context"
	"fmt"
	"log"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// The reply to a commit is lost. The engine sends the same transaction again, and the handler runs once.
func Example() {
	rows, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	store := faulty.New(rows)
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		log.Fatal(err)
	}

	store.On(faulty.Commit, 1, faulty.LoseReply())

	runs := 0
	request := idem.Request{Tenant: "tenant-a", Key: "key-1", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
	result, err := orders.Do(context.Background(), request, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		runs++
		tx.Send("orders.ship", []byte("17"))
		return idem.JSON(201, "placed")
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Outcome, result.Response.Status)
	fmt.Println("runs of the handler:", runs, "messages:", len(rows.Messages()))
	// Output:
	// executed 201
	// runs of the handler: 1 messages: 1
}
