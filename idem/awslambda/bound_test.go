package awslambda

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A load balancer takes 1 MB from a function, and answers 502 to more: an answer that it can't give must not be committed, because the
// key would have nothing but 502 for as long as its record lives. Gateways that return all that Lambda does get the same answer.
func TestNothingIsCommittedThatTheFrontCantReturn(t *testing.T) {
	for _, kind := range []struct{ contentType, body string }{
		{"application/json", `"` + strings.Repeat("a", 1<<20) + `"`},
		{"application/json", `"` + strings.Repeat(`\n`, 400<<10) + `"`},
		{"application/octet-stream", strings.Repeat("\xff", 800_000)},
	} {
		for event, refused := range map[string]bool{"api-alb-payment": true, "api-http-payment": false, "api-rest-payment": false, "api-url-payment": false} {
			store, err := memstore.New(memstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			large := idem.Response{Status: 201, Header: []storage.Field{{Name: "content-type", Value: kind.contentType}}, Body: []byte(kind.body)}
			serve := serving(t, store, large).ServeHTTP
			out, body := answered(t, sample(t, event), serve)
			again, replayed := answered(t, sample(t, event), serve)
			switch {
			case !refused:
				if out.StatusCode != 201 || again.StatusCode != 201 || string(body) != kind.body || string(replayed) != kind.body || len(store.Rows()) != 1 {
					t.Errorf("%s: %d, then %d with %d bytes; %d rows", event, out.StatusCode, again.StatusCode, len(replayed), len(store.Rows()))
				}
			case out.StatusCode != 500 || problemCode(t, body) != "idempotency_response_too_large" || len(store.Rows()) != 0:
				t.Errorf("%s, %s of %d bytes: %d %.200s, %d rows", event, kind.contentType, len(kind.body), out.StatusCode, body, len(store.Rows()))
			}
		}
	}
}

// serving is a handler that writes a row and answers this.
func serving(t *testing.T, store *memstore.Store, response idem.Response) http.Handler {
	t.Helper()
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{},
		func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
			tx.Write(memstore.Write{Key: string(tx.OperationID()), Apply: func([]byte) []byte { return []byte("row") }})
			return response, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// An answer that is in the store already, by another gateway or from before, is a problem that says why.
func TestTooLargeForALoadBalancerIsAProblem(t *testing.T) {
	for contentType, bytes := range map[string]int{"text/plain": 1_000_000, "image/png": 750_000} {
		out, body := answered(t, sample(t, "api-alb-payment"), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Write([]byte(strings.Repeat("a", bytes)))
		})
		if out.StatusCode != 500 || problemCode(t, body) != "response_too_large" {
			t.Errorf("%s: %d %.100s", contentType, out.StatusCode, body)
		}
	}
	// What the engine lets pass fits, whatever the bytes are: some cost more as text than as base64.
	for _, body := range []string{strings.Repeat("\x01", 700_000), strings.Repeat("a", 700_000), strings.Repeat("\xff", 700_000)} {
		if out, got := answered(t, sample(t, "api-alb-payment"), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Write([]byte(body))
		}); out.StatusCode != 200 || string(got) != body {
			t.Errorf("%q…: %d, %d bytes", body[:1], out.StatusCode, len(got))
		}
	}
}
