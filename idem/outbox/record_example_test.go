package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A handler that writes for itself dies after its effect. Nobody executes it again: what became of it is looked up, and
// every retry gets the answer that it would have given.
func ExampleRunner_Reconcile() {
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

	topics, err := outbox.NewTopics(outbox.Config{Now: clock}) // it sends no messages
	if err != nil {
		panic(err)
	}
	queue := memqueue.New(clock)
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	if err != nil {
		panic(err)
	}
	runner, err := outbox.NewRunner(worker, engine, map[string]outbox.Probe{
		operation: func(_ context.Context, r storage.Record) outbox.Finding {
			if order, ok := made[r.OperationID]; ok {
				return outbox.Executed{Response: idem.Response{Status: 201, Body: []byte(order)}}
			}
			return outbox.Absent{}
		},
	})
	if err != nil {
		panic(err)
	}
	now = now.Add(time.Minute) // it runs every minute
	report, err := runner.Reconcile(ctx)
	fmt.Println(report.Records.Completed, err)

	result, err := orders.Do(ctx, asking("k"), nil)
	fmt.Println(result.Outcome, result.Response.Status, string(result.Response.Body), err)
	// Output:
	// idem: handler: lost connection
	// 1 <nil>
	// replayed 201 order 7 <nil>
}

func exampleStore() *memstore.Store {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	return store
}

// exampleOrder accepts an order, and returns its operation.
func exampleOrder(engine *idem.Engine, payload string) idem.OperationID {
	orders, err := engine.Register(idem.Operation{Name: charging, Kind: idem.KindDeferred, Policy: idem.IETF()})
	if err != nil {
		panic(err)
	}
	result, err := orders.Do(context.Background(), asking("k"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Send("orders.ship", []byte(payload))
		return idem.Response{Status: 202}, nil
	})
	if err != nil {
		panic(err)
	}
	return result.OperationID
}
