package main

import (
	"strings"
	"testing"
)

// semantics.md "Policies": the audit lists every route, and fails on a gap or on an operation name that vanished.
func TestNoReleasedOperationIsLost(t *testing.T) {
	var table strings.Builder
	if err := run(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"POST /v1/payments ", "refunds.create", "deferred", "24h0m0s", "ietf", "GET /v1/operations/{id}", "POST /v1/webhooks/provider ", "webhooks.provider", "168h0m0s"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, table.String())
		}
	}
}
