//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// A lost reply that the SDK's own retry meets again is one thing; four in a row outlast the SDK's three attempts, and the
// engine has to find out. Late delivers the request too, but only after the client was left without an answer.
var losses = map[string]faultproxy.Rule{
	"one":  {Fault: faultproxy.DropReply, Times: 1},
	"four": {Fault: faultproxy.DropReply, Times: 4},
	"late": {Fault: faultproxy.Late, Times: 4, DelayMillis: 700},
}

// moneyMoment is a request to DynamoDB on the way of an operation.
type moneyMoment struct {
	name, operation string
	rule            faultproxy.Rule
}

// moments are the requests to DynamoDB whose replies are lost. The settlement is the second transaction of a payment.
var moments = []moneyMoment{
	{"reserve", operationTransfers, faultproxy.Rule{Operation: "PutItem"}},
	{"commit", operationTransfers, faultproxy.Rule{Operation: "TransactWriteItems"}},
	{"insert", operationPayments, faultproxy.Rule{Operation: "TransactWriteItems"}},
	{"claim", operationPayments, faultproxy.Rule{Operation: "PutItem"}},
	{"settle", operationPayments, faultproxy.Rule{Operation: "TransactWriteItems", After: 1}},
}

type lostReply struct {
	moment, loss, operation, name string
	times                         int
}

var lostReplies = func() (all []lostReply) {
	for _, moment := range moments {
		for loss, rule := range losses {
			rule.Operation, rule.After = moment.rule.Operation, moment.rule.After
			name := lossy(moment.operation, "lost-"+moment.name+"-"+loss, rule)
			all = append(all, lostReply{moment.name, loss, moment.operation, name, rule.Times})
		}
	}
	return all
}()

func TestLostRepliesExecuteOnceAndAreAnswered(t *testing.T) { // design.md "What a lost reply means"
	t.Parallel()
	for _, lost := range lostReplies {
		t.Run(lost.moment+"/"+lost.loss, func(t *testing.T) {
			t.Parallel()
			switch lost.operation {
			case operationTransfers:
				from, to := open(t, lost.name+"-from", 100), open(t, lost.name+"-to", 0)
				r := move(lost.name, from, to, 10)
				// A reserve without a reply for long is answered with 503: its own lease then has to run out first.
				final := deployed.tenantA.settle(t, r).is(t, http.StatusCreated).says(t, "executed")
				same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
				movedOnce(t, from, to, 100, 10)
			case operationPayments:
				r := pay(lost.name, card("lossy"))
				first, _ := accept(t, r)
				first.says(t, "executed")
				if _, charge := settledOnce(t, r); charge.Attempts != 1 {
					t.Errorf("the charge took %d requests, want one: only our own store lost replies", charge.Attempts)
				}
			}
			eventually(t, soon, func() string { // the sender of a write that has landed may still be finding out
				if applied := met(t, trace(lost.operation, lost.name)); applied != lost.times {
					return fmt.Sprintf("the fault met %d requests, want %d", applied, lost.times)
				}
				return ""
			})
		})
	}
}

// fencedOff are held back until the engine has long fenced the commit off: five sendings of 5 s each fit into an execution. Another is there
// where the function's time was over first, because the emulator stalled: then nobody has fenced off.
var fencedOff = func() (names [3]string) {
	for n := range names {
		names[n] = lossy(operationTransfers, fmt.Sprintf("h1-fenced-%d", n), faultproxy.Rule{
			Operation: "TransactWriteItems", Fault: faultproxy.DelayRequest, DelayMillis: 27_000, Times: 5,
		})
	}
	return names
}()

func TestACommitThatLandsAfterItsFenceOffChangesNothing(t *testing.T) { // design.md "What a lost reply means"
	t.Parallel()
	var name, from, to string
	var r request
	var first reply
	for _, name = range fencedOff {
		from, to = open(t, name+"-from", 100), open(t, name+"-to", 0)
		r = move(name, from, to, 10)
		began := time.Now()
		if first = deployed.tenantA.reach(t, r).reply; !first.cutOff() {
			break
		}
		if !stalledSince(t, began) {
			t.Fatalf("the function was ended before it could answer, and nothing stalled: %v", first)
		}
		t.Logf("the function was ended before it could answer: %v", first)
	}
	first.comesBack(t).isProblem(t, http.StatusServiceUnavailable, "idempotency_store_unavailable")
	if left := balance(t, from); left != 100 {
		t.Errorf("balance %d after a 503, want 100: nothing was committed", left)
	}
	final := deployed.tenantA.settle(t, r).is(t, http.StatusCreated).says(t, "executed")
	landed(t, trace(operationTransfers, name), 5)
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
	movedOnce(t, from, to, 100, 10)
}

// cutOff says that the gateway has answered, because the function's time was over.
func (r reply) cutOff() bool {
	return (r.status == http.StatusBadGateway || r.status == http.StatusGatewayTimeout) && r.header.Get(header.NameStatus) == ""
}

// landsMeanwhile lands while its sender still sends again, and before it would fence off.
var landsMeanwhile = lossy(operationTransfers, "h1-landed", faultproxy.Rule{
	Operation: "TransactWriteItems", Fault: faultproxy.DelayRequest, DelayMillis: 12_000, Times: 5,
})

