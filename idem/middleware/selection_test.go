package middleware_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// created counts its runs.
func created(runs *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusCreated)
	}
}

// protect is an endpoint of a wrapped handler.
func (a *api) protect(op idem.Operation, route middleware.Route, h http.Handler) http.Handler {
	a.Helper()
	protected, err := a.mw.Wrap(withDefaults(op, idem.KindWrapped), route, h)
	if err != nil {
		a.Fatal(err)
	}
	return protected
}

// An answer that was another resource's would be a payment that nobody makes.
func TestAKeyNeverReplaysTheAnswerOfAnotherPathQueryOrMethod(t *testing.T) {
	for name, serve := range map[string]func(*api, *atomic.Int64){
		"Wrap": func(a *api, runs *atomic.Int64) {
			a.mux.Handle("/orders/{id}/pay", a.protect(idem.Operation{}, middleware.Route{}, created(runs)))
		},
		"Handle": func(a *api, runs *atomic.Int64) {
			a.handle("/orders/{id}/pay", idem.Operation{}, middleware.Route{}, counting(runs))
		},
		"Wrap, by wildcards": func(a *api, runs *atomic.Int64) {
			a.mux.Handle("/orders/{id}/pay", a.protect(idem.Operation{}, middleware.Route{PathByWildcards: true}, created(runs)))
		},
		"Router": func(a *api, runs *atomic.Int64) {
			r := a.mw.NewRouter()
			r.Wrap("/orders/{id}/pay", withDefaults(idem.Operation{}, idem.KindWrapped), middleware.Route{}, created(runs))
			h, err := r.Handler()
			if err != nil {
				a.Fatal(err)
			}
			a.mux.Handle("/", h)
		},
		"Router at a prefix": func(a *api, runs *atomic.Int64) {
			r := a.mw.NewRouter()
			r.Wrap("/orders/", withDefaults(idem.Operation{}, idem.KindWrapped), middleware.Route{}, created(runs))
			h, err := r.Handler()
			if err != nil {
				a.Fatal(err)
			}
			a.mux.Handle("/", h)
		},
		"at a prefix, by no pattern": func(a *api, runs *atomic.Int64) {
			a.mux.Handle("/orders/", a.protect(idem.Operation{}, middleware.Route{}, created(runs)))
		},
		"by a router of another kind": func(a *api, runs *atomic.Int64) {
			params := func(r *http.Request) map[string]string {
				return map[string]string{"id": strings.Split(r.URL.EscapedPath(), "/")[2]}
			}
			a.mux.Handle("/", a.protect(idem.Operation{}, middleware.Route{PathParams: params}, created(runs)))
		},
		"behind what strips a variable prefix": func(a *api, runs *atomic.Int64) {
			inner := a.mw.NewRouter()
			inner.Wrap("/pay", withDefaults(idem.Operation{}, idem.KindWrapped), middleware.Route{}, created(runs))
			h, err := inner.Handler()
			if err != nil {
				a.Fatal(err)
			}
			a.mux.HandleFunc("/orders/{id}/", func(w http.ResponseWriter, r *http.Request) {
				stripped := r.Clone(r.Context())
				stripped.URL.Path, stripped.URL.RawPath = "/pay", ""
				h.ServeHTTP(w, stripped)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, nil)
			var runs atomic.Int64
			serve(a, &runs)
			a.do(key(ask{path: "/orders/1/pay?amount=10&b=x&a=y"})).wants(t, 201, "executed")
			a.do(key(ask{path: "/orders/1/pay?amount=10&b=x&a=y"})).wants(t, 201, "replayed")
			a.do(key(ask{path: "/orders/1/pay?a=y&b=x&amount=10"})).wants(t, 201, "replayed") // names are sorted
			for _, other := range []ask{
				{path: "/orders/2/pay?amount=10&b=x&a=y"}, {path: "/orders/1/pay?amount=99&b=x&a=y"}, {path: "/orders/1/pay"},
				{path: "/orders/1/pay?amount=10&amount=10&b=x&a=y"}, {path: "/orders/1%2F2/pay?amount=10&b=x&a=y"},
				{path: "/orders/1/pay?amount=10&b=x&a=y", method: "PATCH"},
			} {
				a.do(key(other)).wants(t, 422, "mismatch")
			}
			if bad := a.do(key(ask{path: "/orders/1/pay?amount=%zz"})); bad.StatusCode != 400 || bad.code(t) != "request_invalid" {
				t.Errorf("malformed query: %d", bad.StatusCode)
			}
			if runs.Load() != 1 {
				t.Errorf("%d runs", runs.Load())
			}
		})
	}
}

