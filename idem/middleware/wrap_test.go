package middleware_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func TestWrappedHandlerReplays(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	a.wrap("POST /orders/{id}", idem.Operation{}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "a=1" || r.ContentLength != 3 || r.PathValue("id") != "7" || r.Header.Get("Authorization") == "" {
			t.Errorf("got %q (%d), %v, id %q", body, r.ContentLength, err, r.PathValue("id"))
		}
		if _, ok := w.(http.Flusher); ok {
			t.Error("offers http.Flusher")
		}
		if _, ok := w.(http.Hijacker); ok {
			t.Error("offers http.Hijacker")
		}
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "<html>")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, strconv.FormatInt(runs.Add(1), 10))
	})
	q := key(ask{path: "/orders/7", body: "a=1", contentType: "application/x-www-form-urlencoded"})
	first, again := a.do(q), a.do(q)
	first.wants(t, 200, "executed")
	again.wants(t, 200, "replayed")
	for _, r := range []*reply{first, again} {
		if string(r.body) != "<html>1" || r.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%q of type %q", r.body, r.Header.Get("Content-Type"))
		}
	}
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

// A framework that answers a handler's error outside of its middlewares, as echo does, has an empty 200 stored. That can't be
// seen in time; the log says it at once, so that the first test of the service shows it.
func TestAnAnswerAfterTheHandlerHasReturnedIsTold(t *testing.T) {
	a := newAPI(t, nil)
	protect, err := a.mw.Middleware(idem.Operation{Name: "orders.pay", UnknownToOperator: true, Policy: idem.IETF()}, middleware.Route{})
	if err != nil {
		t.Fatal(err)
	}
	a.mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var inner http.ResponseWriter
		protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { inner = w })).ServeHTTP(w, r)
		inner.WriteHeader(http.StatusPaymentRequired)
		if _, err := io.WriteString(inner, "declined"); err == nil {
			t.Error("the late answer is taken")
		}
	})
	got := a.do(key(ask{path: "/orders", body: "{}"}))
	got.wants(t, 200, "executed")
	if len(got.body) > 0 {
		t.Errorf("answered %q", got.body)
	}
	if log := a.log.String(); strings.Count(log, "wrapped handler answered too late") != 1 {
		t.Errorf("want it told once:\n%s", log)
	}
}

// What a wrapped handler's panic or 5xx leaves is unknown; it is never executed again.
func TestWrappedHandlerThatFailsLeavesUnknown(t *testing.T) {
	const failed, unstored = "the handler failed", "the handler's answer is not stored"
	for name, c := range map[string]struct {
		fail http.HandlerFunc
		why  string // the operator reads it
	}{
		"panic": {func(http.ResponseWriter, *http.Request) { panic("boom") }, failed},
		"abort": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, failed},
		"500":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, unstored},
		"503":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, unstored},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, nil)
			var runs atomic.Int64
			a.wrap("POST /orders", idem.Operation{}, func(w http.ResponseWriter, r *http.Request) {
				runs.Add(1)
				c.fail(w, r)
			})
			if first := a.do(key(ask{})); first.StatusCode < 500 || strings.Contains(string(first.body), "boom") {
				t.Errorf("first: %d %s", first.StatusCode, first.body)
			}
			for range 3 {
				r := a.do(key(ask{}))
				r.wants(t, 409, "unknown")
				if r.code(t) != header.CodeOutcomeUnknown {
					t.Errorf("code %s", r.code(t))
				}
			}
			if why := a.mem.Records()[0].LastError; why != c.why {
				t.Errorf("the record says %q, want %q", why, c.why)
			}
			if runs.Load() != 1 {
				t.Errorf("%d runs", runs.Load())
			}
		})
	}
}

