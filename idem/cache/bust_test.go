package cache_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/cache"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// While one instance's cache still replays the answer that was wrong, no other instance executes anew, whoever busted it and
// whatever was configured: an operator's command has no cache of its own, and nobody has to tell it of the others'.
func TestACacheBustFreesTheKeyOnlyWhenNoCacheHoldsTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		cache   cache.Config
		by      func(plain, cached storage.Store) storage.Store
		settles time.Duration
	}{
		"by an operator's engine, without a word": {cache.Config{}, func(plain, _ storage.Store) storage.Store { return plain }, time.Minute},
		"by an engine with a cache that is older": {cache.Config{MaxAge: time.Hour}, func(_, cached storage.Store) storage.Store { return cached }, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plain := must[*memstore.Store](t)(memstore.New(memstore.Config{}))
				cached := must[*cache.Store](t)(cache.New(plain, c.cache))
				_, serving := served(t, cached)
				_, other := served(t, plain)
				operator, _ := served(t, c.by(plain, cached))

				first := do(t, serving)
				if again := do(t, serving); again.Outcome != idem.OutcomeReplayed { // and the cache holds it
					t.Fatalf("%+v", again)
				}
				if _, err := operator.CacheBust(t.Context(), "t", first.OperationID, "", "wrong"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.settles)
				if held := do(t, other); held.Outcome == idem.OutcomeExecuted {
					t.Error("an instance executed while another's cache could replay")
				}
				time.Sleep(time.Minute) // what a write may take to land, and the clocks' difference
				if anew := do(t, other); anew.Outcome != idem.OutcomeExecuted {
					t.Errorf("%+v, want it executed at last", anew)
				}
			})
		})
	}
}

// served is an engine on the store, and an operation that reads first, as a cache is for.
func served(t *testing.T, store storage.Store) (*idem.Engine, *idem.Registered) {
	t.Helper()
	engine := must[*idem.Engine](t)(idem.New(store, idem.Config{Logger: slog.New(slog.DiscardHandler)}))
	op := idem.Operation{Name: "orders.create", Kind: storage.KindOptimistic, Policy: idem.IETF(), ReadFirst: true}
	return engine, must[*idem.Registered](t)(engine.Register(op))
}

func do(t *testing.T, op *idem.Registered) *idem.Result {
	t.Helper()
	return must[*idem.Result](t)(op.Do(t.Context(), idem.Request{Tenant: "t", Key: "k"}, func(context.Context, *idem.Tx) (storage.Response, error) {
		return storage.Response{Status: 200}, nil
	}))
}
