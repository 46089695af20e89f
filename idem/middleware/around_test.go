package middleware_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func (a *api) around(route middleware.Route) func(http.Handler) http.Handler {
	a.Helper()
	protect, err := a.mw.Middleware(withDefaults(idem.Operation{}, idem.KindWrapped), route)
	if err != nil {
		a.Fatal(err)
	}
	return protect
}

// echo.WrapMiddleware calls the function for each request, with a handler that belongs to it alone.
func TestMiddlewareMayBeAppliedForEachRequest(t *testing.T) {
	a := newAPI(t, nil)
	protect := a.around(middleware.Route{})
	var runs atomic.Int64
	a.mux.HandleFunc("/orders", func(w http.ResponseWriter, r *http.Request) {
		own := r.Header.Get("X-Own")
		protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			runs.Add(1)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, own)
		})).ServeHTTP(w, r)
	})
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			own := strconv.Itoa(i)
			for _, status := range []string{"executed", "replayed"} {
				r, err := a.send(ask{keys: []string{`"` + own + `"`}, header: map[string]string{"X-Own": own}})
				if err != nil {
					t.Error(err)
					return
				}
				if r.wants(t, 201, status); string(r.body) != own {
					t.Errorf("%s got the answer of %s", own, r.body)
				}
			}
		})
	}
	wait.Wait()
	if runs.Load() != 8 {
		t.Errorf("%d runs", runs.Load())
	}
	if r := a.do(ask{method: "GET"}); r.StatusCode != 201 {
		t.Errorf("a safe method: %d", r.StatusCode)
	}
}

// A middleware of a whole group has several handlers behind it.
func TestMiddlewareInFrontOfSeveralRoutesTellsThemApart(t *testing.T) {
	a := newAPI(t, nil)
	protect := a.around(middleware.Route{})
	group := http.NewServeMux()
	var runs atomic.Int64
	for _, path := range []string{"/orders/{id}/pay", "/orders/{id}/refund"} {
		group.Handle("POST "+path, created(&runs))
	}
	a.mux.Handle("/orders/", protect(group))
	a.do(key(ask{path: "/orders/1/pay"})).wants(t, 201, "executed")
	a.do(key(ask{path: "/orders/1/pay"})).wants(t, 201, "replayed")
	a.do(key(ask{path: "/orders/1/refund"})).wants(t, 422, "mismatch")
	a.do(key(ask{path: "/orders/2/pay"})).wants(t, 422, "mismatch")
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

func TestMiddlewareRegistersOnceAndForHandlersThatWriteForThemselves(t *testing.T) {
	a := newAPI(t, nil)
	protect := a.around(middleware.Route{})
	protect(ok)
	protect(ok)
	var refused *idem.ConfigError
	if _, err := a.mw.Middleware(withDefaults(idem.Operation{}, idem.KindWrapped), middleware.Route{}); !errors.As(err, &refused) || refused.Field != "Operation.Name" {
		t.Errorf("the name twice: %v", err)
	}
	if _, err := a.mw.Middleware(withDefaults(idem.Operation{Name: "a.b"}, idem.KindAtomic), middleware.Route{}); !errors.As(err, &refused) || refused.Field != "Operation.Kind" {
		t.Errorf("an atomic operation: %v", err)
	}
}

func TestARouterIsAHandlerThatServesNothingWhereARegistrationWasRefused(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	good := a.mw.NewRouter()
	good.Wrap("POST /orders", withDefaults(idem.Operation{}, idem.KindWrapped), middleware.Route{}, created(&runs))
	bad := a.mw.NewRouter()
	bad.Wrap("POST /items", withDefaults(idem.Operation{Name: "items.create"}, idem.KindWrapped), middleware.Route{}, created(&runs))
	bad.Idempotent("POST /hooks", ok)
	a.mux.Handle("/orders", good)
	a.mux.Handle("/items", bad)
	a.do(key(ask{})).wants(t, 201, "executed")
	a.do(key(ask{path: "/items"})).wants(t, 500, "")
	if runs.Load() != 1 || !strings.Contains(a.log.String(), "POST /hooks") {
		t.Errorf("%d runs, log %s", runs.Load(), a.log)
	}
}

// A redirect of a POST would be followed, or not, by the client's own rules; a slash in a segment is no end of it.
func TestAPathInAnotherSpellingIsNotFound(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	r := a.mw.NewRouter()
	r.Wrap("POST /v1/orders", withDefaults(idem.Operation{}, idem.KindWrapped), middleware.Route{}, created(&runs))
	r.Wrap("POST /v1/files/{rest...}", withDefaults(idem.Operation{Name: "files.create"}, idem.KindWrapped), middleware.Route{}, created(&runs))
	for _, path := range []string{"//v1/orders", "/v1//orders", "/v1/./orders", "/v1/x/../orders", "/v1/orders/..", "/v1/orders//", "/v1%2forders", "/v1%2Forders", "/v1/orders%2f", "/v1/files//a", "//"} {
		q := httptest.NewRequest("POST", path, strings.NewReader("{}"))
		q.Header.Set("Authorization", "Bearer tenant-a")
		q.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, q)
		answer := &reply{w.Result(), w.Body.Bytes()}
		if answer.StatusCode != 404 || answer.code(t) != "not_found" || answer.Header.Get("Location") != "" {
			t.Errorf("%s: %d, Location %q", path, answer.StatusCode, answer.Header.Get("Location"))
		}
	}
	for _, path := range []string{"/v1/orders", "/v1/files/", "/v1/files/a/b/", "/v1/files/a%2Fb"} {
		q := httptest.NewRequest("POST", path, strings.NewReader("{}"))
		q.Header.Set("Authorization", "Bearer tenant-a")
		q.Header.Set("Idempotency-Key", path[1:])
		w := httptest.NewRecorder()
		if r.ServeHTTP(w, q); w.Code != 201 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
