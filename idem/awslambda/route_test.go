package awslambda

import (
	"net/http"
	"testing"
)

// An HTTP API hands "/v1%2fpayments" on as "/v1/payments". Where each path has a route of its own, the route tells them apart;
// the other gateways keep the escape, and the handler's router sees it.
func TestAPathThatCameByACatchAllIsNotFoundWhereRoutesAreExplicit(t *testing.T) {
	http2, rest, url, alb := sample(t, "api-http-payment"), sample(t, "api-rest-payment"), sample(t, "api-url-payment"), sample(t, "api-alb-payment")
	for name, c := range map[string]struct {
		event  []byte
		status int
	}{
		"HTTP API, its own route":               {http2, 200},
		"HTTP API, %2f, by the catch-all":       {edit(t, http2, map[string]any{"routeKey": "$default"}), 404},
		"HTTP API, %2f, by a greedy variable":   {edit(t, http2, map[string]any{"routeKey": "ANY /{proxy+}", "pathParameters": map[string]any{"proxy": "v1/payments"}}), 404},
		"HTTP API, a variable":                  {edit(t, http2, map[string]any{"routeKey": "ANY /v1/payments/{id}", "rawPath": "/v1/payments/p", "pathParameters": map[string]any{"id": "p"}}), 200},
		"HTTP API, %2f in a variable":           {edit(t, http2, map[string]any{"routeKey": "ANY /v1/payments/{id}", "rawPath": "/v1/payments/p/refunds", "pathParameters": map[string]any{"id": "p/refunds"}}), 404},
		"HTTP API, payload 1.0, its own route":  {edit(t, rest, map[string]any{"version": "1.0", "resource": "/v1/payments", "pathParameters": nil}), 200},
		"HTTP API, payload 1.0, by a catch-all": {edit(t, rest, map[string]any{"version": "1.0", "resource": "$default", "pathParameters": nil}), 404},
		"REST API":                              {rest, 200},
		"function URL":                          {url, 200},
		"load balancer":                         {alb, 200},
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran = true })
			payload, err := HTTP(handler, Config{ExplicitRoutes: true}).Invoke(t.Context(), c.event)
			if err != nil {
				t.Fatal(err)
			}
			status, body := opened(t, payload)
			if status != c.status || ran != (c.status == 200) || !ran && problemCode(t, body) != "not_found" {
				t.Errorf("%d %s, ran %v", status, body, ran)
			}
			if payload, err = HTTP(handler, Config{}).Invoke(t.Context(), c.event); err != nil {
				t.Fatal(err)
			}
			if status, _ := opened(t, payload); status != 200 {
				t.Errorf("%d where nothing is said of routes", status)
			}
		})
	}
}