// The rest of a path may be segments, or one that holds an escaped slash: http.Request.PathValue does not tell them apart, and a router that
// matches the escaped path does.
func TestTheRestOfAPathIsItsSegments(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	r := a.mw.NewRouter()
	r.Wrap("POST /files/{rest...}", withDefaults(idem.Operation{}, idem.KindWrapped), middleware.Route{}, created(&runs))
	h, err := r.Handler()
	if err != nil {
		t.Fatal(err)
	}
	a.mux.Handle("/", h)
	a.do(key(ask{path: "/files/1/pay"})).wants(t, 201, "executed")
	for _, other := range []string{"/files/1%2Fpay", "/files/1%252Fpay", "/files/1"} {
		a.do(key(ask{path: other})).wants(t, 422, "mismatch")
	}
	a.do(key(ask{path: "/files/%31/pay"})).wants(t, 201, "replayed") // another spelling of it
	coded := func(path string) ask { return ask{path: path, keys: []string{`"coded"`}} }
	a.do(coded("/files/1%2Fpay/2")).wants(t, 201, "executed")
	a.do(coded("/files/1%2fpay/2")).wants(t, 201, "replayed")
	for _, other := range []string{"/files/1/pay/2", "/files/1/pay%2F2", "/files/1%252Fpay/2"} {
		a.do(coded(other)).wants(t, 422, "mismatch")
	}
}

// One endpoint may stand at several patterns: by their wildcards alone a refund would be answered as a payment.
func TestOneEndpointAtTwoPatternsNeverReplaysTheAnswerOfTheOther(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	protected := a.protect(idem.Operation{}, middleware.Route{}, created(&runs))
	a.mux.Handle("POST /orders/{id}/pay", protected)
	a.mux.Handle("POST /orders/{id}/refund", protected)
	a.do(key(ask{path: "/orders/1/pay"})).wants(t, 201, "executed")
	a.do(key(ask{path: "/orders/1/refund"})).wants(t, 422, "mismatch")
}

func TestWhatTheRouteLeavesOutIsNoMismatch(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	r := a.mw.NewRouter()
	route := middleware.Route{IgnorePath: []string{"locale"}, IgnoreQuery: []string{"trace_*"}, IgnoreTracking: true}
	r.Wrap("POST /{locale}/orders/{id}", withDefaults(idem.Operation{Name: "in.router"}, idem.KindWrapped), route, created(&runs))
	h, err := r.Handler()
	if err != nil {
		t.Fatal(err)
	}
	a.mux.Handle("/", h)
	a.mux.Handle("POST /endpoint/{locale}/orders/{id}", a.protect(idem.Operation{Name: "by.pattern"}, route, created(&runs)))
	named := route
	named.PathParams = func(r *http.Request) map[string]string {
		return map[string]string{"locale": r.PathValue("l"), "id": r.PathValue("i")}
	}
	a.mux.Handle("POST /named/{l}/orders/{i}", a.protect(idem.Operation{Name: "by.name"}, named, created(&runs)))
	for _, prefix := range []string{"", "/endpoint", "/named"} {
		a.do(key(ask{path: prefix + "/en/orders/1?a=1&trace_1=x&utm_source=mail"})).wants(t, 201, "executed")
		a.do(key(ask{path: prefix + "/de/orders/1?a=1&trace_2=y&gclid=z"})).wants(t, 201, "replayed")
		a.do(key(ask{path: prefix + "/en/orders/2?a=1"})).wants(t, 422, "mismatch")
		a.do(key(ask{path: prefix + "/en/orders/1?a=2"})).wants(t, 422, "mismatch")
	}
}

