package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
)

// semantics.md "Metrics": what becomes of a request is a metric, whatever LOG_LEVEL says, and its line names the tenant
// for Contributor Insights; no dimension does.
func TestAPIPrintsMetrics(t *testing.T) {
	s := lambdatest.New(t)
	s.Account(t, lambdatest.Tenant, "acct_1", 1000)
	log := lambdatest.Log(t)
	h := started(t)
	payout := string(lambdatest.Sample(t, "api-http-payout"))
	other := strings.Replace(payout, `\"amount\":500`, `\"amount\":400`, 1)
	if other == payout {
		t.Fatal("the sample is unchanged")
	}
	for _, event := range []string{payout, payout, other} {
		invoke(t, h, []byte(event))
	}
	want := []string{
		"outbox.delivered", "outbox.delivered", // inline first: both phases
		"idempotency.reserve.created", "idempotency.reserve.replay", "idempotency.reserve.key_misuse",
	}
	var got []string
	for _, l := range log() {
		got = append(got, l.Message)
		if l.Metrics[l.Message] != 1 || l.Tenant != lambdatest.Tenant || l.Namespace != "idem" || len(l.Dimensions) != 1 || len(l.Dimensions[0]) != 0 {
			t.Errorf("line %+v", l)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}

	lambdatest.Unreachable(t)
	log = lambdatest.Log(t)
	invoke(t, started(t), []byte(payout))
	if lines := log(); len(lines) != 1 || lines[0].Message != "idempotency.store.error" || lines[0].Metrics["idempotency.store.error"] != 1 {
		t.Errorf("store down: %+v", lines)
	}
}
