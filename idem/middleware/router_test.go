package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// ok is a handler that says 204.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

// semantics.md "Policies": an unsafe route registered without a policy is an error at start-up, and so is whatever else
// can't be served; the error names it.
func TestRouterFailsAtStartUp(t *testing.T) {
	h := counting(new(atomic.Int64))
	op := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	bare := op
	bare.Policy = idem.Policy{}
	wrapped := idem.Operation{Name: "orders.wrap", UnknownToOperator: true, Policy: idem.IETF()}
	former := idem.Operation{Name: "orders.make", RenamedFrom: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	read := func(context.Context, *middleware.Request) (idem.Response, error) {
		return idem.Response{Status: 204}, nil
	}
	for name, c := range map[string]struct {
		register func(*middleware.Router)
		field    string
	}{
		"POST without a policy":        {func(r *middleware.Router) { r.Handle("POST /orders", bare, middleware.Route{}, h) }, "Operation.Policy"},
		"all methods without a policy": {func(r *middleware.Router) { r.Handle("/orders", bare, middleware.Route{}, h) }, "Operation.Policy"},
		"PATCH, wrapped, no policy": {func(r *middleware.Router) {
			r.Wrap("PATCH /orders", idem.Operation{Name: "a.b"}, middleware.Route{}, ok)
		}, "Operation.Policy"},
		"a plain POST":                  {func(r *middleware.Router) { r.Idempotent("POST /orders", ok) }, "pattern"},
		"a plain PATCH with a host":     {func(r *middleware.Router) { r.Idempotent("PATCH api.example/orders", ok) }, "pattern"},
		"a plain route of all methods":  {func(r *middleware.Router) { r.Idempotent("/orders", ok) }, "pattern"},
		"a plain route of any other":    {func(r *middleware.Router) { r.Idempotent("MERGE /orders", ok) }, "pattern"},
		"a read of all methods":         {func(r *middleware.Router) { r.Read("/orders", read) }, "pattern"},
		"an exemption without a reason": {func(r *middleware.Router) { r.Exempt("POST /orders", " ", ok) }, "reason"},
		"a policy that contradicts itself": {func(r *middleware.Router) {
			broken := op
			broken.Policy.GoneAfterExpiry = true
			r.Handle("POST /orders", broken, middleware.Route{}, h)
		}, "Policy.GoneAfterExpiry"},
		"a parameter that the pattern has not": {func(r *middleware.Router) {
			r.Handle("POST /orders", op, middleware.Route{IgnorePath: []string{"id"}}, h)
		}, "Route.IgnorePath"},
		"a former name twice": {func(r *middleware.Router) {
			r.Handle("POST /orders", op, middleware.Route{}, h)
			r.Handle("POST /purchases", former, middleware.Route{}, h)
		}, "Operation.RenamedFrom"},
		"a malformed pattern": {func(r *middleware.Router) { r.Exempt("POST orders", "a test", ok) }, "pattern"},
		"patterns in conflict": {func(r *middleware.Router) {
			r.Handle("POST /orders", op, middleware.Route{}, h)
			r.Wrap("POST /orders", wrapped, middleware.Route{}, ok)
		}, "pattern"},
		"a protected router below an exempt path": {func(r *middleware.Router) {
			inner := http.NewServeMux()
			r.Wrap("POST /orders/{id}/pay", wrapped, middleware.Route{}, inner)
			r.Exempt("/", "everything else", inner)
		}, "http.Handler"},
		"a protected router behind an exempt wildcard": {func(r *middleware.Router) {
			inner := http.NewServeMux()
			exempt := wrapped
			exempt.Name, exempt.Policy = "orders.other", idem.Exempt("a test")
			r.Wrap("POST /orders/{id}", exempt, middleware.Route{}, inner)
			r.Wrap("POST /orders/{id}/pay", wrapped, middleware.Route{}, inner)
		}, "http.Handler"},
	} {
		r := newAPI(t, nil).mw.NewRouter()
		c.register(r)
		handler, err := r.Handler()
		var refused *idem.ConfigError
		if handler != nil || !errors.As(err, &refused) || refused.Field != c.field {
			t.Errorf("%s: %v, want %s rejected", name, err, c.field)
		}
	}
}

// One router may stand at several patterns where none of the unprotected ones admits a request that it could take for a protected
// one.
func TestARouterMayHaveExemptRoutesOfItsOwn(t *testing.T) {
	r, inner, other := newAPI(t, nil).mw.NewRouter(), http.NewServeMux(), http.NewServeMux()
	r.Wrap("POST /orders/{id}/pay", idem.Operation{Name: "orders.pay", UnknownToOperator: true, Policy: idem.IETF()}, middleware.Route{}, inner)
	r.Idempotent("GET /", inner)
	r.Exempt("POST /search", "reads only", inner)
	r.Exempt("POST /{$}", "reads only", inner)
	r.Exempt("POST /hooks/", "events have ids of their own", other)
	r.Exempt("POST /callbacks/", "events have ids of their own", ok)
	if _, err := r.Handler(); err != nil {
		t.Error(err)
	}
}

func TestRouterTellsEverythingThatIsWrong(t *testing.T) {
	r := newAPI(t, nil).mw.NewRouter()
	r.Idempotent("POST /orders", ok)
	r.Exempt("POST /hooks", "", ok)
	if _, err := r.Handler(); err == nil || !strings.Contains(err.Error(), "POST /orders") || !strings.Contains(err.Error(), "POST /hooks") {
		t.Errorf("%v, want both routes named", err)
	}
}

func TestRouter(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	r := a.mw.NewRouter()
	r.Handle("POST /orders/{id}/items", idem.Operation{Name: "items.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{}, counting(&runs))
	r.Handle("POST /any/{id}", idem.Operation{Name: "any.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{IgnorePath: []string{"id"}}, counting(&runs))
	r.Wrap("/wrapped/{rest...}", idem.Operation{Name: "orders.wrap", RenamedFrom: "orders.old", UnknownToOperator: true, Policy: idem.Observe(idem.Lenient())}, middleware.Route{}, ok)
	r.Handle("POST /search", idem.Operation{Name: "orders.search", Kind: idem.KindOptimistic, Policy: idem.Exempt("reads only")}, middleware.Route{}, counting(&runs))
	r.Exempt("POST /hooks", "events have ids of their own", ok)
	r.Idempotent("DELETE /orders/{id}", ok)
	r.Read("GET /orders/{id}", func(context.Context, *middleware.Request) (idem.Response, error) {
		return idem.Response{Status: 204}, nil
	})
	handler, err := r.Handler()
	if err != nil {
		t.Fatal(err)
	}
	a.server.Close()
	a.server = httptest.NewServer(handler)
	t.Cleanup(a.server.Close)

	// Requests that differ in the path only are different ones: what the pattern names is part of the fingerprint.
	a.do(key(ask{path: "/orders/1/items"})).wants(t, 201, "executed")
	a.do(key(ask{path: "/orders/1/items"})).wants(t, 201, "replayed")
	a.do(key(ask{path: "/orders/2/items"})).wants(t, 422, "mismatch")
	a.do(key(ask{path: "/any/1"})).wants(t, 201, "executed")
	a.do(key(ask{path: "/any/2"})).wants(t, 201, "replayed")
	a.do(ask{path: "/search"}).wants(t, 201, "unprotected")
	for _, q := range []ask{{path: "/hooks", tenant: "-"}, {method: "DELETE", path: "/orders/1", tenant: "-"}, {method: "GET", path: "/orders/1"}, {path: "/wrapped/a/b"}} {
		if response := a.do(q); response.StatusCode != 204 {
			t.Errorf("%+v: %d %s", q, response.StatusCode, response.body)
		}
	}
	if response := a.do(ask{method: "PUT", path: "/search"}); response.StatusCode != 405 || response.code(t) != "method_not_allowed" || response.Header.Get("Allow") != "POST" {
		t.Errorf("wrong method: %d %v", response.StatusCode, response.Header)
	}
	if response := a.do(ask{path: "/nothing"}); response.StatusCode != 404 || response.code(t) != "not_found" {
		t.Errorf("unknown route: %d", response.StatusCode)
	}

	byPattern := map[string]middleware.RouteInfo{}
	for _, route := range r.Routes() {
		byPattern[route.Pattern] = route
	}
	if len(byPattern) != 7 {
		t.Errorf("routes %+v", r.Routes())
	}
	wrap := byPattern["/wrapped/{rest...}"]
	if wrap.Operation != "orders.wrap" || wrap.RenamedFrom != "orders.old" || wrap.Kind != idem.KindWrapped || !wrap.Unsafe || wrap.Policy.Name != "observe lenient" || wrap.Retention() != day {
		t.Errorf("wrapped: %+v", wrap)
	}
	if hooks := byPattern["POST /hooks"]; hooks.Operation != "" || !hooks.Unsafe || hooks.Policy.ExemptReason != "events have ids of their own" || hooks.Retention() != 0 {
		t.Errorf("exempt: %+v", hooks)
	}
	if read := byPattern["GET /orders/{id}"]; read.Unsafe || read.Operation != "" {
		t.Errorf("read: %+v", read)
	}
}