func TestAPathParameterThatTheRouterHasNotIsNeverEmpty(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	params := func(values map[string]string) middleware.Route {
		return middleware.Route{PathParams: func(*http.Request) map[string]string { return values }}
	}
	misnamed := params(map[string]string{"id": "1"})
	misnamed.IgnorePath = []string{"locale"}
	for pattern, route := range map[string]middleware.Route{
		"/a/":         {PathByWildcards: true},
		"/b/{id}/pay": {IgnorePath: []string{"locale"}},
		"/c/{id}/pay": params(nil),
		"/d/{id}/pay": params(map[string]string{}),
		"/e/{id}/pay": params(map[string]string{"id": ""}),
		"/f/{id}/pay": misnamed,
	} {
		a.mux.Handle(pattern, a.protect(idem.Operation{Name: "orders." + pattern[1:2]}, route, created(&runs)))
		if r := a.do(key(ask{path: pattern[:2] + "/1/pay"})); r.StatusCode != 500 || r.code(t) != "internal_error" {
			t.Errorf("%s: %d", pattern, r.StatusCode)
		}
	}
	// Outside of http.ServeMux there is no pattern, or one that means something else.
	protected := a.protect(idem.Operation{Name: "orders.elsewhere"}, middleware.Route{PathByWildcards: true}, created(&runs))
	for _, pattern := range []string{"", "/orders/:id", "/orders/{id:[0-9]+}", "/orders/*", "/orders/{id}"} {
		a.mux.HandleFunc("/x/"+strings.Repeat("y", len(pattern)+1), func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = pattern
			protected.ServeHTTP(w, r)
		})
		a.do(key(ask{path: "/x/" + strings.Repeat("y", len(pattern)+1)})).wants(t, 500, "")
	}
	if runs.Load() != 0 || !strings.Contains(a.log.String(), "the path's parameters are not known") {
		t.Errorf("%d runs, log %s", runs.Load(), a.log)
	}
}

