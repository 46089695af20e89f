package identity_test

import (
	"context"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/identity"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
)

// caller has one key.
type caller struct{ key apikey.Key }

func (c *caller) Caller(context.Context, string) (apikey.Key, error) { return c.key, nil }

// A tenant has the limits of the key that its last request came with, whoever authenticates; without any, or with words that say
// nothing, the deployment's.
func TestLimitsAreThoseOfTheTenantsLastKey(t *testing.T) {
	limits, err := identity.NewLimits()
	if err != nil {
		t.Fatal(err)
	}
	wants := func(tenant string, want apikey.Limits) {
		t.Helper()
		if got := limits.Of(tenant); got != want {
			t.Errorf("%s: %+v, want %+v", tenant, got, want)
		}
	}
	say := func(words any) {
		t.Helper()
		event := changed(t, "api-http-payment", map[string]any{"lambda": map[string]any{"tenant": lambdatest.Tenant, "scopes": "payments:write", "limits": words}})
		if _, err := identified(t, event, identity.Gateway(limits)); err != nil {
			t.Fatal(err)
		}
	}
	wants(lambdatest.Tenant, apikey.Limits{})
	say("new_keys=5 waits=1")
	wants(lambdatest.Tenant, apikey.Limits{NewKeysPerSecond: 5, WaitsPerSecond: 1})
	wants("tenant-b", apikey.Limits{})
	say("new_keys=0")
	wants(lambdatest.Tenant, apikey.Limits{})
	say("new_keys=5")
	say(nil)
	wants(lambdatest.Tenant, apikey.Limits{})

	own := &caller{apikey.Key{Tenant: "tenant-b", Scopes: apikey.Scopes(), Limits: apikey.Limits{LookUpsPerSecond: 7}}}
	function := identity.Function(own, limits, silent)
	for range 2 {
		if _, err := identified(t, lambdatest.Sample(t, "api-http-payment"), function); err != nil {
			t.Fatal(err)
		}
		wants("tenant-b", own.key.Limits)
		own.key.Limits = apikey.Limits{}
	}
}
