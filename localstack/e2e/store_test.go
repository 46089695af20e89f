//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// TestStoreDownFailsClosed runs alone: nothing reaches the table of records.
func TestStoreDownFailsClosed(t *testing.T) { // semantics.md: store trouble fails closed, 503 before the handler runs
	from, to := open(t, "down-from", 100), open(t, "down-to", 0)
	paying, moving := pay("down", card("down")), move("down", from, to, 10)
	for name, fault := range map[string]faultproxy.Fault{"no connection": faultproxy.Refuse, "503": faultproxy.Refuse503} {
		t.Run(name, func(t *testing.T) {
			calm := disturb(t, faultproxy.Rule{Table: deployed.table("IDEMPOTENCY"), Fault: fault})
			for _, r := range []request{paying, moving} {
				withoutStore(t, r).isProblem(t, http.StatusServiceUnavailable, "idempotency_store_unavailable")
			}
			withoutStore(t, request{path: "/v1/operations/" + unminted}).
				isProblem(t, http.StatusServiceUnavailable, "idempotency_store_unavailable")
			calm()
		})
	}
	if made := chargesOf(t, paying.key); len(made) != 0 || balance(t, from) != 100 {
		t.Fatalf("something happened without a record: %+v", made)
	}
	t.Parallel() // the store is back
	deployed.tenantA.do(t, paying).is(t, http.StatusAccepted).says(t, "executed")
	settledOnce(t, paying)
	deployed.tenantA.do(t, moving).is(t, http.StatusCreated).says(t, "executed")
	movedOnce(t, from, to, 100, 10)
}

// withoutStore sends a request that finds no store, and is to be told so by the API function: where the emulator stalls, the gateway has not
// called it.
func withoutStore(t *testing.T, r request) reply {
	t.Helper()
	return deployed.tenantA.reach(t, r).comesBack(t)
}

// unminted is a well-formed operation id that nobody was given.
var unminted = "op_" + strings.Repeat("A", 64)

// TestEverythingDownFailsClosed runs alone: nothing reaches DynamoDB, whoever asks. What authenticates asks too, so the
// answer may be the gateway's.
func TestEverythingDownFailsClosed(t *testing.T) { // semantics.md: store trouble fails closed
	from, to := open(t, "dark-from", 100), open(t, "dark-to", 0)
	paying, moving := pay("dark", card("dark")), move("dark", from, to, 10)
	must(t, deployed.dynamodb.Down(t.Context()))
	calm := disturb(t)
	for _, r := range []request{paying, moving, {path: "/v1/accounts/acct_1"}} {
		if got := deployed.tenantA.once(t, r); got.status < 500 {
			t.Errorf("%s answered %v without a store, want 5xx", r.path, got)
		}
	}
	calm()
	if made := chargesOf(t, paying.key); len(made) != 0 || balance(t, from) != 100 {
		t.Fatalf("something happened without a store: %+v", made)
	}
	t.Parallel()
	settledOnce(t, paying)
	deployed.tenantA.settle(t, moving).is(t, http.StatusCreated)
	movedOnce(t, from, to, 100, 10)
}

// unreadable is an account that can't be read for as long as the SDK tries.
var unreadable = accountName("unreadable")

func init() {
	touch(unreadable)
	laidOut.dynamodb = append(laidOut.dynamodb, faultproxy.Rule{
		Operation: "GetItem", Contains: accountKeys + "tenant-a/" + unreadable, Fault: faultproxy.Refuse503, Times: 3,
	})
}

func TestFailureBeforeTheCommitIsNotStored(t *testing.T) { // semantics.md: 5xx not stored, retry executes
	t.Parallel()
	from, to := open(t, "unreadable", 100), open(t, "readable", 0)
	r := move("before-commit", from, to, 10)
	got := deployed.tenantA.once(t, r)
	if got.status < 500 || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("without the account: %v, want a problem with 5xx", got)
	}
	if state := record(t, operationTransfers, "before-commit"); text(state, schema.State) != "failed_retryable" {
		t.Errorf("record %v, want it released: provably nothing happened", state)
	}
	deployed.tenantA.do(t, r).is(t, http.StatusCreated).says(t, "executed")
	movedOnce(t, from, to, 100, 10)
}

var throttled = lossy(operationPayments, "throttled", faultproxy.Rule{Fault: faultproxy.Throttle, Times: 2})

func TestThrottlingIsRetried(t *testing.T) { // design.md "What a lost reply means": conflict or throttle
	t.Parallel()
	settledOnce(t, pay(throttled, card("ok")))
	if applied := met(t, trace(operationPayments, throttled)); applied != 2 {
		t.Errorf("%d requests were throttled, want 2", applied)
	}
}
