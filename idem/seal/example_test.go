package seal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// oneKey is the key of every tenant. Package tablekeys keeps one for each.
type oneKey struct{ erased bool }

func (k *oneKey) Current(context.Context, string) (seal.Key, error) {
	if k.erased {
		return seal.Key{}, storage.ErrErased
	}
	return seal.Key{ID: 1, Secret: [seal.KeyBytes]byte([]byte("0123456789abcdef0123456789abcdef")), Current: true}, nil
}

func (k *oneKey) Open(ctx context.Context, tenant string, _ uint32) (seal.Key, error) {
	return k.Current(ctx, tenant)
}

// What is stored can't be read without the tenant's key; a replay opens it. Once the key is erased nobody can.
func Example() {
	tables, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	keys := &oneKey{}
	// process is the engine of one process. Each holds keys for as long as Config.KeyAgeMax.
	process := func() *idem.Registered {
		store, err := seal.New(tables, seal.Config{Keys: keys, SealedOnly: true})
		if err != nil {
			panic(err)
		}
		engine, err := idem.New(store, idem.Config{})
		if err != nil {
			panic(err)
		}
		orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: storage.KindAtomic, Policy: idem.IETF()})
		if err != nil {
			panic(err)
		}
		return orders
	}
	create := func(orders *idem.Registered) {
		request := idem.Request{Tenant: "ada", Key: "order-17", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
		result, err := orders.Do(context.Background(), request, func(context.Context, *idem.Tx) (storage.Response, error) {
			return idem.JSON(201, "card 4111")
		})
		if err != nil {
			fmt.Println("erased:", errors.Is(err, storage.ErrErased))
			return
		}
		fmt.Println(result.Outcome, string(result.Response.Body))
	}
	orders := process()
	create(orders)
	fmt.Println("readable in the table:", bytes.Contains(tables.Records()[0].Response.Body, []byte("4111")))
	create(orders)
	keys.erased = true
	create(process())
	// Output:
	// executed "card 4111"
	// readable in the table: false
	// replayed "card 4111"
	// erased: true
}
