package seal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// app is an engine over a vault, with an operation of each kind.
type app struct {
	*vault
	engine *idem.Engine
	orders map[storage.Kind]*idem.Registered
	cfg    seal.Config
	runs   int
}

var kinds = []storage.Kind{storage.KindAtomic, storage.KindOptimistic, storage.KindDeferred, storage.KindWrapped}

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{vault: newVault(t, seal.Config{}), orders: map[storage.Kind]*idem.Registered{}}
	a.restart(t)
	return a
}

// restart is another process on the same tables: it holds no key.
func (a *app) restart(t *testing.T) {
	t.Helper()
	a.engine = must(idem.New(a.with(t, a.cfg), idem.Config{Now: a.clock.Now, Pause: a.clock.Pause}))(t)
	for _, kind := range kinds {
		op := idem.Operation{Name: "orders." + string(kind), Kind: kind, UnknownToOperator: kind == storage.KindWrapped, Policy: idem.IETF()}
		a.orders[kind] = must(a.engine.Register(op))(t)
	}
}

func ask(tenant, body string) idem.Request {
	return idem.Request{Tenant: tenant, Key: "k", Input: canonical.Input{MediaType: "application/json", Body: []byte(body)}}
}

// do asks for {"a":1}, with a handler that counts its runs.
func (a *app) do(t *testing.T, kind storage.Kind, tenant string) (*idem.Result, error) {
	t.Helper()
	return a.orders[kind].Do(t.Context(), ask(tenant, `{"a":1}`), func(_ context.Context, tx *idem.Tx) (storage.Response, error) {
		a.runs++
		if kind == storage.KindDeferred {
			tx.Send("orders.charge", []byte("pay "+tenant))
			return idem.JSON(202, "accepted for "+tenant)
		}
		return idem.JSON(201, "done for "+tenant)
	})
}

func (a *app) want(t *testing.T, kind storage.Kind, tenant string, outcome idem.Outcome) *idem.Result {
	t.Helper()
	result, err := a.do(t, kind, tenant)
	ok(t, err)
	want := fmt.Sprintf("%q", "done for "+tenant)
	if kind == storage.KindDeferred {
		want = fmt.Sprintf("%q", "accepted for "+tenant)
	}
	if result.Outcome != outcome || string(result.Response.Body) != want {
		t.Errorf("%s for %s: %s %s, want %s %s", kind, tenant, result.Outcome, result.Response.Body, outcome, want)
	}
	return result
}

func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	var unavailable *idem.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 {
		t.Errorf("got %v, want an UnavailableError", err)
	}
}

// After an erasure the tenant's answers are said to be erased, its records are judged as ever, nothing of it executes
// again, and the other tenants notice nothing.
func TestAnErasedTenant(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			a := newApp(t)
			id := a.want(t, kind, "ada", idem.OutcomeExecuted).OperationID
			a.want(t, kind, "bob", idem.OutcomeExecuted)
			a.want(t, kind, "ada", idem.OutcomeReplayed)
			a.keys.erase("ada")
			a.restart(t)

			_, err := a.do(t, kind, "ada")
			wantErased(t, err)
			_, err = a.engine.Status(t.Context(), "ada", id)
			wantErased(t, err)
			result, err := a.orders[kind].Do(t.Context(), ask("ada", `{"a":2}`), nil)
			if err != nil || result.Outcome != idem.OutcomeMismatch {
				t.Errorf("another payload: %+v, %v", result, err)
			}
			if a.runs != 2 {
				t.Errorf("%d runs, want 2", a.runs)
			}
			a.want(t, kind, "bob", idem.OutcomeReplayed)
			a.want(t, kind, "new", idem.OutcomeExecuted)
		})
	}
}

// A new operation of an erased tenant is refused before anything is committed; where a lease is taken, before its handler
// runs.
func TestAnErasedTenantBeginsNothing(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			a := newApp(t)
			a.keys.rotate("ada")
			a.keys.erase("ada")
			_, err := a.do(t, kind, "ada")
			wantErased(t, err)
			if records := a.inner.Records(); len(records) != 0 {
				t.Errorf("stored %+v", records)
			}
			if leased := kind == storage.KindAtomic || kind == storage.KindWrapped; leased && a.runs != 0 {
				t.Errorf("the handler ran %d times", a.runs)
			}
		})
	}
}

// A duplicate of what is in progress is told so, whatever became of the tenant's key since.
func TestInProgressNeedsNoKey(t *testing.T) {
	for _, kind := range []storage.Kind{storage.KindAtomic, storage.KindWrapped} {
		for name, takeAway := range map[string]func(*keyring){
			"erased": func(k *keyring) { k.erase("ada") }, "KMS is down": func(k *keyring) { k.answers(false) },
		} {
			t.Run(string(kind)+", "+name, func(t *testing.T) {
				a := newApp(t)
				_, err := a.orders[kind].Do(t.Context(), ask("ada", `{"a":1}`), func(context.Context, *idem.Tx) (storage.Response, error) {
					takeAway(a.keys)
					holder := a.orders[kind]
					a.restart(t)
					for body, want := range map[string]idem.Outcome{`{"a":1}`: idem.OutcomeInProgress, `{"a":2}`: idem.OutcomeMismatch} {
						result, err := a.orders[kind].Do(t.Context(), ask("ada", body), nil)
						if err != nil || result.Outcome != want {
							t.Errorf("%s: %+v, %v, want %s", body, result, err, want)
						}
					}
					a.orders[kind] = holder
					return idem.JSON(201, "done")
				})
				ok(t, err) // its process holds the key still
			})
		}
	}
}

