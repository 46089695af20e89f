package middleware_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
)

// semantics.md "On the wire": replay = same status, same body bytes; empty and falsy results too,
// and binary ones. Nothing is serialised anew.
func replaysAreByteForByte(t *testing.T) {
	for name, test := range map[string]struct {
		contentType string
		body        []byte
	}{
		"0 bytes":      {"", nil},
		"0":            {"application/json", []byte("0")},
		"{}":           {"application/json", []byte("{}")},
		"odd spelling": {"application/json; charset=utf-8", []byte("{ \"a\" :1.0,\"a\":2}\n")},
		"binary":       {"application/octet-stream", []byte("\x00\xff\xfe\x01\r\n")},
		"100 KB":       {"text/plain", bytes.Repeat([]byte("0123456789"), 10<<10)},
		"1 MB":         {"image/png", bytes.Repeat([]byte{0, 1, 2, 255}, 1<<18)},
	} {
		t.Run(name, func(t *testing.T) {
			a := newLocalAPI(t, nil)
			a.handle("POST /orders", idem.Operation{}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
				response := idem.Response{Status: 201, Body: test.body}
				if test.contentType != "" {
					response = response.With("Content-Type", test.contentType)
				}
				return response, nil
			})
			a.wrap("POST /wrapped", idem.Operation{Name: "orders.wrap"}, func(w http.ResponseWriter, _ *http.Request) {
				if test.contentType != "" {
					w.Header().Set("Content-Type", test.contentType)
				}
				w.WriteHeader(http.StatusCreated)
				w.Write(test.body)
			})
			for _, path := range []string{"/orders", "/wrapped"} {
				first := a.do(key(ask{path: path}))
				first.wants(t, 201, "executed")
				for range 2 {
					again := a.do(key(ask{path: path}))
					again.wants(t, 201, "replayed")
					if !bytes.Equal(first.body, test.body) || !bytes.Equal(again.body, test.body) {
						t.Errorf("%s: %d bytes, then %d", path, len(first.body), len(again.body))
					}
					if first.Header.Get("Content-Type") != test.contentType || again.Header.Get("Content-Type") != test.contentType {
						t.Errorf("%s: content type %q, then %q", path, first.Header.Get("Content-Type"), again.Header.Get("Content-Type"))
					}
				}
			}
		})
	}
}

// semantics.md "On the wire": allow-listed headers are replayed; never set-cookie, date, hop-by-hop.
func replayedHeaders(t *testing.T) {
	policy := idem.IETF()
	policy.ReplayHeaders = []string{"x-order"}
	header := []idem.Field{
		{Name: "content-type", Value: "text/plain"}, {Name: "location", Value: "/orders/1"}, {Name: "X-Order", Value: "1"}, {Name: "x-order", Value: "2"},
		{Name: "Set-Cookie", Value: "session=1"}, {Name: "X-Request-Id", Value: "first"}, {Name: "Date", Value: "Thu, 01 Jan 1970 00:00:00 GMT"},
		{Name: "Content-Length", Value: "9"}, {Name: "Transfer-Encoding", Value: "chunked"},
		{Name: "Idempotent-Replayed", Value: "true"}, {Name: "Idempotency-Status", Value: "forged"},
	}
	a := newLocalAPI(t, nil)
	a.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		return idem.Response{Status: 201, Header: header, Body: []byte("ok")}, nil
	})
	a.wrap("POST /wrapped", idem.Operation{Name: "orders.wrap", Policy: policy}, func(w http.ResponseWriter, _ *http.Request) {
		for _, field := range header[:7] {
			w.Header().Add(field.Name, field.Value)
		}
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("X-Order", "late")
		w.Write([]byte("ok"))
	})
	for _, path := range []string{"/orders", "/wrapped"} {
		first := a.do(key(ask{path: path}))
		first.wants(t, 201, "executed")
		if first.Header.Get("Set-Cookie") != "session=1" || first.Header.Get("X-Request-Id") != "first" {
			t.Errorf("%s: the first answer lost headers: %v", path, first.Header)
		}
		again := a.do(key(ask{path: path}))
		again.wants(t, 201, "replayed")
		for _, r := range []*reply{first, again} {
			if r.Header.Get("Location") != "/orders/1" || r.Header.Get("Content-Type") != "text/plain" || !slices.Equal(r.Header.Values("X-Order"), []string{"1", "2"}) || r.ContentLength != 2 {
				t.Errorf("%s: %v", path, r.Header)
			}
		}
		if again.Header.Get("Set-Cookie") != "" || again.Header.Get("X-Request-Id") != "" || strings.Contains(again.Header.Get("Date"), "1970") {
			t.Errorf("%s: replayed what belongs to one exchange: %v", path, again.Header)
		}
	}
	for _, record := range a.mem.Records() {
		for _, field := range record.Response.Header {
			if !policy.Replays(field.Name) {
				t.Errorf("stored %s", field.Name)
			}
		}
	}
}

