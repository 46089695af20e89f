package middleware_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func TestSyntaxesHaveTheSameNamesInPolicyAndHeader(t *testing.T) {
	for policy, syntax := range map[idem.Syntax]header.Syntax{
		idem.SyntaxStructured: header.SyntaxStructured, idem.SyntaxStrict: header.SyntaxStrict, idem.SyntaxOpaque: header.SyntaxOpaque,
	} {
		if header.Syntax(policy) != syntax {
			t.Errorf("%q and %q", policy, syntax)
		}
	}
}

// semantics.md "Policies": an unsafe request without a key, by policy.
func TestUnprotectedExecutions(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	a.handle("POST /stripe", idem.Operation{Name: "orders.stripe", Policy: idem.Stripe()}, middleware.Route{}, counting(&runs))
	a.handle("POST /lenient", idem.Operation{Name: "orders.lenient", Kind: idem.KindOptimistic, Policy: idem.Lenient()}, middleware.Route{}, counting(&runs))
	a.handle("POST /exempt", idem.Operation{Name: "orders.exempt", Policy: idem.Exempt("a search")}, middleware.Route{}, counting(&runs))
	a.wrap("POST /wrapped", idem.Operation{Name: "orders.wrapped", Policy: idem.Exempt("a search")}, func(w http.ResponseWriter, _ *http.Request) {
		if _, streams := w.(http.Flusher); !streams {
			t.Error("an exempt handler is served through a buffer")
		}
		runs.Add(1)
		w.WriteHeader(http.StatusCreated)
	})
	for _, q := range []ask{
		{path: "/stripe"}, {path: "/stripe", keys: []string{""}}, {path: "/lenient"}, {path: "/lenient", keys: []string{" "}},
		{path: "/exempt"}, {path: "/exempt", keys: []string{"k"}}, {path: "/wrapped"}, {path: "/wrapped", keys: []string{"k"}},
	} {
		before := runs.Load()
		for range 2 {
			r := a.do(q)
			if r.StatusCode != 201 || r.Header.Get("Idempotency-Status") != "unprotected" || r.Header.Get("Idempotent-Replayed") != "" || r.Header.Get("Idempotency-Expires") != "" {
				t.Errorf("%+v: %d %v", q, r.StatusCode, r.Header)
			}
		}
		if runs.Load() != before+2 {
			t.Errorf("%+v: %d runs", q, runs.Load()-before)
		}
	}
	if row := a.mem.Row("runs"); len(row) != 12 { // all but the wrapped ones
		t.Errorf("%d transactions", len(row))
	}
	if !strings.Contains(a.log.String(), "idempotency.unprotected") {
		t.Error("not logged")
	}
}

// semantics.md "Policies": GET, HEAD, PUT, DELETE and OPTIONS never need the header; if sent it is ignored.
func TestOtherMethodsIgnoreTheKey(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	a.handle("PUT /orders", idem.Operation{}, middleware.Route{}, counting(&runs))
	a.wrap("/wrapped", idem.Operation{Name: "orders.wrap"}, func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusCreated)
	})
	a.mux.Handle("GET /orders", a.mw.Read(func(_ context.Context, r *middleware.Request) (idem.Response, error) {
		runs.Add(1)
		return idem.JSON(201, r.Identity.Tenant)
	}))
	for _, q := range []ask{{method: "PUT"}, {method: "GET"}, {method: "GET", path: "/wrapped"}, {method: "DELETE", path: "/wrapped"}, {method: "OPTIONS", path: "/wrapped"}} {
		before := runs.Load()
		for range 2 {
			if r := a.do(key(q)); r.StatusCode != 201 || r.Header.Get("Idempotency-Status") != "ignored" || r.Header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%+v: %d %v", q, r.StatusCode, r.Header)
			}
		}
		if r := a.do(q); r.StatusCode != 201 || r.Header.Get("Idempotency-Status") != "" {
			t.Errorf("%+v without a key: %d %v", q, r.StatusCode, r.Header)
		}
		if runs.Load() != before+3 {
			t.Errorf("%+v: %d runs", q, runs.Load()-before)
		}
		if r := a.do(ask{method: q.method, path: q.path, tenant: "-"}); r.StatusCode != 401 {
			t.Errorf("%+v unauthenticated: %d", q, r.StatusCode)
		}
	}
	a.do(ask{method: "PATCH", path: "/wrapped"}).wants(t, 400, "")
}

func TestReadAnswersErrors(t *testing.T) {
	a := newAPI(t, nil)
	answers := map[string]error{
		"/rejected": &idem.RejectedError{Problem: idem.NewProblem(404, "order_not_found", "Not Found", "There is none.")},
		"/mistaken": &idem.RejectedError{Problem: idem.Problem{Code: "order_not_found", Title: "Not Found"}},
		"/busy":     &idem.UnavailableError{RetryAfter: 3 * time.Second, Cause: context.DeadlineExceeded},
		"/broken":   context.DeadlineExceeded,
		"/silent":   nil,
	}
	for path, err := range answers {
		a.mux.Handle("GET "+path, a.mw.Read(func(context.Context, *middleware.Request) (idem.Response, error) { return idem.Response{}, err }))
	}
	for path, want := range map[string]int{"/rejected": 404, "/mistaken": 500, "/busy": 503, "/broken": 500, "/silent": 500} {
		r := a.do(ask{method: "GET", path: path})
		r.wants(t, want, "")
		r.code(t)
	}
}
