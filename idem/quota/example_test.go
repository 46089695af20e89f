package quota_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/quota"
)

// A tenant that has used up its keys is refused, and still gets the answers to its earlier requests.
func Example() {
	quotas, err := quota.New(quota.NewMemory(time.Now), quota.Config{
		Limits: func(string) quota.Limits { return quota.Limits{ActiveKeys: 2} },
	})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Quota: quotas})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		log.Fatal(err)
	}
	place := func(context.Context, *idem.Tx) (idem.Response, error) { return idem.JSON(201, "placed") }
	for _, key := range []string{"key-1", "key-2", "key-3", "key-1"} {
		request := idem.Request{Tenant: "tenant-a", Key: key, Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
		result, err := orders.Do(context.Background(), request, place)
		var over *idem.QuotaError
		switch {
		case errors.As(err, &over):
			fmt.Println(key, "429", over.Limit)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(key, result.Response.Status, result.Outcome)
		}
	}
	// Output:
	// key-1 201 executed
	// key-2 201 executed
	// key-3 429 active keys
	// key-1 201 replayed
}
