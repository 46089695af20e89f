package payments_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/route"
)

// A path in another spelling is not found: a redirect would take a POST along, and a gateway's rule by route would not
// have seen it.
func TestAPathInAnotherSpellingIsNotFound(t *testing.T) {
	onBoth(t, func(w *world) {
		for _, path := range []string{"//v1/payments", "/v1//payments", "/v1/./payments", "/v1/x/../payments", "/v1%2fpayments", "/v1%2Fpayments", "/v1/payments/"} {
			w.post(tenantA, path, "k", `{"amount":1999,"currency":"EUR","source":"card_ok"}`).problem(404, "not_found")
		}
		w.send("GET", tenantA, "/v1/operations/a%2fb", "").problem(404, "operation_not_found")
	})
}

// The gateway's throttle of what moves money is on every path that takes a POST, and on no other.
func TestTheGatewaysPayingRoutesAreTheApplicationsPosts(t *testing.T) {
	routes, err := payments.Routes(24 * time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var posts []string
	for _, r := range routes {
		if method, path, _ := strings.Cut(r.Pattern, " "); method == "POST" && path != "/v1/webhooks/provider" {
			posts = append(posts, path)
		}
	}
	slices.Sort(posts)
	if want := slices.Sorted(slices.Values(route.Paying)); !slices.Equal(posts, want) {
		t.Errorf("the application takes POST at %q, the gateway throttles %q", posts, want)
	}
}

// A gateway has a route for each of these, and what comes by another one is answered 404.
func TestTheGatewaysRoutesAreTheApplicationsPaths(t *testing.T) {
	routes, err := payments.Routes(24 * time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, r := range routes {
		if _, path, _ := strings.Cut(r.Pattern, " "); path != "/v1/webhooks/provider" { // it has a function of its own
			served[path] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(served)), slices.Sorted(slices.Values(route.Paths)); !slices.Equal(got, want) {
		t.Errorf("the application serves %q, the gateway routes %q", got, want)
	}
}
