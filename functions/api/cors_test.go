package main

import (
	"encoding/json"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
)

// preflight is the sample payment's, as a browser asks before it: without credentials, and so without an authorizer.
func preflight(t *testing.T, origin string) []byte {
	t.Helper()
	var event map[string]any
	if err := json.Unmarshal(lambdatest.Sample(t, "api-http-payment"), &event); err != nil {
		t.Fatal(err)
	}
	request := event["requestContext"].(map[string]any)
	delete(request, "authorizer")
	request["http"].(map[string]any)["method"] = "OPTIONS"
	delete(event, "body")
	event["headers"] = map[string]string{
		"origin": origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type,idempotency-key",
	}
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// semantics.md "On the wire", CORS: for the configured origins only, and for nobody where there are none.
func TestCrossOrigin(t *testing.T) {
	lambdatest.New(t)
	const shop = "https://shop.example"
	if got := invoke(t, started(t), preflight(t, shop)); got.StatusCode != 405 || got.header("Access-Control-Allow-Origin") != "" {
		t.Errorf("without origins: %+v", got)
	}
	t.Setenv("CORS_ORIGINS", shop+",http://localhost:3000")
	h := started(t)
	got := invoke(t, h, preflight(t, shop))
	if got.StatusCode != 204 || got.header("Access-Control-Allow-Origin") != shop || got.header("Access-Control-Allow-Headers") != "authorization,content-type,idempotency-key" {
		t.Errorf("preflight: %+v", got)
	}
	if got := invoke(t, h, preflight(t, "https://evil.example")); got.header("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %+v", got)
	}

	t.Setenv("CORS_ORIGINS", "shop.example")
	cfg, err := config.Read[config.API]()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handler(t.Context(), cfg); err == nil {
		t.Error("an origin without a scheme is accepted")
	}
}