func TestACommitThatLandsBeforeItsFenceOffIsTheAnswer(t *testing.T) {
	t.Parallel()
	from, to := open(t, "h1-landed-from", 100), open(t, "h1-landed-to", 0)
	r := move(landsMeanwhile, from, to, 10)
	first := deployed.tenantA.do(t, r).is(t, http.StatusCreated).says(t, "executed")
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), first)
	landed(t, trace(operationTransfers, landsMeanwhile), 1)
	movedOnce(t, from, to, 100, 10)
}

// landed waits until at least n requests that contain text were held back, and none is any more.
func landed(t *testing.T, text string, n int) {
	t.Helper()
	eventually(t, delivered, func() string {
		waiting, err := deployed.dynamodb.Waiting(t.Context())
		must(t, err)
		if met(t, text) >= n && waiting.Delayed+waiting.Late == 0 {
			return ""
		}
		return "requests that were held back have not landed yet"
	})
}

// outlivedByEvidence keeps a keyless charge's settlement back for longer than its claim lives.
var outlivedByEvidence = lossy(operationPayments, "h9", faultproxy.Rule{
	Operation: "TransactWriteItems", Fault: faultproxy.DelayRequest, After: 1, DelayMillis: 20_000,
})

// The worker that can't settle keeps its evidence, so that nobody calls again: whoever is woken settles it.
func TestEvidenceThatOutlivesItsClaimSettlesTheOperation(t *testing.T) {
	t.Parallel()
	r := pay(outlivedByEvidence, "legacy_h9_"+run)
	_, body := accept(t, r)
	settledOnce(t, r)
	if state := deployed.tenantA.readOperation(t, body.Operation).State; state != "completed" {
		t.Errorf("the operation is %s, want it completed by evidence from the older claim", state)
	}
}

var contended = lossy(operationTransfers, "h11", faultproxy.Rule{
	Operation: "TransactWriteItems", Fault: faultproxy.Conflict, Item: 1, Times: 3,
})

func TestALostRaceIsRunAgainAndNeverStored(t *testing.T) {
	t.Parallel()
	from, to := open(t, "h11-from", 100), open(t, "h11-to", 0)
	r := move(contended, from, to, 10)
	first := deployed.tenantA.do(t, r).is(t, http.StatusCreated).says(t, "executed")
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), first)
	if applied := met(t, trace(operationTransfers, contended)); applied != 3 {
		t.Errorf("%d conflicts, want 3", applied)
	}
	movedOnce(t, from, to, 100, 10)
}

var neverReserved = lossy(operationTransfers, "contended-reserve", faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Conflict, Times: 6})

func TestContendedReserveIsInProgressAndTheRetryExecutes(t *testing.T) { // design.md "One request, step by step": then 409 + Retry-After: 1
	t.Parallel()
	from, to := open(t, "contended-from", 100), open(t, "contended-to", 0)
	r := move(neverReserved, from, to, 10)
	got := deployed.tenantA.do(t, r).says(t, "in_progress").comesBack(t)
	got.isProblem(t, http.StatusConflict, "idempotency_key_in_progress")
	deployed.tenantA.settle(t, r).is(t, http.StatusCreated).says(t, "executed")
	movedOnce(t, from, to, 100, 10)
}

// TestNoTwoExecutionsShareAClientToken runs alone: the fault proxy's log does not say whose a token is.
func TestNoTwoExecutionsShareAClientToken(t *testing.T) {
	const name = "h7"
	calm := disturb(t,
		faultproxy.Rule{Operation: "TransactWriteItems", Contains: trace(operationTransfers, name), Fault: faultproxy.Conflict, Times: 6},
		faultproxy.Rule{Operation: "TransactWriteItems", Contains: trace(operationTransfers, name), Fault: faultproxy.DropReply, Times: 4},
	)
	from, to := open(t, "h7-from", 100), open(t, "h7-to", 0)
	r := move(name, from, to, 10)
	deployed.tenantA.once(t, r).comesBack(t).isProblem(t, http.StatusServiceUnavailable, "idempotency_store_unavailable") // six conflicts
	deployed.tenantA.do(t, r).is(t, http.StatusCreated).says(t, "executed")                                               // four lost replies
	log, err := deployed.dynamodb.Log(t.Context())
	must(t, err)
	calm()
	refused, sent := map[string]int{}, map[string]int{}
	for _, entry := range log {
		switch entry.Fault {
		case faultproxy.Conflict:
			refused[entry.Token]++
		case faultproxy.DropReply:
			sent[entry.Token]++
		}
	}
	if len(refused) != 1 || refused[""] > 0 {
		t.Errorf("tokens of six sendings that met a conflict: %v, want one: they are the same bytes", refused)
	}
	if len(sent) != 1 || sent[""] > 0 {
		t.Errorf("tokens of four sendings without a reply: %v, want one", sent)
	}
	for token := range sent {
		if refused[token] > 0 {
			t.Errorf("two executions share the token %s", token)
		}
	}
	movedOnce(t, from, to, 100, 10)
}
