package main

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
)

// POST /v1%2fpayments as the gateways deliver it: an HTTP API unescapes the path and names the route that it took, a REST API
// keeps the escape. A rule of the gateway by route has seen neither as POST /v1/payments.
func TestAnEscapedSlashIsNotFoundBehindEitherGateway(t *testing.T) {
	s := lambdatest.New(t)
	h := started(t)
	changed := func(sample string, pairs ...string) []byte {
		return []byte(strings.NewReplacer(pairs...).Replace(string(lambdatest.Sample(t, sample))))
	}
	for name, event := range map[string][]byte{
		"HTTP API": changed("api-http-payment", `"ANY /v1/payments"`, `"$default"`),
		"HTTP API, in a variable": changed("api-http-account", `"/v1/accounts/acct_1"`, `"/v1/payments/p/refunds"`, `"ANY /v1/accounts/{id}"`,
			`"ANY /v1/payments/{id}"`, `"acct_1"`, `"p/refunds"`, `"GET"`, `"POST"`),
		"REST API": changed("api-rest-payment", `"/v1/payments"`, `"/v1%2fpayments"`, `"/prod/v1/payments"`, `"/prod/v1%2fpayments"`),
	} {
		got := invoke(t, h, event)
		if got.StatusCode != 404 || got.header("Content-Type") != "application/problem+json" || !strings.Contains(got.Body, "not_found") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if records := s.Items(t, s.Idempotency); len(records) > 0 {
		t.Errorf("%d records", len(records))
	}
}
