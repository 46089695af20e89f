//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// madeKey is what the command answers that makes a key.
type madeKey struct {
	operator.Result
	Key string `json:"key"`
}

// apiKey makes a key of tenant-a with the operator's command, and returns a client that has it, and its name in commands.
func (c command) apiKey(name string, more ...string) (api, string) {
	c.Helper()
	args := append([]string{"apikey", "create", "--tenant", "tenant-a", "--name", name, "--test", "--reason", "ticket 18", "--write"}, more...)
	made := said[madeKey](c, args...)
	if !strings.HasPrefix(made.Key, "idem_test_") || made.Subject == "" {
		c.Fatalf("apikey create says %+v", made)
	}
	return newAPI(deployed.variables["API_URL"], made.Key), made.Subject
}

// payments-api.md "API keys": a key without the scope of a route is refused there, replays included, and nothing is executed.
func TestAnAPIKeyDoesNoMoreThanItsScopes(t *testing.T) {
	t.Parallel()
	c := builtCommand(t)
	reader, _ := c.apiKey("reader", "--scopes", "payments:read,operations:read")
	r := pay("scopes", card("ok"))
	reader.do(t, r).isProblem(t, http.StatusForbidden, "scope_missing")
	_, body := accept(t, r) // executes: the refusal has left nothing
	settledOnce(t, r)
	reader.do(t, r).isProblem(t, http.StatusForbidden, "scope_missing")
	if status := reader.readPayment(t, body.Payment.ID).Status; status != "succeeded" {
		t.Errorf("the payment reads as %s", status)
	}
	if state := reader.readOperation(t, body.Operation).State; state != "completed" {
		t.Errorf("the operation reads as %s", state)
	}
	reader.get(t, "/v1/accounts/acct_1").isProblem(t, http.StatusForbidden, "scope_missing")
	c.exits(idemctl.ExitUsage, "apikey", "create", "--tenant", "tenant-a", "--name", "x", "--scopes", "payments:everything", "--reason", "ticket 18", "--write")
}

// payments-api.md "API keys": a revoked key is refused after at most a minute, an expired one from its instant on; what they
// paid for stays.
func TestAnAPIKeyEnds(t *testing.T) {
	t.Parallel()
	c := builtCommand(t)
	until := time.Now().Add(20 * time.Second)
	brief, _ := c.apiKey("brief", "--expires", until.UTC().Format(time.RFC3339))
	lost, subject := c.apiKey("lost")
	paid := pay("key-ends", card("ok"))
	brief.do(t, paid).is(t, http.StatusAccepted)
	lost.get(t, "/v1/accounts/acct_1").is(t, http.StatusOK)
	if done := said[operator.Result](c, "apikey", "revoke", subject, "--reason", "ticket 18", "--write"); done.State != operator.EntryDone {
		t.Errorf("revoked: %+v", done)
	}
	for name, key := range map[string]api{"expired": brief, "revoked": lost} {
		eventually(t, 2*time.Minute, func() string {
			if got := key.get(t, "/v1/accounts/acct_1"); got.status != http.StatusForbidden {
				return "the " + name + " key is not refused"
			}
			return ""
		})
	}
	settledOnce(t, paid)
}
