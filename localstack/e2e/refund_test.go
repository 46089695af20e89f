//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// refund is a refund as the final answer shows it.
type refund struct {
	ID                string  `json:"id"`
	Payment           string  `json:"payment"`
	Status            string  `json:"status"`
	Amount            int64   `json:"amount"`
	Currency          string  `json:"currency"`
	ProviderReference *string `json:"provider_reference"`
	CreatedAt         string  `json:"created_at"`
}

// giveBack is the request of a refund; its key is the name.
func giveBack(name, payment string, amount int64) request {
	return request{
		method: http.MethodPost, path: payments + "/" + payment + "/refunds", key: named(name), body: fmt.Sprintf(`{"amount":%d}`, amount),
	}
}

// paid is a payment of 1999 that has succeeded, and its charge.
func paid(t *testing.T, name, source string) (payment, provider.Object) {
	t.Helper()
	final, charge := settledOnce(t, pay(name, source))
	return decode[payment](t, final), charge
}

// refundsOf are the provider's refunds of a charge.
func refundsOf(t *testing.T, charge provider.Object) []provider.Object {
	t.Helper()
	all, err := deployed.provider.Refunds(t.Context())
	must(t, err)
	var made []provider.Object
	for _, object := range all {
		if object.Charge == charge.ID {
			made = append(made, object)
		}
	}
	return made
}

// refunded fails the test unless that much of the payment is refunded, or about to be.
func refunded(t *testing.T, payment string, amount int64) {
	t.Helper()
	if got := deployed.tenantA.readPayment(t, payment).Refunded; got != amount {
		t.Errorf("%d of the payment are refunded, want %d", got, amount)
	}
}

func TestRefundIsAcceptedThenSettledOnce(t *testing.T) { // payments-api.md: 202; final 201
	t.Parallel()
	p, charge := paid(t, "refunded", card("refunded"))
	r := giveBack("refund", p.ID, 500)
	first := deployed.tenantA.do(t, r).is(t, http.StatusAccepted).says(t, "executed").comesBack(t)
	body := decode[accepted](t, first)
	if got := first.header.Get("Location"); got != "/v1/operations/"+string(body.Operation) || body.State != "pending" || body.Refund.Status != "pending" {
		t.Errorf("202 at %q: %s", got, first.body)
	}
	refunded(t, p.ID, 500)
	final := deployed.tenantA.settle(t, r).is(t, http.StatusCreated).says(t, "replayed")
	made, told := refundsOf(t, charge), decode[refund](t, final)
	if len(made) != 1 || made[0].Key != string(body.Operation.Message(1)) || made[0].Attempts != 1 || made[0].Amount != 500 || made[0].Status != provider.Succeeded {
		t.Fatalf("the provider made %+v, want one refund with the message's id as its key", made)
	}
	if !strings.HasPrefix(told.ID, "re_") || told.ID != body.Refund.ID || told.Payment != p.ID || told.Status != "succeeded" || told.Amount != 500 ||
		told.Currency != "EUR" || told.ProviderReference == nil || *told.ProviderReference != made[0].ID {
		t.Errorf("final answer %s, want the refund of %s, succeeded by %s", final.body, first.body, made[0].ID)
	}
	for range 3 {
		same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
	}
	if op := deployed.tenantA.readOperation(t, body.Operation); op.State != "completed" || op.Response == nil || op.Response.Body != string(final.body) {
		t.Errorf("operation %+v, want it completed by %s", op, final.body)
	}
	refunded(t, p.ID, 500)
}

func TestRefundsAtOnceNeverExceedThePayment(t *testing.T) { // payments-api.md: the sum is a condition in the commit; I6
	t.Parallel()
	const asked, each, affordable = 10, 300, 6 // of 1999
	p, charge := paid(t, "many-refunds", card("many"))
	requests := make([]request, asked)
	for i := range requests {
		requests[i] = giveBack(fmt.Sprintf("many-%d", i), p.ID, each)
	}
	counts := map[int]int{}
	for _, got := range together(t, requests, deployed.tenantA.resolve) {
		counts[got.status]++
		if got.status == http.StatusPaymentRequired {
			got.isProblem(t, http.StatusPaymentRequired, "refund_exceeds_payment")
		}
	}
	if counts[http.StatusCreated] != affordable || counts[http.StatusPaymentRequired] != asked-affordable {
		t.Errorf("answers by status: %v, want %d of 201, all others 402", counts, affordable)
	}
	if made := refundsOf(t, charge); len(made) != affordable {
		t.Errorf("the provider made %+v, want %d refunds", made, affordable)
	}
	refunded(t, p.ID, affordable*each)
}

