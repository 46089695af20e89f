package middleware_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
)

// variants are what a field of a policy allows and no published policy uses, besides what a cell of the contract leaves to
// choice ("unless strict", "minimum length by choice", "or 410 by tombstone").
var variants = map[string]func(*testing.T){
	"InFlight 202": inFlightIsAccepted,
	"StoreClientErrors and StoreServerErrors": storesAll,
	"BindPrincipal": bindsThePrincipal,
	"ReplayHeaders": replayedHeaders,
}

func TestConformanceOfVariants(t *testing.T) { // docs/semantics.md "Policies": a team can build its own
	for name, prove := range variants {
		proves(t, name, prove)
	}
}

// In flight: 202 with the operation to ask for.
func inFlightIsAccepted(t *testing.T) {
	c := newContract(t, idem.IETF(), func(p *idem.Policy) { p.InFlight = idem.InFlightAccepted })
	finish := c.hold("k")
	accepted := c.post("k", 201).is(t, 202, inProgress, "")
	var operation struct{ Operation, State string }
	if err := json.Unmarshal(accepted.body, &operation); err != nil || operation.State != "in_progress" || accepted.Header.Get("Location") != "/v1/operations/"+operation.Operation {
		t.Errorf("202 with %s, Location %q", accepted.body, accepted.Header.Get("Location"))
	}
	if id := string(c.mem.Records()[0].OperationID); operation.Operation != id {
		t.Errorf("names %s instead of %s", operation.Operation, id)
	}
	first := finish().is(t, 201, executed, "")
	c.replays(first, c.again("k"))
	c.executed(1)
}

// Scope with the principal: a key is the session's own. Without a principal it would be everybody's.
func bindsThePrincipal(t *testing.T) {
	for _, policy := range []idem.Policy{idem.IETF(), idem.Stripe()} {
		c := newContract(t, policy, func(p *idem.Policy) { p.BindPrincipal = true })
		for n, session := range []string{"tenant-a/session-1", "tenant-a/session-2", "tenant-b/session-1"} {
			first := c.post("k", 201, by(session)).is(t, 201, executed, "")
			c.replays(first, c.again("k", by(session)))
			c.executed(int64(n + 1))
		}
		c.post("k", 201, by("tenant-a")).is(t, 500, "", "internal_error")
		c.executed(3)
		c.stored(3)
		token := strings.Repeat("token", 800) // with claims, it is longer than a key may be
		first := c.post("long", 201, by("tenant-a/"+token)).is(t, 201, executed, "")
		c.replays(first, c.again("long", by("tenant-a/"+token)))
		for _, r := range c.mem.Records() {
			if strings.Contains(r.Principal, "session-") || strings.Contains(r.Principal, "token") || len(r.Principal) != 43 {
				t.Errorf("the principal is stored as %q, want a hash: it may be a live token", r.Principal)
			}
		}
	}
}