// semantics.md "On the wire": what another release stored is replayed by this one's list.
func TestHeadersAreFilteredAtReplayToo(t *testing.T) {
	earlier, now := idem.IETF(), idem.IETF()
	earlier.ReplayHeaders = []string{"x-order", "x-trace"}
	now.ReplayHeaders = []string{"x-order"}
	handler := func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		return idem.Response{Status: 201, Header: []idem.Field{{Name: "x-order", Value: "1"}, {Name: "x-trace", Value: "t1"}}}, nil
	}
	before := newLocalAPI(t, nil)
	before.handle("POST /orders", idem.Operation{Policy: earlier}, middleware.Route{}, handler)
	after := newLocalAPI(t, func(storage.Store) storage.Store { return before.mem })
	after.handle("POST /orders", idem.Operation{Policy: now}, middleware.Route{}, handler)
	for _, c := range []struct {
		a      *api
		status string
		trace  string
	}{{before, "executed", "t1"}, {before, "replayed", "t1"}, {after, "replayed", ""}} {
		r := c.a.do(key(ask{}))
		r.wants(t, 201, c.status)
		if r.Header.Get("X-Order") != "1" || r.Header.Get("X-Trace") != c.trace {
			t.Errorf("%s, with X-Trace %q: %v", c.status, c.trace, r.Header)
		}
	}
}

// semantics.md "Fingerprint": the body counts in canonical form, path and query as they were sent.
func TestFingerprint(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	a.handle("POST /orders/{id}/items", idem.Operation{Name: "items.create"}, middleware.Route{IgnoreQuery: []string{"trace"}}, counting(&runs))
	a.do(key(ask{path: "/orders/7/items?mode=a&trace=1", body: `{"a":1,"b":2}`})).wants(t, 201, "executed")
	for path, body := range map[string]string{
		"/orders/7/items?mode=a&trace=2": `{"a":1,"b":2}`,
		"/orders/7/items?mode=a":         "{ \"b\":2.0, \"a\":1e0 }",
	} {
		a.do(key(ask{path: path, body: body})).wants(t, 201, "replayed")
	}
	for _, q := range []ask{
		{path: "/orders/8/items?mode=a", body: `{"a":1,"b":2}`}, {path: "/orders/7/items?mode=b", body: `{"a":1,"b":2}`},
		{path: "/orders/7/items", body: `{"a":1,"b":2}`}, {path: "/orders/7/items?mode=a", body: `{"a":"1","b":2}`},
	} {
		mismatch := a.do(key(q))
		mismatch.wants(t, 422, "mismatch")
		if code := mismatch.code(t); code != header.CodeKeyReused {
			t.Errorf("code %s", code)
		}
	}
	if bad := a.do(key(ask{path: "/orders/7/items?mode=%zz"})); bad.StatusCode != 400 || bad.code(t) != "request_invalid" {
		t.Errorf("malformed query: %d", bad.StatusCode)
	}
	if runs.Load() != 1 {
		t.Errorf("ran %d times", runs.Load())
	}
}

// What a handler changes in place changes nothing else.
func TestHandlerMayChangeItsRequest(t *testing.T) {
	a := newAPI(t, nil)
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, func(_ context.Context, _ *idem.Tx, r *middleware.Request) (idem.Response, error) {
		clear(r.Body)
		r.HTTP.Header.Set("Idempotency-Key", `"other"`)
		return idem.JSON(http.StatusCreated, 1)
	})
	a.do(key(ask{body: `{"a":1}`})).wants(t, 201, "executed")
	a.do(key(ask{body: `{"a":1}`})).wants(t, 201, "replayed")
	a.do(key(ask{body: `{"a":2}`})).wants(t, 422, "mismatch")
}

func TestRejectedWritesAreStoredAnswers(t *testing.T) {
	a := newAPI(t, nil)
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(402, "insufficient_funds", "Insufficient funds", "There is not enough.")}
	})
	first, again := a.do(key(ask{})), a.do(key(ask{}))
	first.wants(t, 402, "executed")
	again.wants(t, 402, "replayed")
	if first.code(t) != "insufficient_funds" || !bytes.Equal(first.body, again.body) {
		t.Errorf("%s, then %s", first.body, again.body)
	}
}