// lingering is charged long after it was asked for.
var lingering = troubled("card_lingering", provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Times: 1, DelayMillis: 20_000})

func TestPendingPaymentIsNotRefundable(t *testing.T) { // payments-api.md: payment_not_refundable (not succeeded yet)
	t.Parallel()
	paying := pay("lingering", lingering)
	_, body := accept(t, paying)
	early := deployed.tenantA.do(t, giveBack("too-early", body.Payment.ID, 1)).says(t, "executed")
	early.isProblem(t, http.StatusPaymentRequired, "payment_not_refundable")
	_, charge := settledOnce(t, paying)
	same(t, deployed.tenantA.do(t, giveBack("too-early", body.Payment.ID, 1)).says(t, "replayed"), early) // a stored answer stays
	deployed.tenantA.settle(t, giveBack("in-time", body.Payment.ID, 1)).is(t, http.StatusCreated)
	if made := refundsOf(t, charge); len(made) != 1 {
		t.Errorf("the provider made %+v, want one refund", made)
	}
	refunded(t, body.Payment.ID, 1)
}

// irrevocable declines the first refund of its charge.
var irrevocable = troubled("card_irrevocable", provider.Rule{On: provider.Refund, Fault: provider.Decline, Times: 1})

func TestDeclinedRefundGivesTheAmountBack(t *testing.T) { // I6: what is reserved and not refunded can be refunded again
	t.Parallel()
	p, charge := paid(t, "irrevocable", irrevocable)
	r := giveBack("refund-declined", p.ID, p.Amount)
	deployed.tenantA.do(t, r).is(t, http.StatusAccepted)
	final := deployed.tenantA.settle(t, r)
	final.isProblem(t, http.StatusPaymentRequired, "refund_declined")
	refunded(t, p.ID, 0)
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
	deployed.tenantA.settle(t, giveBack("refund-again", p.ID, p.Amount)).is(t, http.StatusCreated)
	refunded(t, p.ID, p.Amount)
	if made := refundsOf(t, charge); len(made) != 2 { // the declined one is an object too
		t.Errorf("the provider made %+v, want a declined refund and a succeeded one", made)
	}
}

// hesitant loses the answer to the first refund of its charge.
var hesitant = troubled("card_hesitant", provider.Rule{On: provider.Refund, Fault: provider.DropAfter, Times: 1})

func TestRefundWithoutAnAnswerIsAskedForAgainAndMadeOnce(t *testing.T) { // I2
	t.Parallel()
	p, charge := paid(t, "hesitant", hesitant)
	deployed.tenantA.settle(t, giveBack("refund-hesitant", p.ID, 700)).is(t, http.StatusCreated)
	if made := refundsOf(t, charge); len(made) != 1 || made[0].Attempts != 2 {
		t.Errorf("the provider made %+v, want one refund by two requests", made)
	}
	refunded(t, p.ID, 700)
}

func TestRefundOfSomebodyElsesPaymentIsNotFound(t *testing.T) { // I5: of another tenant's payment nothing can be learnt
	t.Parallel()
	p, charge := paid(t, "not-yours", card("not-yours"))
	r := giveBack("not-yours-refund", p.ID, 1)
	first := deployed.tenantB.do(t, r).says(t, "executed")
	first.isProblem(t, http.StatusNotFound, "payment_not_found")
	nobody := deployed.tenantB.do(t, giveBack("nobodys-refund", "pay_nobody", 1))
	if string(nobody.body) != string(first.body) {
		t.Errorf("another tenant's payment answers %s, one that does not exist %s", first.body, nobody.body)
	}
	same(t, deployed.tenantB.do(t, r).says(t, "replayed"), first)
	if made := refundsOf(t, charge); len(made) != 0 {
		t.Errorf("the provider made %+v, want nothing", made)
	}
	refunded(t, p.ID, 0)
}

func TestRefundOfAnotherPaymentUnderTheKeyIsAMismatch(t *testing.T) { // semantics.md "Fingerprint": path parameters
	t.Parallel()
	one, _ := paid(t, "mismatch-one", card("mismatch"))
	other, charge := paid(t, "mismatch-other", card("mismatch"))
	r := giveBack("refund-mismatch", one.ID, 500)
	final := deployed.tenantA.settle(t, r).is(t, http.StatusCreated)
	for _, misused := range []request{giveBack("refund-mismatch", other.ID, 500), giveBack("refund-mismatch", one.ID, 501)} {
		deployed.tenantA.do(t, misused).says(t, "mismatch").
			isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused_with_different_payload")
	}
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
	if made := refundsOf(t, charge); len(made) != 0 {
		t.Errorf("the provider made %+v, want nothing", made)
	}
	refunded(t, one.ID, 500)
	refunded(t, other.ID, 0)
}
