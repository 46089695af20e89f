package otelidem_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/idem-go/idem-aws/idem/client"
)

// The client sends through the transport that it is given. With otelhttp's each attempt is a span of its own, below the
// span that the caller began, and the server is told of it.
func Example_client() {
	var parents []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if parents = append(parents, r.Header.Get("Traceparent")); len(parents) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()

	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	transport, err := client.New(client.Config{
		Base: otelhttp.NewTransport(http.DefaultTransport,
			otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{})),
		Pause: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, order := provider.Tracer("shop").Start(context.Background(), "order")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("{}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = response.Body.Close()
	order.End()

	id := order.SpanContext().TraceID().String()
	fmt.Println("requests:", len(parents), "of the order's trace:", parents[0][3:35] == id && parents[1][3:35] == id)
	fmt.Println("a span each:", parents[0][36:52] != parents[1][36:52])
	// Output:
	// requests: 2 of the order's trace: true
	// a span each: true
}
