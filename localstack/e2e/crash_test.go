//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// crash is a moment at which the API function dies.
type crash struct {
	name string
	// faults hold the function back at that moment; where is what its requests contain.
	faults func(where string) []faultproxy.Rule
	// lands says that what was held back reaches DynamoDB all the same, after the function's death.
	lands bool
	// committed says that the commit is there afterwards.
	committed bool
}

// crashes are the moments around the commit, which is the only transaction that the API function sends.
var crashes = []crash{
	{
		name: "during the commit, which is lost",
		faults: func(where string) []faultproxy.Rule {
			return []faultproxy.Rule{{Operation: "TransactWriteItems", Contains: where, Fault: faultproxy.Pause, Times: 1}}
		},
	},
	{
		name: "during the commit, which lands", lands: true, committed: true,
		faults: func(where string) []faultproxy.Rule {
			return []faultproxy.Rule{{Operation: "TransactWriteItems", Contains: where, Fault: faultproxy.Pause, Times: 1}}
		},
	},
	{
		name: "after the commit", committed: true,
		faults: func(where string) []faultproxy.Rule {
			return []faultproxy.Rule{
				{Operation: "TransactWriteItems", Contains: where, Fault: faultproxy.DropReply, Times: 1},
				{Operation: "TransactWriteItems", Contains: where, Fault: faultproxy.Pause, Times: 1},
			}
		},
	},
}

// dieAt sends the request, kills the API function at the moment, and returns when nothing is under way any more.
func dieAt(t *testing.T, c crash, r request, where string) {
	t.Helper()
	calm := disturb(t, c.faults(where)...)
	answer := deployed.tenantA.begin(t, r)
	held(t)
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

// The tests of this file run alone while a function dies, then beside the others: a lease of the dead takes its time.

func TestPaymentWhoseAPIFunctionDies(t *testing.T) { // issue: record, message and payment appear together
	before := crash{name: "before the commit", faults: func(where string) []faultproxy.Rule {
		return []faultproxy.Rule{{Operation: "GetItem", Contains: where, Fault: faultproxy.Pause, Times: 1}}
	}}
	for i, c := range append([]crash{before}, crashes...) {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprintf("crash-payment-%d", i)
			r := pay(name, card("crash"))
			dieAt(t, c, r, trace(operationPayments, name))
			t.Parallel()
			appearTogether(t, name, c.committed)
			settledOnce(t, r)
			appearTogether(t, name, true)
		})
	}
}

// appearTogether fails the test unless the record, the message and the payment of a key are all there, or none is.
func appearTogether(t *testing.T, name string, there bool) {
	t.Helper()
	r := record(t, operationPayments, name)
	message := row(t, "OUTBOX", schema.MessageID, string(idem.OperationID(text(r, schema.OperationID)).Message(1)))
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

func TestTransferWhoseAPIFunctionDies(t *testing.T) { // issue: all or nothing, and the retry completes
	for i, c := range append([]crash{{name: "before the commit"}}, crashes...) {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprintf("crash-transfer-%d", i)
			from, to := open(t, name+"-from", 100), open(t, name+"-to", 0)
			where := trace(operationTransfers, name)
			if c.faults == nil { // the handler reads the accounts after the reserve
				where = from
				c.faults = func(where string) []faultproxy.Rule {
					return []faultproxy.Rule{{Operation: "GetItem", Contains: where, Fault: faultproxy.Pause, Times: 1}}
				}
			}
			r := move(name, from, to, 10)
			dieAt(t, c, r, where)
			t.Parallel()
			if c.committed {
				deployed.tenantA.do(t, r).is(t, http.StatusCreated).says(t, "replayed")
			} else {
				if left := balance(t, from); left != 100 {
					t.Errorf("balance %d, want 100: nothing was committed", left)
				}
				// The lease of the dead is respected until it is over.
				deployed.tenantA.do(t, r).says(t, "in_progress").isProblem(t, http.StatusConflict, "idempotency_key_in_progress")
				deployed.tenantA.settle(t, r).is(t, http.StatusCreated).says(t, "executed")
			}
			movedOnce(t, from, to, 100, 10)
		})
	}
}

func TestWorkerDiesBetweenChargeAndSettle(t *testing.T) { // issue: on redelivery one charge in total
	const name = "crash-settle"
	r := pay(name, card("crash"))
	calm := disturb(t, faultproxy.Rule{
		Operation: "TransactWriteItems", Contains: trace(operationPayments, name), Fault: faultproxy.Pause, After: 1, Times: 1,
	})
	accept(t, r)
	held(t)
	chargedOnce(t, r, provider.Succeeded)
	kill(t, deployed.variables["FUNCTION_WORKER"])
	calm()
	t.Parallel()
	if _, charge := settledOnce(t, r); charge.Attempts != 2 {
		t.Errorf("the provider saw %d requests, want two with one key", charge.Attempts)
	}
}

// slowly is charged a second after its caller has died.
var slowly = troubled("card_slowly", provider.Rule{On: provider.Charge, Fault: provider.Delay, Times: 1, DelayMillis: 2000})

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
	t.Parallel()
	if _, charge := settledOnce(t, r); charge.Attempts != 2 {
		t.Errorf("the provider saw %d requests, want two with one key", charge.Attempts)
	}
	if m := messageRow(t, body); number(m, schema.Epoch) != 2 {
		t.Errorf("the message was claimed %d times, want twice", number(m, schema.Epoch))
	}
}
