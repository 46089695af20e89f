//go:build e2e

package e2e

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// madeKey is what the command answers that makes a key.
type madeKey struct {
	operator.Result
	Key string `json:"key"`
}

// apiKey makes a key of tenant-a with the operator's command, and returns a client that has it, and its name in commands.
func (c command) apiKey(name string, more ...string) (api, string) {
	c.Helper()
	return c.apiKeyOf("tenant-a", name, more...)
}

// apiKeyOf makes a key of any tenant.
func (c command) apiKeyOf(tenant, name string, more ...string) (api, string) {
	c.Helper()
	args := append([]string{"apikey", "create", "--tenant", tenant, "--name", name, "--test", "--reason", "ticket 18", "--write"}, more...)
	made := said[madeKey](c, args...)
	if !strings.HasPrefix(made.Key, "idem_test_") || made.Subject == "" {
		c.Fatalf("apikey create says %+v", made)
	}
	return newAPI(deployed.variables["API_URL"], made.Key, tenant), made.Subject
}

// payments-api.md "API keys": a key without the scope of a route is refused there, replays included, and nothing is executed.
func TestAnAPIKeyDoesNoMoreThanItsScopes(t *testing.T) {
	t.Parallel()
	c := builtCommand(t, mayMakeKeys)
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
	c := builtCommand(t, mayMakeKeys)
	lost, subject := c.apiKey("lost")
	until := time.Now().Add(40 * time.Second) // it is to be made, and to pay, before
	brief, _ := c.apiKey("brief", "--expires", until.UTC().Format(time.RFC3339))
	paid := pay("key-ends", card("ok"))
	brief.do(t, paid).is(t, http.StatusAccepted)
	lost.get(t, "/v1/accounts/acct_1").is(t, http.StatusOK)
	if done := said[operator.Result](c, "apikey", "revoke", subject, "--reason", "ticket 18", "--write"); done.State != operator.EntryDone {
		t.Errorf("revoked: %+v", done)
	}
	if deployed.variables["IAM"] == "on" { // who makes and revokes keys may look at nothing else
		c.exits(idemctl.ExitTrouble, "list", "dead")
		c.exits(idemctl.ExitTrouble, "audit")
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

// payments-api.md "Limits of one tenant": an operator's limit holds after at most a minute and without a deployment, for that tenant
// alone, and never for what was accepted before. What is refused executes nothing, and is executed once the limit is lifted.
func TestOneTenantIsLimitedWithoutADeployment(t *testing.T) {
	t.Parallel()
	const cacheAge = time.Minute
	tenant := "tenant-" + rand.Text()[:8] // a test before, on this stack, may have left limits
	c := builtCommand(t, mayMakeKeys)
	limited, _ := c.apiKeyOf(tenant, "limited")
	limit := func(limits ...string) {
		t.Helper()
		if done := said[operator.Result](c, slices.Concat([]string{"apikey", "limit", tenant, "--reason", "ticket 18", "--write"}, limits)...); done.State != operator.EntryDone {
			t.Fatalf("limited: %+v", done)
		}
	}
	before := pay("limited-before", card("ok"))
	limited.do(t, before).is(t, http.StatusAccepted)
	limit("--active-keys", "1")
	began, keys := time.Now(), 0
	var refused request
	eventually(t, 2*cacheAge, func() string { // each process learns of it when what it holds of the key is too old
		keys++
		refused = pay(fmt.Sprintf("limited-%d", keys), card("ok"))
		if got := limited.once(t, refused); got.status != http.StatusTooManyRequests || time.Since(began) < cacheAge {
			return fmt.Sprintf("key %d got %d after %s", keys, got.status, time.Since(began))
		}
		return ""
	})
	limited.do(t, refused).isProblem(t, http.StatusTooManyRequests, "idempotency_quota_exceeded")
	limited.settle(t, before).is(t, http.StatusCreated).says(t, "replayed")
	chargedOnce(t, before, provider.Succeeded)
	if made := chargesOf(t, refused.key); len(made) != 0 {
		t.Errorf("a refused payment charged %+v", made)
	}
	settledOnce(t, pay("limited-bystander", card("ok")))
	limit("--default")
	eventually(t, 2*cacheAge, func() string {
		if got := limited.do(t, refused); got.status == http.StatusTooManyRequests {
			return "the limit is not lifted"
		}
		return ""
	})
}
