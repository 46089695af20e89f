package middleware_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// A cache in between would answer the next request with an old refusal, and a browser might take its text for a page.
func TestProblemsAreKeptOutOfCachesAndAreWhatTheySay(t *testing.T) {
	a := newAPI(t, nil)
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, counting(new(atomic.Int64)))
	a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(nil))
	a.do(key(ask{}))
	for name, q := range map[string]ask{
		"401": {tenant: "-"}, "403": {tenant: "wrong"}, "503": {tenant: "outage"}, "400": {}, "415": {contentType: "text/plain"},
		"422": key(ask{body: `{"a":1}`}), "404": {path: "/nothing"}, "405": {method: "PUT"}, "404 of a status": {method: "GET", path: "/v1/operations/x"},
	} {
		r := a.do(q)
		for header, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
			if got := r.Header.Values(header); len(got) != 1 || got[0] != want {
				t.Errorf("%s is %d with %s %q", name, r.StatusCode, header, got)
			}
		}
	}
}

func TestAHandlersOwnCacheControlStandsAlone(t *testing.T) {
	a := newAPI(t, nil)
	read := a.mw.Read(func(context.Context, *middleware.Request) (idem.Response, error) {
		return idem.NewProblem(http.StatusGone, "gone", "Gone", "It is gone.").Response().With("Cache-Control", "max-age=60"), nil
	})
	a.mux.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		read.ServeHTTP(w, r)
	})
	if got := a.do(ask{method: "GET"}).Header.Values("Cache-Control"); len(got) != 1 || got[0] != "max-age=60" {
		t.Errorf("Cache-Control %q", got)
	}
}
