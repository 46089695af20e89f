//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestPaymentIsAcceptedThenSettledWithOneCharge(t *testing.T) { // payments-api.md "Endpoints", "Deferred"
	t.Parallel()
	r := pay("first", card("ok"))
	first, body := accept(t, r)
	first.says(t, "executed").comesBack(t)
	if got := first.header.Get("Location"); got != "/v1/operations/"+string(body.Operation) {
		t.Errorf("Location %q, want the operation's", got)
	}
	if got := first.header.Get("Idempotency-Expires"); got != "" {
		t.Errorf("Idempotency-Expires %q on an answer that is not final", got)
	}
	if body.State != "pending" || body.Payment.Status != "pending" || body.Payment.Amount != 1999 || !strings.HasPrefix(body.Payment.ID, "pay_") {
		t.Errorf("202 body %s", first.body)
	}
	final, charge := settledOnce(t, r)
	paid := decode[payment](t, final)
	if paid.ID != body.Payment.ID || paid.Reference != r.key || paid.Source != card("ok") {
		t.Errorf("final answer %s, want the payment of %s", final.body, first.body)
	}
	if charge.Key != string(body.Operation.Message(1)) || charge.Attempts != 1 || charge.Amount != 1999 {
		t.Errorf("charge %+v, want one request with the message's id as its key", charge)
	}
}

func TestPaymentReplaysTheSameFinalAnswerAnyNumberOfTimes(t *testing.T) { // semantics.md "On the wire", I4
	t.Parallel()
	r := pay("replayed", card("ok"))
	final, _ := settledOnce(t, r)
	for range 5 {
		replay := deployed.tenantA.do(t, r).says(t, "replayed")
		same(t, replay, final)
		expires, err := time.Parse(time.RFC3339, replay.header.Get("Idempotency-Expires"))
		if left := time.Until(expires); err != nil || left < 23*time.Hour || left > 25*time.Hour {
			t.Errorf("Idempotency-Expires %q, want a day from now (%v)", replay.header.Get("Idempotency-Expires"), err)
		}
	}
	if charge := chargedOnce(t, r, provider.Succeeded); charge.Attempts != 1 {
		t.Errorf("replays reached the provider: %+v", charge)
	}
}

var declined = troubled("card_declined", provider.Rule{On: provider.Charge, Fault: provider.Decline})

func TestPaymentDeclinedIsAnAnswerLikeAnyOther(t *testing.T) { // payments-api.md: 402 payment_declined
	t.Parallel()
	r := pay("declined", declined)
	_, body := accept(t, r)
	final := deployed.tenantA.settle(t, r)
	final.isProblem(t, http.StatusPaymentRequired, "payment_declined")
	for range 3 {
		same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
	}
	charge := chargedOnce(t, r, provider.Declined)
	if now := deployed.tenantA.readPayment(t, body.Payment.ID); now.Status != "declined" || charge.Attempts != 1 {
		t.Errorf("GET shows %+v after %+v, want it declined", now, charge)
	}
	if op := deployed.tenantA.readOperation(t, body.Operation); op.State != "completed" || op.Response == nil || op.Response.Status != http.StatusPaymentRequired {
		t.Errorf("operation %+v, want it completed by its 402: a decline is a result", op)
	}
}

// TestPreferWaitReturnsTheFinalAnswer runs alone, because beside others the worker may need longer than clients may wait.
// So it may behind a test that left it a backlog: then it is the 202, and another payment's turn.
func TestPreferWaitReturnsTheFinalAnswer(t *testing.T) { // RFC 7240 section 4.3
	for attempt := 1; ; attempt++ {
		r := pay(fmt.Sprintf("waited-%d", attempt), card("ok"))
		r.header = http.Header{"Prefer": {"wait=20"}}
		final := deployed.tenantA.do(t, r).says(t, "executed")
		if final.status == http.StatusAccepted && attempt < 5 {
			final.comesBack(t)
			continue
		}
		final.is(t, http.StatusCreated)
		same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
		chargedOnce(t, r, provider.Succeeded)
		return
	}
}

