package idem_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// A response that the engine lets pass and the store refuses would be known only when the work is done: there is one bound,
// and it is checked at start.
func TestOneBoundOnAResponse(t *testing.T) {
	for name, c := range map[string]struct {
		store, engine int
		refused       bool
	}{
		"above the store's": {store: 1000, engine: 1001, refused: true},
		"the store's":       {store: 1000, engine: 1000},
		"below the store's": {store: 1000, engine: 999},
		"none given":        {store: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			mem, err := memstore.New(memstore.Config{ResponseBytesMax: c.store})
			if err != nil {
				t.Fatal(err)
			}
			engine, err := idem.New(faulty.New(mem), idem.Config{ResponseBytesMax: c.engine})
			if c.refused {
				var rejected *idem.ConfigError
				if !errors.As(err, &rejected) || rejected.Field != "Config.ResponseBytesMax" || rejected.Value != c.engine {
					t.Errorf("got %v, want the bound rejected", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantLargest(t, engine, mem, c.store)
		})
	}
}

// wantLargest demands that no response is refused by the store when its handler has run: what is too large for it is what
// the engine stores the 500 of (peers.md P6), and is not executed again.
func wantLargest(t *testing.T, engine *idem.Engine, mem *memstore.Store, most int) {
	t.Helper()
	orders, err := engine.Register(idem.Operation{Name: "orders.import", Kind: idem.KindWrapped, UnknownToOperator: true, Policy: idem.IETF()})
	if err != nil {
		t.Fatal(err)
	}
	for size, status := range map[int]int{most - 100: 201, most + 100: 500} {
		req := idem.Request{Tenant: "t", Key: time.Duration(size).String()}
		result, err := orders.Do(t.Context(), req, func(context.Context, *idem.Tx) (idem.Response, error) {
			return idem.Response{Status: 201, Body: make([]byte, size)}, nil
		})
		if err != nil || result.State != storage.StateCompleted || result.Response.Status != status {
			t.Errorf("%d bytes: %+v, %v, want a stored %d", size, result, err, status)
		}
	}
	for _, r := range mem.Records() {
		if r.State != storage.StateCompleted {
			t.Errorf("a record is %s", r.State)
		}
	}
}

func TestAStoreWithoutABoundTakesAll(t *testing.T) {
	if got := storage.ResponseBytesMaxOf(struct{ storage.Store }{}); got != math.MaxInt {
		t.Errorf("got %d", got)
	}
}
