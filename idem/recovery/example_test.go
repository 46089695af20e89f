package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/recovery"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A handler that writes for itself dies after its effect. Nobody executes it again: what became of it is looked up, and
// every retry gets the answer that it would have given.
func Example() {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	store, err := memstore.New(memstore.Config{Now: clock})
	if err != nil {
		panic(err)
	}
	engine, err := idem.New(store, idem.Config{Now: clock})
	if err != nil {
		panic(err)
	}
	orders, err := engine.Register(idem.Operation{Name: operation, Kind: idem.KindWrapped, Probed: true, Policy: idem.IETF()})
	if err != nil {
		panic(err)
	}
	made := map[idem.OperationID]string{}
	ctx := context.Background()
	_, err = orders.Do(ctx, asking("k"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		made[tx.OperationID()] = "order 7"
		return idem.Response{}, errors.New("lost connection")
	})
	fmt.Println(err)

	reconciler, err := recovery.NewReconciler(engine, store, map[string]recovery.Probe{
		operation: func(_ context.Context, r storage.Record) recovery.Finding {
			if order, ok := made[r.OperationID]; ok {
				return recovery.Found{Response: idem.Response{Status: 201, Body: []byte(order)}}
			}
			return recovery.Absent{}
		},
	}, recovery.Config{Now: clock})
	if err != nil {
		panic(err)
	}
	now = now.Add(time.Minute) // it runs every minute
	report, err := reconciler.Run(ctx)
	fmt.Println(report.Completed, err)

	result, err := orders.Do(ctx, asking("k"), nil)
	fmt.Println(result.Outcome, result.Response.Status, string(result.Response.Body), err)
	// Output:
	// idem: handler: lost connection
	// 1 <nil>
	// replayed 201 order 7 <nil>
}
