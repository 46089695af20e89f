package middleware_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// BenchmarkReplay is a duplicate from its HTTP request to its stored answer, in this process and on the reference store:
// the share of a replay that is not the network's or DynamoDB's.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{300, 10 << 10} {
		b.Run(fmt.Sprintf("%d B", size), func(b *testing.B) {
			body := bytes.Repeat([]byte("x"), size)
			endpoint := benchEndpoint(b, body)
			post := func(want idem.Outcome) {
				r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"amount":1999,"currency":"EUR","source":"card_ok"}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Idempotency-Key", `"order-17"`)
				w := httptest.NewRecorder()
				endpoint.ServeHTTP(w, r)
				if got := idem.Outcome(w.Header().Get("Idempotency-Status")); got != want || !bytes.Equal(w.Body.Bytes(), body) {
					b.Fatalf("got %q, %d", got, w.Code)
				}
			}
			post(idem.OutcomeExecuted)
			b.ReportAllocs()
			for b.Loop() {
				post(idem.OutcomeReplayed)
			}
		})
	}
}

func benchEndpoint(b *testing.B, body []byte) http.Handler {
	b.Helper()
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	engine, err := idem.New(mem, idem.Config{})
	if err != nil {
		b.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "t"}, nil
	}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	endpoint, err := mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{},
		func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
			return idem.Response{Status: http.StatusCreated, Body: body}, nil
		})
	if err != nil {
		b.Fatal(err)
	}
	return endpoint
}
