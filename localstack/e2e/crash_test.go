//go:build e2e

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// The tests of this file run alone while a function dies, then beside the others: a lease of the dead takes its time.

// crash is a moment at which the API function dies.
type crash struct {
	// faults hold the function back at that moment, and again when it gives up waiting and sends the same once more: it is not dead yet.
	faults []faultproxy.Rule
	// lands says that what was held back reaches DynamoDB all the same, after the function's death.
	lands bool
	// committed says that the commit is there afterwards.
	committed bool
}

// atRead is a crash before the commit, while the function reads what contains text.
func atRead(text string) crash {
	return crash{faults: []faultproxy.Rule{{Operation: "GetItem", Contains: text, Fault: faultproxy.Pause}}}
}

// atCommit is a crash while the function waits for its commit, the only transaction that it sends. The commit is lost
// with it, or lands.
func atCommit(scope string, lands bool) crash {
	return crash{
		faults: []faultproxy.Rule{{Operation: "TransactWriteItems", Contains: scope, Fault: faultproxy.Pause}},
		lands:  lands, committed: lands,
	}
}

// afterCommit is a crash when the commit is there and its answer was lost.
func afterCommit(scope string) crash {
	return crash{committed: true, faults: []faultproxy.Rule{
		{Operation: "TransactWriteItems", Contains: scope, Fault: faultproxy.DropReply, Times: 1},
		{Operation: "TransactWriteItems", Contains: scope, Fault: faultproxy.Pause},
	}}
}

// dieAt sends the request, kills the API function at the moment, and returns when nothing is under way any more.
func dieAt(t *testing.T, c crash, r request) {
	t.Helper()
	calm := disturb(t, c.faults...)
	answer := deployed.tenantA.hold(t, r)
	kill(t, deployed.variables["FUNCTION_API"])
	if got := <-answer; got.err == nil && got.status < 500 {
		t.Errorf("a function that died answered %v", got.reply)
	}
	if c.lands {
		must(t, deployed.dynamodb.Release(t.Context()))
		eventually(t, soon, func() string {
			log, err := deployed.dynamodb.Log(t.Context())
			must(t, err)
			for _, entry := range log {
				if entry.Fault == faultproxy.Pause && entry.EndedAt == nil {
					return "the request that was held back has not landed"
				}
			}
			return ""
		})
	}
	calm()
}

// The invariants do not hold while the fault proxy keeps a request back: what it changes may still come.
func TestARequestThatIsStillHeldBreaksTheInvariants(t *testing.T) { // I9
	const name = "held-back"
	calm := disturb(t, faultproxy.Rule{Operation: "TransactWriteItems", Contains: trace(operationPayments, name), Fault: faultproxy.Pause, Times: 1})
	r := pay(name, card("held"))
	answer := deployed.tenantA.hold(t, r)
	_, unfinished, err := look(t.Context())
	must(t, err)
	if !slices.ContainsFunc(unfinished, func(broken string) bool {
		return strings.HasPrefix(broken, "I9: the proxy still holds requests: 1 paused")
	}) {
		t.Errorf("a request is held, and what is unfinished is %q", unfinished)
	}
	must(t, deployed.dynamodb.Release(t.Context()))
	<-answer
	calm()
	t.Parallel()
	settledOnce(t, r)
}

func TestPaymentWhoseAPIFunctionDiesBeforeTheCommit(t *testing.T) { // I1: record, message and payment appear together
	const name = "crash-payment-before"
	payThrough(t, name, atRead(trace(operationPayments, name)))
}

func TestPaymentWhoseAPIFunctionDiesWithTheCommit(t *testing.T) { // the commit never lands
	const name = "crash-payment-lost"
	payThrough(t, name, atCommit(trace(operationPayments, name), false))
}

func TestPaymentWhoseAPIFunctionDiesDuringTheCommit(t *testing.T) { // the commit lands after its sender's death
	const name = "crash-payment-landed"
	payThrough(t, name, atCommit(commitOf(name), true))
}

func TestPaymentWhoseAPIFunctionDiesAfterTheCommit(t *testing.T) {
	const name = "crash-payment-after"
	payThrough(t, name, afterCommit(commitOf(name)))
}

// commitOf is what only the commit of a payment contains: the row that names its message. The worker's settlement, which
// may be on its way before the commit is sent again, or before the next test's rules are there, does not.
func commitOf(name string) string { return `"msg":{"S":"op_` + trace(operationPayments, name) }

