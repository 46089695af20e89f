package payments_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
)

func transfer(from, to string, amount int64) string {
	return fmt.Sprintf(`{"from":%q,"to":%q,"amount":%d,"currency":"EUR"}`, from, to, amount)
}

// docs/payments-api.md "Endpoints": both accounts and the transfer in one transaction.
func TestTransferIsADoubleEntry(t *testing.T) {
	onBoth(t, func(w *world) {
		first := w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).
			want(201, "Content-Type: application/json", "Idempotency-Status: executed", "Idempotency-Expires", "-Idempotent-Replayed")
		var view struct {
			ID, From, To, Currency string
			Amount                 int64
			CreatedAt              string `json:"created_at"`
		}
		first.decode(&view)
		if !strings.HasPrefix(view.ID, "tr_") || view.From != "acct_1" || view.To != "acct_2" || view.Amount != 500 || view.Currency != "EUR" || view.CreatedAt != "2101-02-03T12:00:00.789Z" {
			w.Errorf("transfer %s", first.body)
		}
		for range 3 {
			w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201, "Idempotent-Replayed: true").same(first)
		}
		w.balances(tenantA, seedBalance-500, 500)
		w.balances(tenantB, seedBalance, 0)
	})
}

func (w *world) balances(tenant string, first, second int64) {
	w.Helper()
	if a, b := w.balance(tenant, "acct_1"), w.balance(tenant, "acct_2"); a != first || b != second {
		w.Errorf("%s has %d and %d, want %d and %d", tenant, a, b, first, second)
	}
}

// docs/semantics.md "Policies": a business answer is stored, and stays although the money has come meanwhile.
func TestTransferBeyondTheBalance(t *testing.T) {
	onBoth(t, func(w *world) {
		poor := transfer("acct_2", "acct_1", 1)
		first := w.post(tenantA, "/v1/transfers", "k", poor).problem(402, "insufficient_funds").want(402, "Idempotency-Status: executed", "Idempotency-Expires")
		w.post(tenantA, "/v1/transfers", "in", transfer("acct_1", "acct_2", 10)).want(201)
		w.post(tenantA, "/v1/transfers", "k", poor).problem(402, "insufficient_funds").want(402, "Idempotent-Replayed: true").same(first)
		w.balances(tenantA, seedBalance-10, 10)
		w.post(tenantA, "/v1/transfers", "k2", transfer("acct_2", "acct_1", 10)).want(201) // to the last cent
		w.post(tenantA, "/v1/transfers", "k3", poor).problem(402, "insufficient_funds")
		w.balances(tenantA, seedBalance, 0)
	})
}

func TestTransferBetweenAccountsThatDoNotFit(t *testing.T) {
	onBoth(t, func(w *world) {
		w.open(payments.Account{Tenant: tenantA, ID: "acct_usd", Currency: "USD", Balance: 100})
		w.open(payments.Account{Tenant: tenantB, ID: "acct_b", Currency: "EUR", Balance: 100})
		for i, body := range []string{transfer("acct_9", "acct_1", 1), transfer("acct_1", "acct_9", 1), transfer("acct_b", "acct_1", 1)} {
			key := fmt.Sprintf("missing-%d", i)
			first := w.post(tenantA, "/v1/transfers", key, body).problem(404, "account_not_found")
			w.post(tenantA, "/v1/transfers", key, body).want(404, "Idempotent-Replayed: true").same(first)
		}
		w.post(tenantA, "/v1/transfers", "usd", transfer("acct_1", "acct_usd", 1)).problem(400, "currency_mismatch")
		w.post(tenantA, "/v1/transfers", "eur", strings.Replace(transfer("acct_1", "acct_2", 1), "EUR", "USD", 1)).problem(400, "currency_mismatch")

		w.post(tenantA, "/v1/transfers", "self", transfer("acct_1", "acct_1", 1)).pointers("/to")
		w.post(tenantA, "/v1/transfers", "self", `{"from":"a/b","to":"acct_2","amount":1.5,"currency":"EU","note":1}`).pointers("/amount", "/currency", "/from", "/note")
		w.balances(tenantA, seedBalance, 0)
		w.post(tenantA, "/v1/transfers", "self", transfer("acct_1", "acct_2", 1)).want(201, "Idempotency-Status: executed") // a 400 is not stored
	})
}

// docs/design.md I6: whatever runs at once, money is conserved and no balance falls below zero.
func TestTransfersAtOnceConserveMoney(t *testing.T) {
	onBoth(t, func(w *world) {
		accounts := []string{"acct_x", "acct_y", "acct_z"}
		for _, id := range accounts {
			w.open(payments.Account{Tenant: tenantA, ID: id, Currency: "EUR", Balance: 100})
		}
		moved := map[string]int64{}
		requests := make([]string, 30)
		for i := range requests {
			requests[i] = transfer(accounts[i%3], accounts[(i+1+i/3%2)%3], int64(40+i))
		}
		answers := w.simultaneously(len(requests), func(i int) answer {
			return w.post(tenantA, "/v1/transfers", fmt.Sprintf("k-%d", i), requests[i])
		})
		for i, got := range answers {
			if got.status != 201 && got.status != 402 {
				w.Errorf("transfer %d: %d %s", i, got.status, got.body)
			}
			if got.status == 201 {
				var t struct {
					From, To string
					Amount   int64
				}
				decode(w.T, []byte(requests[i]), &t)
				moved[t.From] -= t.Amount
				moved[t.To] += t.Amount
			}
		}
		var sum int64
		for _, id := range accounts {
			balance := w.balance(tenantA, id)
			sum += balance
			if balance < 0 || balance != 100+moved[id] {
				w.Errorf("%s has %d, of 100 and %d that the answers say were moved", id, balance, moved[id])
			}
		}
		if sum != 300 {
			w.Errorf("300 became %d", sum)
		}
	})
}

// 20 simultaneous duplicates: one moves money; the others replay or are told to come again.
func TestTransferSimultaneousDuplicates(t *testing.T) {
	onBoth(t, func(w *world) {
		send := func(int) answer { return w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)) }
		answers := w.simultaneously(20, send)
		final := send(0).want(201, "Idempotent-Replayed: true")
		for _, got := range answers {
			if got.status == 409 {
				got.problem(409, "idempotency_key_in_progress").want(409, "Retry-After")
				continue
			}
			got.same(final)
		}
		w.balances(tenantA, seedBalance-500, 500)
	})
}

// docs/design.md I5: the same ids in both tenants, and no way from one to the other.
func TestTenantsAreIsolated(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		w.deliver(a.Operation)
		w.get(tenantB, "/v1/payments/"+a.Payment.ID).problem(404, "payment_not_found")
		w.get(tenantB, "/v1/operations/"+string(a.Operation)).problem(404, "operation_not_found")
		w.open(payments.Account{Tenant: tenantA, ID: "acct_secret", Currency: "EUR", Balance: 7})
		w.get(tenantB, "/v1/accounts/acct_secret").problem(404, "account_not_found")
		for _, path := range []string{"payments/pay_none", "payments/pay_none%2F..", "operations/op_none", "operations/" + unusedOperation, "accounts/tenant-b%2Facct_1", "accounts/..%2Ftenant-b%2Facct_1"} {
			w.get(tenantA, "/v1/"+path).want(404, "Content-Type: application/problem+json")
		}
		w.post(tenantB, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201)
		w.balances(tenantA, seedBalance, 0)
		w.balances(tenantB, seedBalance-500, 500)
	})
}
