//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// The application's paths and operations (docs/payments-api.md).
const (
	payments  = "/v1/payments"
	payouts   = "/v1/payouts"
	transfers = "/v1/transfers"

	operationPayments  = "payments.create"
	operationRefunds   = "refunds.create"
	operationPayouts   = "payouts.create"
	operationTransfers = "transfers.create"
)

// payment is a payment as GET and the final answer show it.
type payment struct {
	ID                string  `json:"id"`
	Status            string  `json:"status"`
	Amount            int64   `json:"amount"`
	Currency          string  `json:"currency"`
	Source            string  `json:"source"`
	Reference         string  `json:"reference"`
	ProviderReference *string `json:"provider_reference"`
	Refunded          int64   `json:"refunded"`
	CreatedAt         string  `json:"created_at"`
}

// accepted is the body of a 202; it is about one of the three.
type accepted struct {
	Operation idem.OperationID `json:"operation"`
	State     string           `json:"state"`
	Payment   payment          `json:"payment"`
	Refund    refund           `json:"refund"`
	Payout    payout           `json:"payout"`
}

// operation is what GET /v1/operations/{id} shows.
type operation struct {
	ID          idem.OperationID `json:"id"`
	State       string           `json:"state"`
	CreatedAt   string           `json:"created_at"`
	CompletedAt *string          `json:"completed_at"`
	Response    *struct {
		Status       int               `json:"status"`
		Headers      map[string]string `json:"headers"`
		Body         string            `json:"body"`
		BodyEncoding string            `json:"body_encoding"`
	} `json:"response"`
}

type transfer struct {
	ID       string `json:"id"`
	From     string `json:"from"`
	To       string `json:"to"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// named makes a name this run's own.
func named(name string) string { return run + "-" + name }

// pay is the request of a payment from a source; its key and reference are the name.
func pay(name, source string) request {
	return request{method: http.MethodPost, path: payments, key: named(name), body: paymentBody(1999, source, named(name))}
}

func paymentBody(amount int64, source, reference string) string {
	return fmt.Sprintf(`{"amount":%d,"currency":"EUR","source":%q,"reference":%q}`, amount, source, reference)
}

// move is the request of a transfer; its key is the name.
func move(name, from, to string, amount int64) request {
	return request{method: http.MethodPost, path: transfers, key: named(name), body: transferBody(from, to, amount)}
}

func transferBody(from, to string, amount int64) string {
	return fmt.Sprintf(`{"from":%q,"to":%q,"amount":%d,"currency":"EUR"}`, from, to, amount)
}

// card is a source that no fault meets.
func card(name string) string { return "card_" + run + "_" + name }

// accept sends a payment that is accepted now, and returns the answer and its body.
func accept(t *testing.T, r request) (reply, accepted) {
	t.Helper()
	first := deployed.tenantA.do(t, r).is(t, http.StatusAccepted)
	return first, decode[accepted](t, first)
}

// readPayment is the payment as it stands.
func (a api) readPayment(t *testing.T, id string) payment {
	t.Helper()
	return decode[payment](t, a.get(t, payments+"/"+id).is(t, http.StatusOK))
}

// readOperation is the operation as it stands.
func (a api) readOperation(t *testing.T, id idem.OperationID) operation {
	t.Helper()
	return decode[operation](t, a.get(t, "/v1/operations/"+string(id)).is(t, http.StatusOK))
}

// balance reads an account of tenant A.
func balance(t *testing.T, account string) int64 {
	t.Helper()
	return decode[struct {
		Balance int64 `json:"balance"`
	}](t, deployed.tenantA.get(t, "/v1/accounts/"+account).is(t, http.StatusOK)).Balance
}

// chargesOf are the provider's objects with the reference: what a client's one payment made there.
func chargesOf(t *testing.T, reference string) []provider.Object {
	t.Helper()
	all, err := deployed.provider.Charges(t.Context())
	must(t, err)
	var made []provider.Object
	for _, charge := range all {
		if charge.Reference == reference {
			made = append(made, charge)
		}
	}
	return made
}

// chargedOnce fails the test unless the request made exactly one object, with the status, and returns it.
func chargedOnce(t *testing.T, r request, status provider.Status) provider.Object {
	t.Helper()
	made := chargesOf(t, r.key)
	if len(made) != 1 || made[0].Status != status {
		t.Fatalf("the provider made %+v, want one charge, %s", made, status)
	}
	return made[0]
}

// settledOnce takes a payment to its end and fails the test unless it was charged exactly once and every way to ask says
// so. It returns the final answer.
func settledOnce(t *testing.T, r request) (reply, provider.Object) {
	t.Helper()
	final := deployed.tenantA.settle(t, r).is(t, http.StatusCreated)
	charge := chargedOnce(t, r, provider.Succeeded)
	paid := decode[payment](t, final)
	if paid.Status != "succeeded" || paid.ProviderReference == nil || *paid.ProviderReference != charge.ID {
		t.Errorf("final answer %s, want it succeeded by %s", final.body, charge.ID)
	}
	if now := deployed.tenantA.readPayment(t, paid.ID); now.Status != "succeeded" || now.ProviderReference == nil || *now.ProviderReference != charge.ID {
		t.Errorf("GET shows %+v, want it succeeded by %s", now, charge.ID)
	}
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
	return final, charge
}