// payThrough takes a payment through the crash: all or nothing is there, and the retry completes.
func payThrough(t *testing.T, name string, c crash) {
	t.Helper()
	r := pay(name, card("crash"))
	dieAt(t, c, r)
	t.Parallel()
	appearTogether(t, name, c.committed)
	settledOnce(t, r)
	appearTogether(t, name, true)
}

// appearTogether fails the test unless the record, the message and the payment of a key are all there, or none is.
func appearTogether(t *testing.T, name string, there bool) {
	t.Helper()
	r := record(t, operationPayments, name)
	message := row(t, "OUTBOX", schema.MessageID, string(operationOf(r).Message(1)))
	paid := 0
	rows, err := scan(t.Context(), "PAYMENTS")
	must(t, err)
	for _, it := range rows {
		if text(it, "ref") == named(name) {
			paid++
		}
	}
	if (r != nil) != there || (message != nil) != there || (paid == 1) != there || paid > 1 {
		t.Errorf("record %v, message %v and %d payments, want them together, there: %t", r, message, paid, there)
	}
}

func TestTransferWhoseAPIFunctionDiesBeforeTheCommit(t *testing.T) { // I1: all or nothing, and the retry completes
	const name = "crash-transfer-before"
	moveThrough(t, name, atRead(accountName(name))) // the handler reads the accounts after the reserve
}

func TestTransferWhoseAPIFunctionDiesWithTheCommit(t *testing.T) { // the commit never lands
	const name = "crash-transfer-lost"
	moveThrough(t, name, atCommit(trace(operationTransfers, name), false))
}

func TestTransferWhoseAPIFunctionDiesDuringTheCommit(t *testing.T) { // the commit lands after its sender's death
	const name = "crash-transfer-landed"
	moveThrough(t, name, atCommit(trace(operationTransfers, name), true))
}

func TestTransferWhoseAPIFunctionDiesAfterTheCommit(t *testing.T) {
	const name = "crash-transfer-after"
	moveThrough(t, name, afterCommit(trace(operationTransfers, name)))
}

// moveThrough takes a transfer through the crash. Without a commit the lease of the dead is respected until it is over.
func moveThrough(t *testing.T, name string, c crash) {
	t.Helper()
	from, to := open(t, name, 100), open(t, name+"-to", 0)
	r := move(name, from, to, 10)
	dieAt(t, c, r)
	if !c.committed {
		deployed.tenantA.do(t, r).says(t, "in_progress").isProblem(t, http.StatusConflict, "idempotency_key_in_progress")
	}
	t.Parallel()
	if c.committed {
		deployed.tenantA.do(t, r).is(t, http.StatusCreated).says(t, "replayed")
	} else {
		if left := balance(t, from); left != 100 {
			t.Errorf("balance %d, want 100: nothing was committed", left)
		}
		deployed.tenantA.settle(t, r).is(t, http.StatusCreated).says(t, "executed")
	}
	movedOnce(t, from, to, 100, 10)
}

func TestWorkerDiesBetweenChargeAndSettle(t *testing.T) { // I2: on redelivery one charge in total
	const name = "crash-settle"
	r := pay(name, card("crash"))
	calm := disturb(t, faultproxy.Rule{
		Operation: "TransactWriteItems", Contains: trace(operationPayments, name), Fault: faultproxy.Pause, After: 1,
	})
	accept(t, r)
	held(t)
	chargedOnce(t, r, provider.Succeeded)
	kill(t, deployed.variables["FUNCTION_WORKER"])
	calm()
	t.Parallel()
	if _, charge := settledOnce(t, r); charge.Attempts < 2 {
		t.Errorf("the provider saw %d requests, want the dead worker's and another with the same key", charge.Attempts)
	}
}

// slowly is charged when its caller has died.
var slowly = troubled("card_slowly", provider.Rule{On: provider.Charge, Fault: provider.Delay, Times: 1, DelayMillis: 60_000})

func TestWorkerDiesDuringTheCall(t *testing.T) { // I2: a zombie's request lands after its sender's death
	r := pay("crash-call", slowly)
	_, body := accept(t, r)
	eventually(t, soon, func() string {
		if providerMet(t, slowly) == 0 {
			return "the worker has not called the provider"
		}
		return ""
	})
	kill(t, deployed.variables["FUNCTION_WORKER"])
	must(t, deployed.provider.Resume(t.Context()))
	t.Parallel()
	if _, charge := settledOnce(t, r); charge.Attempts < 2 {
		t.Errorf("the provider saw %d requests, want the dead worker's and another with the same key", charge.Attempts)
	}
	if m := messageRow(t, body); number(m, schema.Epoch) < 2 {
		t.Errorf("the message was claimed %d times, want by another than the dead worker too", number(m, schema.Epoch))
	}
}
