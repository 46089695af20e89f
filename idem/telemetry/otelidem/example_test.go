package otelidem_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/telemetry/otelidem"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// One tracer serves the HTTP handler and the deliveries of the outbox.
func Example() {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	router := http.NewServeMux()
	router.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	all := []outbox.Topic{}

	tracer := otelidem.New(provider)         // in a program: otel.GetTracerProvider()
	handler := trace.Handler(tracer, router) // around everything
	topics, err := outbox.NewTopics(outbox.Config{Tracer: tracer}, all...)
	if err != nil || topics == nil {
		fmt.Println(err)
		return
	}

	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/orders", nil))
	for _, span := range spans.Ended() {
		fmt.Println(span.Name())
	}
	// Output:
	// idem.request
}
