package awslambda

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/idem-go/idem-aws/idem/telemetry"
)

// A line says which invocation wrote it, and which request of the gateway it is about; also where the logger has groups.
func TestLinesNameTheirRequest(t *testing.T) {
	log := &bytes.Buffer{}
	handler, err := telemetry.NewHandler(slog.NewJSONHandler(log, nil), telemetry.Config{Members: RequestMembers})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(handler)
	invoked := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r-1"})
	line := func(write func()) map[string]any {
		t.Helper()
		log.Reset()
		write()
		got := map[string]any{}
		if err := json.Unmarshal(log.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	served := func(log *slog.Logger, event any) func() {
		return func() {
			handler := HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { log.InfoContext(r.Context(), "served") }), Config{})
			body, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := handler(invoked, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	v2 := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: "/x", RequestContext: events.APIGatewayV2HTTPRequestContext{
		RequestID: "g-2=", HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: "GET"},
	}}
	v1 := events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/x", RequestContext: events.APIGatewayProxyRequestContext{RequestID: "g-1="}}
	for name, row := range map[string]struct {
		write            func()
		request, gateway any
	}{
		"HTTP API":          {served(logger, v2), "r-1", "g-2="},
		"REST API":          {served(logger, v1), "r-1", "g-1="},
		"a group":           {served(logger.WithGroup("of"), v1), "r-1", "g-1="},
		"another event":     {func() { logger.InfoContext(invoked, "woken") }, "r-1", nil},
		"a metric":          {func() { logger.InfoContext(invoked, "idempotency.reserve.new") }, "r-1", nil},
		"outside of Lambda": {func() { logger.InfoContext(context.WithoutCancel(t.Context()), "started") }, nil, nil},
	} {
		if got := line(row.write); got["request_id"] != row.request || got["gateway_request_id"] != row.gateway {
			t.Errorf("%s: %v, want %v and %v", name, got, row.request, row.gateway)
		}
	}
}
