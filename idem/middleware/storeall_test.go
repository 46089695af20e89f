package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// storeAll stores every result once execution began.
func storeAll() idem.Policy {
	p := idem.IETF()
	p.Name, p.StoreClientErrors, p.StoreServerErrors = "store all", true, true
	return p
}

// semantics.md "Policies", 4xx and 5xx results: a policy that stores all stores the 401, 409 and 429 of a handler and its
// 5xx too, its panic among them; what was refused before execution began is never stored.
func storesAll(t *testing.T) {
	const panics, fails = -1, -2
	for _, status := range []int{200, 401, 403, 404, 408, 409, 422, 425, 429, 500, 502, 503, panics, fails} {
		a := newLocalAPI(t, nil)
		var runs atomic.Int64
		for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic, idem.KindDeferred} {
			a.handle("POST /"+string(kind), idem.Operation{Name: "orders." + string(kind), Kind: kind, Policy: storeAll()}, middleware.Route{},
				func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
					runs.Add(1)
					switch status {
					case panics:
						panic("the secret panic")
					case fails:
						return idem.Response{}, errors.New("the secret reason")
					}
					return idem.JSON(status, runs.Load())
				})
		}
		a.wrap("POST /wrapped", idem.Operation{Name: "orders.wrapped", SafeToRunAgain: true, Policy: storeAll()}, func(w http.ResponseWriter, _ *http.Request) {
			runs.Add(1)
			if status < 0 {
				panic("the secret panic")
			}
			w.WriteHeader(status)
		})
		for _, path := range []string{"/atomic", "/optimistic", "/deferred", "/wrapped"} {
			runs.Store(0)
			a.do(ask{path: path}).wants(t, 400, "")
			first, again := a.do(key(ask{path: path})), a.do(key(ask{path: path}))
			want := status
			if status < 0 {
				want = 500
			}
			if first.StatusCode != want || first.Header.Get("Idempotency-Status") != "executed" || first.Header.Get("Idempotency-Expires") == "" {
				t.Errorf("%s %d: first %d %v", path, status, first.StatusCode, first.Header)
			}
			if again.StatusCode != want || again.Header.Get("Idempotency-Status") != "replayed" || string(again.body) != string(first.body) || runs.Load() != 1 {
				t.Errorf("%s %d: again %d %v, %d runs", path, status, again.StatusCode, again.Header, runs.Load())
			}
			if strings.Contains(string(again.body), "secret") {
				t.Errorf("%s %d: %s", path, status, again.body)
			}
			if status < 0 && again.code(t) != "internal_error" {
				t.Errorf("%s %d: code %s", path, status, again.code(t))
			}
		}
	}
}

// A wrapped handler's 5xx may have had an effect: storing it as the answer would hide that, so the two contradict each other.
func TestStoreAllNeedsAHandlerThatIsSafeToRunAgain(t *testing.T) {
	_, err := newAPI(t, nil).mw.Wrap(idem.Operation{Name: "orders.wrap", UnknownToOperator: true, Policy: storeAll()}, middleware.Route{}, http.NotFoundHandler())
	var refused *idem.ConfigError
	if !errors.As(err, &refused) || refused.Field != "Policy.StoreServerErrors" || !strings.Contains(err.Error(), "Operation.Kind") {
		t.Errorf("%v, want both fields named", err)
	}
}