// An effect that happened is recorded although its response can't be sealed any more: it never runs again.
func TestAnErasureWhileAHandlerRuns(t *testing.T) {
	a := newApp(t)
	wrapped := a.orders[storage.KindWrapped]
	a.want(t, storage.KindAtomic, "ada", idem.OutcomeExecuted)
	a.clock.Advance(2*time.Minute + 20*time.Second)
	result, err := wrapped.Do(t.Context(), ask("ada", `{"a":1}`), func(context.Context, *idem.Tx) (storage.Response, error) {
		a.keys.erase("ada")
		a.clock.Advance(15 * time.Second) // half of its age is over: the key is fetched anew
		return idem.JSON(201, "done")
	})
	if err != nil || result.Outcome != idem.OutcomeExecuted {
		t.Fatalf("got %+v, %v", result, err)
	}
	for _, r := range a.inner.Records() {
		if r.State != storage.StateCompleted || !r.Sealed || r.Response.Status != 201 {
			t.Errorf("stored %+v", r)
		}
	}
	_, err = a.do(t, storage.KindWrapped, "ada")
	wantErased(t, err)
	if a.runs != 1 {
		t.Error("it ran again")
	}
}

// While no key can be fetched a request is answered 503, nothing executes and nothing is lost: later it goes on.
func TestKMSIsDown(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			a := newApp(t)
			id := a.want(t, kind, "ada", idem.OutcomeExecuted).OperationID
			a.restart(t)
			a.keys.answers(false)
			_, err := a.do(t, kind, "ada")
			wantUnavailable(t, err)
			_, err = a.engine.Status(t.Context(), "ada", id)
			wantUnavailable(t, err)
			_, err = a.do(t, kind, "bob")
			wantUnavailable(t, err)
			if leased := kind == storage.KindAtomic || kind == storage.KindWrapped; leased && a.runs != 1 {
				t.Errorf("%d runs, want only the first", a.runs)
			}
			if records := a.inner.Records(); len(records) != 1 {
				t.Errorf("%d records, want ada's", len(records))
			}

			a.keys.answers(true)
			a.want(t, kind, "ada", idem.OutcomeReplayed)
			a.want(t, kind, "bob", idem.OutcomeExecuted)
		})
	}
}

// A commit whose key can't be fetched any more gives its lease back, so that the retry need not wait for its end.
func TestKMSGoesDownWhileAHandlerRuns(t *testing.T) {
	a := newApp(t)
	a.cfg.KeysMax = 1
	a.restart(t)
	_, err := a.orders[storage.KindAtomic].Do(t.Context(), ask("ada", `{"a":1}`), func(context.Context, *idem.Tx) (storage.Response, error) {
		a.want(t, storage.KindOptimistic, "bob", idem.OutcomeExecuted) // whose key takes the place of ada's
		a.keys.answers(false)
		return idem.JSON(201, "never stored")
	})
	wantUnavailable(t, err)
	for _, r := range a.inner.Records() {
		if r.Tenant == "ada" && r.State != storage.StateFailedRetryable {
			t.Errorf("ada's record is %s", r.State)
		}
	}
	a.keys.answers(true)
	a.want(t, storage.KindAtomic, "ada", idem.OutcomeExecuted)
}

// An erased answer's life can still be changed: it ends as its resource does, and never answers as if it were new.
func TestAnErasedRecordCanBeAmended(t *testing.T) {
	a := newApp(t)
	id := a.want(t, storage.KindAtomic, "ada", idem.OutcomeExecuted).OperationID
	a.keys.erase("ada")
	a.restart(t)
	until := a.clock.Now().Add(48 * time.Hour)
	if got, err := a.engine.Extend(t.Context(), "ada", id, until); err != nil || !got.Equal(until) {
		t.Fatalf("extended to %v, %v; want %v", got, err, until)
	}
	a.clock.Advance(47 * time.Hour)
	_, err := a.do(t, storage.KindAtomic, "ada")
	wantErased(t, err)
	if a.runs != 1 {
		t.Errorf("%d runs, want 1", a.runs)
	}
}

// An answer whose key was erased stays erased, whatever key its tenant has since: nothing may seal an empty answer in its
// place, which would then be replayed as if it had been given.
func TestAnErasedRecordStaysErasedUnderAKeyMadeSince(t *testing.T) {
	a := newApp(t)
	id := a.want(t, storage.KindAtomic, "ada", idem.OutcomeExecuted).OperationID
	a.keys.erase("ada")
	a.keys.rotate("ada")
	a.restart(t)
	if _, err := a.engine.Extend(t.Context(), "ada", id, a.clock.Now().Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	_, err := a.do(t, storage.KindAtomic, "ada")
	wantErased(t, err)
}
