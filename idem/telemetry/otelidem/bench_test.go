package otelidem_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/telemetry/otelidem"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// dropped is an exporter that only counts, so that the benchmark is of recording, not of a network.
type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (dropped) Shutdown(context.Context) error                             { return nil }

// BenchmarkRequest is an atomic request on the reference store: without a tracer, with a trace that is not sampled, and with
// one that is. The difference is what tracing costs in the process.
func BenchmarkRequest(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{"off": nil, "unsampled": sdktrace.NeverSample(), "sampled": sdktrace.AlwaysSample()} {
		b.Run(name, func(b *testing.B) {
			handler := atomicHandler(b)
			if sampler != nil {
				provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(dropped{}))
				defer func() { _ = provider.Shutdown(context.Background()) }()
				handler = trace.Handler(otelidem.New(provider), handler)
			}
			b.ReportAllocs()
			for i := range b.N {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/orders", strings.NewReader(`{"item":"book"}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Idempotency-Key", fmt.Sprintf("order-%d", i))
				r.Header.Set("Traceparent", parent)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code != http.StatusCreated {
					b.Fatalf("status %d", w.Code)
				}
			}
		})
	}
}

func atomicHandler(b *testing.B) http.Handler {
	b.Helper()
	silent := slog.New(slog.DiscardHandler)
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Logger: silent})
	if err != nil {
		b.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Logger: silent, Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: tenant}, nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	op := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	handler, err := mw.Handle(op, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		return idem.JSON(http.StatusCreated, "made")
	})
	if err != nil {
		b.Fatal(err)
	}
	return handler
}
