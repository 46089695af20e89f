package idem_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// waiting is a world whose engine lets so many requests wait at once.
func waiting(t *testing.T, most, ofTenant int) *world {
	t.Helper()
	w := newWorld(t, nil)
	engine, err := idem.New(w.mem, idem.Config{WaitsMax: most, WaitsPerTenantMax: ofTenant})
	if err != nil {
		t.Fatal(err)
	}
	w.engine = engine
	return w
}

// of is request("{}") of a tenant.
func of(tenant string) idem.Request {
	req := request("{}")
	req.Tenant = tenant
	return req
}

// together runs ask n times at once, and counts those that took the time.
func together(t *testing.T, n int, took time.Duration, ask func() error) (waited int) {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	for range n {
		group.Go(func() {
			began := time.Now()
			err := ask()
			mu.Lock()
			defer mu.Unlock()
			switch lasted := time.Since(began); {
			case err != nil:
				t.Error(err)
			case lasted >= took:
				waited++
			case lasted > 0:
				t.Errorf("was answered after %v, want at once or after %v", lasted, took)
			}
		})
	}
	group.Wait()
	return waited
}

// A wait for a final answer is held for so many of a tenant, and of all; the others get what there is at once. What has waited
// makes room.
func TestAwaitIsBoundedByTenantAndInstance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := waiting(t, 5, 3)
		orders := w.register(idem.Operation{Kind: idem.KindDeferred})
		await := func(tenant string) func() error {
			id := w.do(orders, of(tenant), w.handler(202)).OperationID
			return func() error {
				r, err := w.engine.Await(t.Context(), tenant, id, 10*time.Second)
				if r == nil || r.State.Final() {
					t.Errorf("%s: %+v, want it pending", tenant, r)
				}
				return err
			}
		}
		greedy, other := await("greedy"), await("other")
		for range 2 {
			var group sync.WaitGroup
			group.Go(func() {
				if waited := together(t, 20, 9*time.Second, greedy); waited != 3 {
					t.Errorf("%d of 20 waited, want 3 of a tenant", waited)
				}
			})
			time.Sleep(time.Second)
			if waited := together(t, 20, 9*time.Second, other); waited != 2 {
				t.Errorf("%d of 20 waited, want 2, which the first tenant has left", waited)
			}
			group.Wait()
		}
	})
}

// Of the duplicates that a policy lets wait for the winner as many wait, and get its answer; the others get the 409.
func TestDuplicatesThatWaitAreBounded(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		t.Run(string(kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := waiting(t, 3, 2)
				policy := idem.IETF()
				policy.InFlight, policy.WaitMax = idem.InFlightWait, 20*time.Second
				orders := w.register(idem.Operation{Kind: kind, Policy: policy})
				slow := func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
					time.Sleep(5 * time.Second)
					return idem.JSON(201, 1)
				}
				for range 2 { // what has waited has made room for others
					key := time.Now().String()
					ask := func(tenant string) (*idem.Result, error) {
						req := of(tenant)
						req.Key = key
						return orders.Do(t.Context(), req, slow)
					}
					var winners sync.WaitGroup
					for _, tenant := range []string{"greedy", "other"} {
						winners.Go(func() {
							if result, err := ask(tenant); err != nil || result.Outcome != idem.OutcomeExecuted {
								t.Errorf("%+v, %v", result, err)
							}
						})
					}
					time.Sleep(time.Second)
					duplicate := func(tenant string) func() error {
						return func() error {
							began := time.Now()
							result, err := ask(tenant)
							if err == nil && (result.Outcome == idem.OutcomeReplayed) != (time.Since(began) > 0) {
								t.Errorf("%s after %v", result.Outcome, time.Since(began))
							}
							if err == nil && result.Outcome == idem.OutcomeInProgress && result.RetryAfter <= 0 {
								t.Error("no Retry-After")
							}
							return err
						}
					}
					var group sync.WaitGroup
					group.Go(func() {
						if waited := together(t, 10, 3*time.Second, duplicate("greedy")); waited != 2 {
							t.Errorf("%d of 10 waited, want 2 of a tenant", waited)
						}
					})
					time.Sleep(time.Millisecond)
					if waited := together(t, 10, 3*time.Second, duplicate("other")); waited != 1 {
						t.Errorf("%d of 10 waited, want the one that is left", waited)
					}
					group.Wait()
					winners.Wait()
				}
			})
		})
	}
}

// A client that hangs up waits no longer, and leaves its place to the next.
func TestAClientThatHangsUpLeavesItsWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := waiting(t, 1, 1)
		orders := w.register(idem.Operation{Kind: idem.KindDeferred})
		id := w.do(orders, request("{}"), w.handler(202)).OperationID
		for range 3 {
			ctx, hangUp := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			_, err := w.engine.Await(ctx, "t", id, 10*time.Second)
			if hangUp(); err != nil || time.Since(began) != time.Second {
				t.Errorf("%v after %v, want a wait until the client is gone", err, time.Since(began))
			}
		}
	})
}

func TestBoundsOfWaitsAreChecked(t *testing.T) {
	w := newWorld(t, nil)
	for want, cfg := range map[string]idem.Config{
		"Config.WaitsMax":          {WaitsMax: -1, WaitsPerTenantMax: 1},
		"Config.WaitsPerTenantMax": {WaitsMax: 5, WaitsPerTenantMax: 6},
	} {
		var refused *idem.ConfigError
		if _, err := idem.New(w.mem, cfg); !errors.As(err, &refused) || refused.Field != want || !strings.Contains(refused.Rule, "must be") {
			t.Errorf("%v, want it to name %s", err, want)
		}
	}
	for _, cfg := range []idem.Config{{WaitsMax: 5}, {WaitsMax: 1, WaitsPerTenantMax: 1}, {WaitsPerTenantMax: 1000}} {
		if _, err := idem.New(w.mem, cfg); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
