package awslambda

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
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

// Nor does a load balancer pass any header: what it does not is not committed either. It counts what is added to a stored header, too.
func TestNothingIsCommittedWhoseHeadersTheFrontDoesNotPass(t *testing.T) {
	for bytes, passes := range map[int]bool{14 << 10: true, 16 << 10: false, 32 << 10: false} {
		for event, balanced := range map[string]bool{"api-alb-payment": true, "api-http-payment": false, "api-rest-payment": false, "api-url-payment": false} {
			store, err := memstore.New(memstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			located := idem.Response{Status: 201, Header: []storage.Field{{Name: "Location", Value: strings.Repeat("x", bytes)}}}
			serve := serving(t, store, located).ServeHTTP
			out, body := answered(t, sample(t, event), serve)
			again, _ := answered(t, sample(t, event), serve)
			switch {
			case passes || !balanced:
				if out.StatusCode != 201 || again.StatusCode != 201 || len(store.Rows()) != 1 {
					t.Errorf("%s, a header of %d bytes: %d, then %d; %d rows", event, bytes, out.StatusCode, again.StatusCode, len(store.Rows()))
				}
			case out.StatusCode != 500 || problemCode(t, body) != "idempotency_response_too_large" || len(store.Rows()) != 0:
				t.Errorf("%s, a header of %d bytes: %d %.200s, %d rows", event, bytes, out.StatusCode, body, len(store.Rows()))
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
	return handling(t, engine, idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()},
		func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
			tx.Write(memstore.Write{Key: string(tx.OperationID()), Apply: func([]byte) []byte { return []byte("row") }})
			return response, nil
		})
}

func handling(t *testing.T, engine *idem.Engine, op idem.Operation, handler middleware.Handler) http.Handler {
	t.Helper()
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	handled, err := mw.Handle(op, middleware.Route{}, handler)
	if err != nil {
		t.Fatal(err)
	}
	return handled
}

// The provider has executed what is settled within a request: where the load balancer can't return the topic's answer, its short one is
// stored, so that neither this request nor a retry is told of a failure.
func TestASettlementWithinARequestFitsTheFront(t *testing.T) {
	for what, large := range map[string]idem.Response{
		"body":   {Status: 201, Body: []byte(`"` + strings.Repeat("a", 1_200_000) + `"`)},
		"header": {Status: 201, Header: []storage.Field{{Name: "Location", Value: strings.Repeat("x", 20<<10)}}, Body: []byte(`"made"`)},
	} {
		for event, short := range map[string]bool{"api-alb-payment": true, "api-http-payment": false, "api-rest-payment": false, "api-url-payment": false} {
			serve := settlingInline(t, large).ServeHTTP
			out, body := answered(t, sample(t, event), serve)
			again, replayed := answered(t, sample(t, event), serve)
			if out.StatusCode != 201 || again.StatusCode != 201 || string(replayed) != string(body) {
				t.Errorf("%s, %s: %d %.200s, then %d %.200s", what, event, out.StatusCode, body, again.StatusCode, replayed)
				continue
			}
			if !short && len(body) != len(large.Body) || short && problemCode(t, body) != "response_too_large" {
				t.Errorf("%s, %s: %d bytes, %.200s", what, event, len(body), body)
			}
		}
	}
}

// settlingInline is a handler whose message is delivered within the request, and settled with this.
func settlingInline(t *testing.T, response idem.Response) http.Handler {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	topics, err := outbox.NewTopics(outbox.Config{}, outbox.Topic{
		Name: "orders.ship", Keys: outbox.Keys{Honoured: true, Retention: time.Hour},
		Call: func(context.Context, storage.Message) outbox.Outcome {
			return outbox.Delivered{Reference: "shipment-1"}
		},
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			return outbox.Settlement{Response: response}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	queue := memqueue.New(time.Now)
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	if err != nil {
		t.Fatal(err)
	}
	inline, err := outbox.NewInline(worker)
	if err != nil {
		t.Fatal(err)
	}
	return handling(t, engine, idem.Operation{Name: "orders.create", Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: inline},
		func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
			tx.Send("orders.ship", []byte("{}"))
			return idem.Response{Status: http.StatusAccepted}, nil
		})
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