func TestOperationShowsTheFinalAnswerByteForByte(t *testing.T) { // payments-api.md: GET /v1/operations/{id}
	t.Parallel()
	r := pay("operation", card("ok"))
	_, body := accept(t, r)
	final, _ := settledOnce(t, r)
	op := deployed.tenantA.readOperation(t, body.Operation)
	if op.ID != body.Operation || op.State != "completed" || op.CompletedAt == nil || op.Response == nil {
		t.Fatalf("operation %+v, want it completed", op)
	}
	if op.Response.Status != http.StatusCreated || op.Response.Body != string(final.body) || op.Response.BodyEncoding != "" {
		t.Errorf("operation's response %+v, want %s", op.Response, final.body)
	}
	if got := op.Response.Headers["Content-Type"]; got != "application/json" {
		t.Errorf("operation's response headers %v", op.Response.Headers)
	}
	for _, at := range []string{op.CreatedAt, *op.CompletedAt} {
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
			t.Errorf("time %q, want RFC 3339 UTC with milliseconds", at)
		}
	}
}

func TestTenantsDoNotSeeEachOther(t *testing.T) { // I5; semantics.md: another tenant's key is simply absent
	t.Parallel()
	a, b := deployed.tenantA, deployed.tenantB
	r := pay("two-tenants", card("ok"))
	final, _ := settledOnce(t, r)
	ofA := decode[payment](t, final)
	_, opA := accept(t, pay("two-tenants-operation", card("ok")))

	b.get(t, payments+"/"+ofA.ID).isProblem(t, http.StatusNotFound, "payment_not_found")
	b.get(t, "/v1/operations/"+string(opA.Operation)).isProblem(t, http.StatusNotFound, "operation_not_found")

	r.body = paymentBody(4200, card("other"), named("two-tenants-b"))
	b.do(t, r).is(t, http.StatusAccepted).says(t, "executed")
	ofB := decode[payment](t, b.settle(t, r).is(t, http.StatusCreated))
	if ofB.ID == ofA.ID || ofB.Amount != 4200 {
		t.Errorf("tenant B got %+v for its own payment under the key of tenant A's %+v", ofB, ofA)
	}
	a.get(t, payments+"/"+ofB.ID).isProblem(t, http.StatusNotFound, "payment_not_found")
	same(t, a.do(t, pay("two-tenants", card("ok"))), final)
}

func TestIDsThatCanNotExistAreAbsent(t *testing.T) { // bad input: every path parameter is bounded and parsed before a look-up
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for path, code := range map[string]string{
		payments + "/pay_nobody": "payment_not_found", payments + "/" + long: "payment_not_found", payments + "/pay%20x": "payment_not_found",
		"/v1/accounts/acct_9": "account_not_found", "/v1/accounts/" + long: "account_not_found", "/v1/accounts/a%23b": "account_not_found",
		"/v1/operations/op_x": "operation_not_found", "/v1/operations/" + long: "operation_not_found", "/v1/operations/none": "operation_not_found",
	} {
		deployed.tenantA.get(t, path).isProblem(t, http.StatusNotFound, code)
	}
}

func TestBodyThatMeansTheSameIsTheSameRequest(t *testing.T) { // semantics.md "Fingerprint": RFC 8785
	t.Parallel()
	r := pay("canonical", card("ok"))
	final, _ := settledOnce(t, r)
	for _, body := range rewritten(t, r.body) {
		r.body = body
		same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
	}
}

// rewritten are other spellings of a JSON object: other order, other spaces, escapes, another way to write a number.
func rewritten(t *testing.T, body string) []string {
	t.Helper()
	var members map[string]any
	must(t, json.Unmarshal([]byte(body), &members))
	sorted, err := json.Marshal(members) // by name, which differs from the order of the body
	must(t, err)
	indented, err := json.MarshalIndent(members, "\t", "   ")
	must(t, err)
	return []string{
		string(sorted), string(indented), "\r\n " + body + "\n",
		strings.Replace(body, `"EUR"`, `"\u0045\u0055\u0052"`, 1), strings.Replace(body, `"currency"`, `"\u0063urrency"`, 1),
	}
}