func TestARouteThatContradictsItsPatternFailsAtStartUp(t *testing.T) {
	params := func(*http.Request) map[string]string { return nil }
	for field, c := range map[string]struct {
		pattern string
		route   middleware.Route
	}{
		"Route.IgnorePath":  {"POST /orders/{id}", middleware.Route{IgnorePath: []string{"locale"}}},
		"Route.IgnorePath ": {"POST /orders/{locale}/", middleware.Route{IgnorePath: []string{"locale"}}},
		"Route.PathParams":  {"POST /orders/{id}", middleware.Route{PathParams: params}},
		"Route":             {"POST /orders", middleware.Route{IgnoreQuery: []string{"*"}}},
	} {
		r := newAPI(t, nil).mw.NewRouter()
		r.Wrap(c.pattern, withDefaults(idem.Operation{}, idem.KindWrapped), c.route, ok)
		_, err := r.Handler()
		var refused *idem.ConfigError
		if !errors.As(err, &refused) || refused.Field != strings.TrimSpace(field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A deployment that selects something else leaves the retries of earlier requests what they were; so does one that is
// rolled back, and one whose instances run side by side.
func TestARetryAfterAChangeOfTheSelectionIsStillReplayed(t *testing.T) {
	routes := []middleware.Route{
		{}, {PathByWildcards: true}, {IgnorePath: []string{"locale"}}, {IgnoreTracking: true}, {IgnoreQuery: []string{"a"}},
	}
	for _, before := range routes {
		for _, after := range routes {
			a := newAPI(t, nil)
			var runs atomic.Int64
			serve := func(route middleware.Route) func(ask) *reply {
				engine, err := idem.New(a.mem, idem.Config{Now: a.now})
				if err != nil {
					t.Fatal(err)
				}
				if a.mw, err = middleware.New(engine, middleware.Config{Identify: identify, DocsURL: "https://docs.example/idempotency"}); err != nil {
					t.Fatal(err)
				}
				mux := http.NewServeMux()
				mux.Handle("POST /{locale}/orders/{id}", a.protect(idem.Operation{}, route, created(&runs)))
				return func(q ask) *reply {
					a.mux, a.server = mux, nil
					return a.do(key(q))
				}
			}
			earlier, later := serve(before), serve(after)
			earlier(ask{path: "/en/orders/1?a=1&utm_source=mail"}).wants(t, 201, "executed")
			later(ask{path: "/en/orders/1?a=1&utm_source=mail"}).wants(t, 201, "replayed")
			later(ask{path: "/en/orders/2?a=1&utm_source=mail"}).wants(t, 422, "mismatch")
			earlier(ask{path: "/en/orders/1?a=1&utm_source=mail"}).wants(t, 201, "replayed")
			if runs.Load() != 1 {
				t.Errorf("%+v, then %+v: %d runs", before, after, runs.Load())
			}
		}
	}
}

// A request that can't be compared with its record executes nothing: it is answered as what this release can't judge.
func TestARetryThatCannotBeComparedAnyMoreIsRefused(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	a.mux.Handle("POST /orders/{id}", a.protect(idem.Operation{}, middleware.Route{PathByWildcards: true}, created(&runs)))
	a.do(key(ask{path: "/orders/1"})).wants(t, 201, "executed")
	engine, err := idem.New(a.mem, idem.Config{Now: a.now})
	if err != nil {
		t.Fatal(err)
	}
	if a.mw, err = middleware.New(engine, middleware.Config{Identify: identify, DocsURL: "https://docs.example/idempotency"}); err != nil {
		t.Fatal(err)
	}
	a.mux, a.server = http.NewServeMux(), nil
	withoutPattern := a.protect(idem.Operation{}, middleware.Route{}, created(&runs))
	a.mux.Handle("/", withoutPattern)
	a.do(key(ask{path: "/orders/1"})).wants(t, 503, "")
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

func TestARequestWithoutAKeyNeedsNoPathParameters(t *testing.T) {
	a := newAPI(t, nil)
	route := middleware.Route{PathParams: func(*http.Request) map[string]string { return nil }}
	a.mux.Handle("/orders", a.protect(idem.Operation{}, route, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})))
	if r := a.do(ask{method: "PUT", path: "/orders?%zz"}); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// What an operator sees of a mismatch; the client learns nothing of the request that the key belongs to.
func TestTheLogOfAMismatchNamesWhatDiffers(t *testing.T) {
	for want, other := range map[string]ask{
		"path":        {path: "/orders/2?a=1"},
		"query":       {path: "/orders/1?a=2"},
		"body":        {path: "/orders/1?a=1", body: `{"a":1}`},
		"method":      {path: "/orders/1?a=1", method: "PATCH"},
		"media type":  {path: "/orders/1?a=1", contentType: "application/json; v=2"},
		"path, query": {path: "/orders/2"},
	} {
		a := newAPI(t, nil)
		a.mux.Handle("/orders/", a.protect(idem.Operation{}, middleware.Route{}, created(new(atomic.Int64))))
		a.do(key(ask{path: "/orders/1?a=1"})).wants(t, 201, "executed")
		r := a.do(key(other))
		if r.wants(t, 422, "mismatch"); !strings.Contains(a.log.String(), `"differing":"`+want+`"`) || strings.Contains(string(r.body), want) {
			t.Errorf("%s: log %s, answer %s", want, a.log, r.body)
		}
	}
}
