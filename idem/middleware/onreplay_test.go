package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
)

// semantics.md "On the wire": replay = same status, same body bytes, same allow-listed headers, whatever a hook wants.
func TestOnReplayAddsOnlyWhatIsNotStored(t *testing.T) {
	a := newAPI(t, nil)
	policy := idem.IETF()
	policy.ReplayHeaders = []string{"X-Order"}
	var told []middleware.Replay
	var id idem.OperationID
	a.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{OnReplay: func(_ context.Context, r *middleware.Request, replay middleware.Replay) (http.Header, error) {
		told = append(told, replay)
		clear(r.Body)
		return http.Header{
			"X-Trace": {"a", "b"}, "Deprecation": {"@1688169599"}, "Link": {`<https://x.example>; rel="sunset"`},
			"content-type": {"text/html"}, "Content-Encoding": {"gzip"}, "Content-Length": {"1"}, "Location": {"/evil"}, "x-order": {"2"},
			"Set-Cookie": {"a=b"}, "Transfer-Encoding": {"chunked"}, "Retry-After": {"1"}, "Date": {"now"},
			"Idempotency-Status": {"executed"}, "Idempotent-Replayed": {"false"}, "Idempotency-Expires": {"never"},
		}, nil
	}}, func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		id = tx.OperationID()
		return idem.Response{Status: 201, Body: []byte(`{ "a": 1.0 }`)}.With("Content-Type", "application/json").With("Location", "/orders/1").With("X-Order", "1"), nil
	})
	first := a.do(key(ask{}))
	first.wants(t, 201, "executed")
	if first.Header.Get("X-Trace") != "" || len(told) != 0 {
		t.Error("the hook ran for a first execution")
	}
	again := a.do(key(ask{}))
	for _, name := range []string{"Content-Type", "Content-Length", "Location", "X-Order", "Idempotency-Expires"} {
		if !slices.Equal(again.Header.Values(name), first.Header.Values(name)) {
			t.Errorf("%s: %q, then %q", name, first.Header.Values(name), again.Header.Values(name))
		}
	}
	if again.StatusCode != 201 || string(again.body) != string(first.body) || again.Header.Get("Idempotency-Status") != "replayed" || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s %v", again.StatusCode, again.body, again.Header)
	}
	for _, name := range []string{"Content-Encoding", "Set-Cookie", "Retry-After"} {
		if again.Header.Get(name) != "" {
			t.Errorf("%s: %s", name, again.Header.Get(name))
		}
	}
	if !slices.Equal(again.Header.Values("X-Trace"), []string{"a", "b"}) || again.Header.Get("Deprecation") == "" || len(again.Header.Values("Link")) != 2 {
		t.Errorf("headers of the hook: %v", again.Header)
	}
	if len(told) != 1 || told[0].Status != 201 || told[0].State != storage.StateCompleted || told[0].OperationID != id || told[0].ExpiresAt.IsZero() {
		t.Errorf("told %+v", told)
	}
	if !strings.Contains(a.log.String(), `"name":"Content-Encoding"`) {
		t.Error("what was dropped is not logged")
	}
	// peers.md H15: nobody is told of a replay before the caller may have it.
	a.do(key(ask{tenant: "wrong"})).wants(t, 403, "")
	a.do(key(ask{body: `{"a":1}`})).wants(t, 422, "mismatch")
	if len(told) != 1 {
		t.Errorf("the hook ran %d times", len(told))
	}
}

func TestOnReplayThatFailsLeavesTheReplay(t *testing.T) {
	for name, hook := range map[string]func() (http.Header, error){
		"error": func() (http.Header, error) { return http.Header{"X-Trace": {"a"}}, errors.New("no tracer") },
		"panic": func() (http.Header, error) { panic("no tracer") },
	} {
		a := newAPI(t, nil)
		a.handle("POST /orders", idem.Operation{}, middleware.Route{OnReplay: func(context.Context, *middleware.Request, middleware.Replay) (http.Header, error) {
			return hook()
		}}, counting(new(atomic.Int64)))
		first, again := a.do(key(ask{})), a.do(key(ask{}))
		again.wants(t, 201, "replayed")
		if string(first.body) != string(again.body) || again.Header.Get("X-Trace") != "" || !strings.Contains(a.log.String(), "no tracer") {
			t.Errorf("%s: %s %v", name, again.body, again.Header)
		}
	}
}