// The 409 says who finds out what became of the earlier request: where there is no probe, nobody does but the operator.
func TestAnUnknownOutcomeSaysWhoDecidesIt(t *testing.T) {
	for name, c := range map[string]struct {
		declares idem.Operation
		want     string
	}{
		"a probe":        {idem.Operation{Probed: true}, " It is being resolved. "},
		"an operator":    {idem.Operation{UnknownToOperator: true}, " It waits for the API's operator. "},
		"other statuses": {idem.Operation{ReleaseOn: []int{http.StatusTooManyRequests}}, " It waits for the API's operator. "},
	} {
		t.Run(name, func(t *testing.T) {
			a := newLocalAPI(t, nil)
			a.wrap("POST /orders", c.declares, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
			a.do(key(ask{}))
			r := a.do(key(ask{}))
			r.wants(t, 409, "unknown")
			if !strings.Contains(string(r.body), c.want) {
				t.Errorf("it says %s, want %q", r.body, c.want)
			}
		})
	}
}

func TestWrappedHandlerThatIsSafeToRunAgain(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	a.wrap("POST /orders", idem.Operation{SafeToRunAgain: true}, func(w http.ResponseWriter, _ *http.Request) {
		if runs.Add(1) == 1 {
			panic("boom")
		}
		w.WriteHeader(http.StatusCreated)
	})
	if first := a.do(key(ask{})); first.StatusCode != 500 {
		t.Errorf("first: %d", first.StatusCode)
	}
	a.do(key(ask{})).wants(t, 201, "executed")
	a.do(key(ask{})).wants(t, 201, "replayed")
}

func TestWrappedRefusalIsNotStored(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	a.wrap("POST /orders", idem.Operation{ReleaseOn: []int{http.StatusTooManyRequests}}, func(w http.ResponseWriter, _ *http.Request) {
		if runs.Add(1) == 1 {
			w.Header().Set("X-Limit", "10")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	if first := a.do(key(ask{})); first.StatusCode != 429 || first.Header.Get("X-Limit") != "10" {
		t.Errorf("first: %d %v", first.StatusCode, first.Header)
	}
	a.do(key(ask{})).wants(t, 201, "executed")
}

// The work is done, the response can't be stored; a retry must not do the work again. The code is not the one by which nothing
// was committed.
func TestWrappedResponseTooLarge(t *testing.T) {
	for _, size := range []int{3<<20 + 1, 5 << 20} { // above the engine's bound, and above the recorder's
		a := newAPI(t, nil)
		var runs atomic.Int64
		a.wrap("POST /orders", idem.Operation{}, func(w http.ResponseWriter, _ *http.Request) {
			runs.Add(1)
			for range size >> 10 {
				if n, err := w.Write(make([]byte, 1<<10)); n != 1<<10 || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
			}
			w.Write(make([]byte, 1))
		})
		first, again := a.do(key(ask{})), a.do(key(ask{}))
		first.wants(t, 500, "executed")
		again.wants(t, 500, "replayed")
		if first.code(t) != header.CodeResponseNotKept || again.code(t) != header.CodeResponseNotKept || runs.Load() != 1 {
			t.Errorf("%s, then %s, %d runs", first.body, again.body, runs.Load())
		}
	}
}

// Not stored by its status, and too large to pass on whole: a clear error, never half of it. It says neither that the request was
// executed nor that it was not: the handler has not said so.
func TestAWrappedAnswerThatIsTooLargeToPassOnSaysNothingOfTheOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		operation idem.Operation
		became    string
	}{
		"freed":   {idem.Operation{ReleaseOn: []int{http.StatusTooManyRequests}}, executed},
		"unknown": {idem.Operation{UnknownToOperator: true}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, nil)
			a.wrap("POST /orders", c.operation, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusTooManyRequests)
				w.Write(make([]byte, 5<<20))
			})
			r := a.do(key(ask{}))
			r.wants(t, 500, c.became)
			if r.code(t) != "internal_error" {
				t.Errorf("got %s", r.body)
			}
		})
	}
}

func TestWrappedBodyIsBounded(t *testing.T) {
	a := newAPI(t, nil)
	a.wrap("POST /orders", idem.Operation{}, func(http.ResponseWriter, *http.Request) { t.Error("ran") })
	if r := a.do(key(ask{body: strings.Repeat("a", 256<<10+1), contentType: "text/plain"})); r.StatusCode != 413 {
		t.Errorf("got %d", r.StatusCode)
	}
}

// A handler that ran out of time without a word has not answered 200.
func TestWrappedHandlerThatTimesOutLeavesUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLocalAPI(t, nil)
		handler, err := a.mw.Wrap(idem.Operation{Name: "orders.create", UnknownToOperator: true, Policy: idem.IETF()}, middleware.Route{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		if err != nil {
			t.Fatal(err)
		}
		a.mux.Handle("POST /orders", withTimeout(handler))
		if first := a.do(key(ask{})); first.StatusCode != 500 {
			t.Errorf("first: %d", first.StatusCode)
		}
		a.do(key(ask{})).wants(t, 409, "unknown")
	})
}

// withTimeout gives requests a deadline that leaves about half a second for the handler, as a platform would.
func withTimeout(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}
