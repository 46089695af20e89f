//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTransferMovesMoneyOnceAndReplays(t *testing.T) { // payments-api.md: POST /v1/transfers, atomic
	t.Parallel()
	from, to := open(t, "move-from", 1000), open(t, "move-to", 0)
	r := move("move", from, to, 300)
	first := deployed.tenantA.do(t, r).is(t, http.StatusCreated).says(t, "executed")
	made := decode[transfer](t, first)
	if !strings.HasPrefix(made.ID, "tr_") || made.From != from || made.To != to || made.Amount != 300 || made.Currency != "EUR" {
		t.Errorf("transfer %s", first.body)
	}
	if first.header.Get("Idempotency-Expires") == "" {
		t.Errorf("no Idempotency-Expires on a final answer: %v", first)
	}
	for range 3 {
		same(t, deployed.tenantA.do(t, r).says(t, "replayed"), first)
	}
	movedOnce(t, from, to, 1000, 300)
}

func TestBusinessConflictIsStoredAndReplayed(t *testing.T) { // design.md "One request, step by step": Reject
	t.Parallel()
	poor, rich, to := open(t, "poor", 100), open(t, "rich", 1000), open(t, "poor-to", 0)
	r := move("beyond", poor, to, 101)
	first := deployed.tenantA.do(t, r).says(t, "executed")
	first.isProblem(t, http.StatusPaymentRequired, "insufficient_funds")
	deployed.tenantA.do(t, move("beyond-fund", rich, poor, 500)).is(t, http.StatusCreated)
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), first)
	if got := balance(t, poor); got != 600 {
		t.Errorf("balance %d, want 600: the stored answer stays although the funds are there now", got)
	}
}

func TestTransferOfOrToNobodyIsStoredAndReplayed(t *testing.T) { // payments-api.md: 404 account_not_found
	t.Parallel()
	from := open(t, "alone", 100)
	for name, r := range map[string]request{
		"to": move("to-nobody", from, "acct_nobody", 1), "from": move("from-nobody", "acct_nobody", from, 1),
	} {
		t.Run(name, func(t *testing.T) {
			first := deployed.tenantA.do(t, r).says(t, "executed")
			first.isProblem(t, http.StatusNotFound, "account_not_found")
			same(t, deployed.tenantA.do(t, r).says(t, "replayed"), first)
		})
	}
	if got := balance(t, from); got != 100 {
		t.Errorf("balance %d, want 100", got)
	}
}

func TestOtherOperationWithTheSameKeyHasItsOwnResult(t *testing.T) { // semantics.md: scope is tenant + operation + key
	t.Parallel()
	from, to := open(t, "other-from", 500), open(t, "other-to", 0)
	paid, _ := settledOnce(t, pay("other-operation", card("ok")))
	moved := deployed.tenantA.do(t, move("other-operation", from, to, 10)).is(t, http.StatusCreated).says(t, "executed")
	same(t, deployed.tenantA.do(t, pay("other-operation", card("ok"))), paid)
	same(t, deployed.tenantA.do(t, move("other-operation", from, to, 10)), moved)
	movedOnce(t, from, to, 500, 10)
}

func TestBalanceHoldsUnderConcurrentTransfers(t *testing.T) { // I6; the balance is a condition in the transaction
	t.Parallel()
	const affordable, asked = 5, 12
	from, to := open(t, "race-from", affordable*10), open(t, "race-to", 0)
	requests := make([]request, asked)
	for i := range requests {
		requests[i] = move(fmt.Sprintf("race-%d", i), from, to, 10)
	}
	counts := map[int]int{}
	for _, got := range together(t, requests, deployed.tenantA.resolve) {
		counts[got.status]++
	}
	if counts[http.StatusCreated] != affordable || counts[http.StatusPaymentRequired] != asked-affordable {
		t.Errorf("answers by status: %v, want %d of 201, all others 402", counts, affordable)
	}
	if left, arrived := balance(t, from), balance(t, to); left != 0 || arrived != affordable*10 {
		t.Errorf("balances %d and %d, want 0 and %d", left, arrived, affordable*10)
	}
}

func TestTransfersToACollectingAccountAreFolded(t *testing.T) { // payments-api.md: Collecting accounts
	t.Parallel()
	const transfers, amount = 12, 10
	from, to := open(t, "collect-from", transfers*amount), open(t, "collect-to", 5)
	haveCollect(t, "tenant-a", to, 2)
	requests := make([]request, transfers)
	for i := range requests {
		requests[i] = move(fmt.Sprintf("collect-%d", i), from, to, amount)
	}
	for _, got := range together(t, requests, deployed.tenantA.resolve) {
		got.is(t, http.StatusCreated)
	}
	eventually(t, 3*time.Minute, func() string { // the sweep runs once a minute
		if got := balance(t, to); got != 5+transfers*amount {
			return fmt.Sprintf("the balance is %d, want %d", got, 5+transfers*amount)
		}
		return ""
	})
	got := decode[struct{ Incoming struct{ Transfers int } }](t, deployed.tenantA.get(t, "/v1/accounts/"+to).is(t, http.StatusOK))
	if left := balance(t, from); left != 0 || got.Incoming.Transfers != 0 {
		t.Errorf("%d left and %+v", left, got)
	}
	deployed.tenantA.do(t, move("collect-out", to, from, 5+transfers*amount)).is(t, http.StatusCreated)
}
