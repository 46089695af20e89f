package apikey_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/payments"
)

// A route that somebody adds without a scope answers nobody, and a scope that opens nothing is none.
func TestEveryRouteHasItsScope(t *testing.T) {
	routes, err := payments.Routes(24 * time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var open []apikey.Scope
	for _, route := range routes {
		scope, ok := apikey.ScopeOf(route.Pattern)
		if signed := strings.HasSuffix(route.Pattern, "/v1/webhooks/provider"); ok == signed { // the provider's webhooks know no key
			t.Errorf("%s has the scope %q", route.Pattern, scope)
		}
		if ok {
			open = append(open, scope)
		}
	}
	slices.Sort(open)
	if all := apikey.Scopes(); !slices.Equal(slices.Compact(open), all) || len(all) != 8 {
		t.Errorf("routes need %v, there are %v", open, all)
	}
	if got := apikey.SplitScopes(apikey.JoinScopes(apikey.Scopes())); !slices.Equal(got, apikey.Scopes()) {
		t.Errorf("what the authorizer says is read as %v", got)
	}
}
