//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// wireError is an error of DynamoDB, or of the way there, that an emulator never raises.
type wireError struct {
	name string
	step faultproxy.Step
	// transactions says that only they can meet it.
	transactions bool
}

// wireErrors are all that no other test has: lost and late replies are in reply_test.go.
var wireErrors = []wireError{
	{"conflict", faultproxy.Step{Fault: faultproxy.Conflict, Item: faultproxy.EveryItem}, false},
	{"throughput", faultproxy.Step{Fault: faultproxy.Throttle}, false},
	{"throttling", faultproxy.Step{Fault: faultproxy.Throttle, Code: faultproxy.Throttling}, false},
	{"limit", faultproxy.Step{Fault: faultproxy.Throttle, Code: faultproxy.RequestLimitExceeded}, false},
	{"cancelled-throttled", faultproxy.Step{Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled}, true},
	{"cancelled-throughput", faultproxy.Step{
		Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled, Reason: faultproxy.ReasonThroughput, Item: faultproxy.EveryItem,
	}, true},
	{"in-progress", faultproxy.Step{Fault: faultproxy.InProgress}, true},
	{"mismatch", faultproxy.Step{Fault: faultproxy.Mismatch}, true},
	{"expired", faultproxy.Step{Fault: faultproxy.Expired}, false},
	{"500-before", faultproxy.Step{Fault: faultproxy.Refuse500}, false},
	{"500-after", faultproxy.Step{Fault: faultproxy.Fail500}, false},
	{"503-before", faultproxy.Step{Fault: faultproxy.Refuse503}, false},
	{"503-after", faultproxy.Step{Fault: faultproxy.Fail503}, false},
	{"cut", faultproxy.Step{Fault: faultproxy.CutReply}, false},
	{"slow", faultproxy.Step{Fault: faultproxy.DelayReply, DelayMillis: 300}, false},
}

func (e wireError) rule(operation string, after, times int) faultproxy.Rule {
	s := e.step
	return faultproxy.Rule{
		Operation: operation, After: after, Times: times,
		Fault: s.Fault, DelayMillis: s.DelayMillis, Code: s.Code, Reason: s.Reason, Item: s.Item,
	}
}

// metOnce is a request of a client about which DynamoDB says one error once, at one of the engine's or the worker's calls.
type metOnce struct {
	call, operation, name string
	err                   wireError
	source                string // of a payment
}

// moneyBack are the transactions of a refund, whose worker calls the provider, and of a payout, which its request itself takes through
// both of its calls.
var moneyBack = []moneyMoment{
	{"refund", operationRefunds, faultproxy.Rule{Operation: "TransactWriteItems"}},
	{"refund-settle", operationRefunds, faultproxy.Rule{Operation: "TransactWriteItems", After: 1}},
	{"payout", operationPayouts, faultproxy.Rule{Operation: "TransactWriteItems"}},
	{"screening-settle", operationPayouts, faultproxy.Rule{Operation: "TransactWriteItems", After: 1}},
	{"payout-settle", operationPayouts, faultproxy.Rule{Operation: "TransactWriteItems", After: 2}},
}

// keeping is the call that keeps the answer of a provider that ignores keys, as long as it can't be settled. unsettledTimes is how often
// its settlement is refused: more often than one worker tries.
const (
	keeping        = "keep"
	unsettledTimes = 60
)

// partOfTrace is what every request about the payment contains, and not what the rule of its error names.
func partOfTrace(name string) string { return trace(operationPayments, name)[1:] }

// metOnces are the errors at each call. The release of a record is its second single write, after the reserve; the release
// of a message its second, after the claim.
var metOnces = func() (all []metOnce) {
	releases := []moneyMoment{
		{"release", operationTransfers, faultproxy.Rule{Operation: "PutItem", After: 1}},
		{"back-off", operationPayments, faultproxy.Rule{Operation: "PutItem", After: 1}},
	}
	for _, call := range slices.Concat(releases, moments, moneyBack, []moneyMoment{{keeping, operationPayments, faultproxy.Rule{Operation: "UpdateItem"}}}) {
		for _, err := range wireErrors {
			if err.transactions && call.rule.Operation != "TransactWriteItems" {
				continue
			}
			m := metOnce{call: call.name, operation: call.operation, err: err}
			m.name = lossy(call.operation, "wire-"+call.name+"-"+err.name, err.rule(call.rule.Operation, call.rule.After, 1))
			switch call.name {
			case "release": // its handler fails for want of the account
				laidOut.dynamodb = append(laidOut.dynamodb, faultproxy.Rule{
					Operation: "GetItem", Contains: accountKeys + "tenant-a/" + accountName(m.name+"-from"), Fault: faultproxy.Expired, Times: 1,
				})
			case keeping: // its settlement is refused for longer than a worker tries
				laidOut.dynamodb = append(laidOut.dynamodb, faultproxy.Rule{
					Operation: "TransactWriteItems", Contains: partOfTrace(m.name), Fault: faultproxy.Refuse503, After: 1, Times: unsettledTimes,
				})
				m.source = "legacy_" + m.name + "_" + run
			case "back-off": // its provider has no time
				m.source = troubled("card_"+m.name, provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Times: 1})
			default:
				m.source = card("wire")
			}
			all = append(all, m)
		}
	}
	return all
}()

func TestEachErrorAtEachCallEndsInOneEffect(t *testing.T) { // design.md "What a lost reply means"
	t.Parallel()
	for _, m := range metOnces {
		t.Run(m.call+"/"+m.err.name, func(t *testing.T) {
			t.Parallel()
			r, once := m.request(t)
			m.answered(t, deployed.tenantA, r)
			once(t)
			if applied := met(t, trace(m.operation, m.name)); applied != 1 {
				t.Errorf("the error was met %d times, want once", applied)
			}
		})
	}
}

// request makes what it is about, and says what takes it to its end and fails the test unless it had one effect.
func (m metOnce) request(t *testing.T) (request, func(t *testing.T)) {
	t.Helper()
	switch m.operation {
	case operationPayments:
		return pay(m.name, m.source), m.once
	case operationRefunds:
		p, charge := paid(t, m.name+"-paid", m.source)
		r := giveBack(m.name, p.ID, 500)
		return r, func(t *testing.T) {
			t.Helper()
			m.ended(t, r)
			if made := refundsOf(t, charge); len(made) != 1 || made[0].Attempts != 1 {
				t.Errorf("the provider made %+v, want one refund by one call", made)
			}
			refunded(t, p.ID, 500)
		}
	case operationPayouts:
		o := placeable(t, m.name, iban(m.name))
		return o.request(), func(t *testing.T) {
			t.Helper()
			m.ended(t, o.request())
			if screened, paid := o.made(t); len(screened) != 1 || len(paid) != 1 || screened[0].Attempts != 1 || paid[0].Attempts != 1 {
				t.Errorf("the provider made %+v and %+v, want one of each by one call", screened, paid)
			}
			o.cost(t, 1, 1, orderAmount)
		}
	}
	return move(m.name, open(t, m.name+"-from", 100), open(t, m.name+"-to", 0), 10), m.once
}

// ended takes a request to its final answer, which is replayed.
func (m metOnce) ended(t *testing.T, r request) {
	t.Helper()
	final := deployed.tenantA.settle(t, r).is(t, http.StatusCreated)
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
}

// answered sends the request, and judges its first answer. The engine sends again whatever it may, so that the client sees three errors only:
// those that say for certain that nothing happened, and that sending the same again is in vain.
func (m metOnce) answered(t *testing.T, tenant api, r request) {
	t.Helper()
	first := tenant.reach(t, r)
	asked := slices.Contains([]string{"reserve", "commit", "insert", "refund", "payout"}, m.call)
	switch {
	case m.call == "release", asked && m.err.step.Fault == faultproxy.Expired:
		first.comesBack(t).isProblem(t, http.StatusServiceUnavailable, "idempotency_store_unavailable")
	case first.starved() && first.took >= shortestStall: // the error left no time for another try: it is counted, and what is asked next has one effect
	case asked && m.err.step.Fault == faultproxy.Mismatch:
		first.isProblem(t, http.StatusInternalServerError, "internal_error")
	case m.operation == operationPayouts && first.status == http.StatusAccepted: // its worker ends it
		first.says(t, "executed")
	case m.operation == operationPayments, m.operation == operationRefunds:
		first.is(t, http.StatusAccepted).says(t, "executed")
	default:
		first.is(t, http.StatusCreated).says(t, "executed")
	}
}

// once takes a payment or transfer to its end and fails the test unless it had one effect.
func (m metOnce) once(t *testing.T) {
	t.Helper()
	if m.operation == operationTransfers {
		from, to := accountName(m.name+"-from"), accountName(m.name+"-to")
		m.ended(t, move(m.name, from, to, 10))
		movedOnce(t, from, to, 100, 10)
		return
	}
	delivery := m.call == "claim" || m.call == "back-off"
	if delivery && m.err.step.Fault == faultproxy.Expired || m.call == keeping {
		sweptUntilDelivered(t, m.name)
	}
	attempts := 1
	if m.call == "back-off" {
		attempts = 2 // the first of which the provider refused
	}
	if _, charge := settledOnce(t, pay(m.name, m.source)); charge.Attempts != attempts {
		t.Errorf("the charge took %d requests, want %d: DynamoDB's trouble is no reason to call again", charge.Attempts, attempts)
	}
}

// borne is an error that stays until the engine gives up, or until its evidence is kept for the next worker.
type borne struct {
	call, operation string
	after, times    int
	err             wireError
	// first judges the first answer.
	first func(t *testing.T, r reply)
	name  string
}

// contentionTries is how often the engine sends what met another transaction or a throttle (idem.Config.ContentionTries).
const contentionTries = 6

var bornes = func() []borne {
	comesLater := func(t *testing.T, r reply) {
		r.comesBack(t).isProblem(t, http.StatusServiceUnavailable, "idempotency_store_unavailable")
	}
	accepted := func(t *testing.T, r reply) { r.is(t, http.StatusAccepted).says(t, "executed") }
	throttling := wireError{name: "throttling", step: faultproxy.Step{Fault: faultproxy.Throttle, Code: faultproxy.Throttling}}
	cancelled := wireError{name: "cancelled", step: faultproxy.Step{
		Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled, Item: faultproxy.EveryItem,
	}}
	conflict := wireError{name: "conflict", step: faultproxy.Step{Fault: faultproxy.Conflict, Item: faultproxy.EveryItem}}
	all := []borne{
		{call: "PutItem", operation: operationTransfers, times: contentionTries, err: throttling, first: comesLater},
		{call: "TransactWriteItems", operation: operationTransfers, times: contentionTries, err: cancelled, first: comesLater},
		{call: "TransactWriteItems", operation: operationPayments, times: contentionTries, err: conflict, first: comesLater},
		{call: "TransactWriteItems", operation: operationPayments, times: contentionTries, err: throttling, first: comesLater},
		{call: "TransactWriteItems", operation: operationPayments, after: 1, times: 2 * contentionTries, err: cancelled, first: accepted},
	}
	for i, b := range all {
		all[i].name = lossy(b.operation, fmt.Sprintf("borne-%d", i), b.err.rule(b.call, b.after, b.times))
	}
	return all
}()

func TestErrorsThatStayEndInOneEffect(t *testing.T) { // design.md "One request, step by step": the last allowed try
	t.Parallel()
	for _, b := range bornes {
		t.Run(fmt.Sprintf("%s of %s after %d, %s", b.call, b.operation, b.after, b.err.name), func(t *testing.T) {
			t.Parallel()
			m := metOnce{operation: b.operation, name: b.name, source: card("wire")}
			r, once := m.request(t)
			b.first(t, deployed.tenantA.reach(t, r).reply)
			once(t)
			if applied := met(t, trace(b.operation, b.name)); applied != b.times {
				t.Errorf("the error was met %d times, want %d", applied, b.times)
			}
		})
	}
}

// sequels are what requests of the same bytes meet, one after the other. Once a reply was lost, no refusal says that nothing
// happened. A conflict on an optimistic lock has a transfer's handler run again: then the bytes that are late meet a commit
// with other bytes.
var sequels = map[string][]faultproxy.Step{
	"landed": {
		{Fault: faultproxy.DropReply}, {Fault: faultproxy.Throttle, Code: faultproxy.Throttling}, {Fault: faultproxy.InProgress},
		{Fault: faultproxy.Mismatch}, {Fault: faultproxy.Expired},
	},
	"not-landed": {
		{Fault: faultproxy.Refuse500}, {Fault: faultproxy.Conflict}, {Fault: faultproxy.InProgress},
		{Fault: faultproxy.Expired}, {Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled},
	},
	"late": {{Fault: faultproxy.Late, DelayMillis: 700}, {Fault: faultproxy.Conflict, Item: faultproxy.EveryItem}},
}

// sequelOf is met by one transaction: a transfer's commit, a payment's insert, or its settlement.
type sequelOf struct {
	call, name string
	m          metOnce
}

var sequelsOf = func() (all []sequelOf) {
	for _, call := range moments {
		if call.rule.Operation != "TransactWriteItems" {
			continue
		}
		for name, steps := range sequels {
			first := wireError{step: steps[0]}.rule(call.rule.Operation, call.rule.After, 1)
			first.Then = steps[1:]
			key := lossy(call.operation, "sequel-"+call.name+"-"+name, first)
			all = append(all, sequelOf{call.name, name, metOnce{call: call.name, operation: call.operation, name: key, source: card("wire")}})
		}
	}
	return all
}()

func TestASequenceOfErrorsOnTheSameBytesEndsInOneEffect(t *testing.T) { // design.md "What a lost reply means": taint
	t.Parallel()
	for _, s := range sequelsOf {
		t.Run(s.call+"/"+s.name, func(t *testing.T) {
			t.Parallel()
			r, once := s.m.request(t)
			s.m.answered(t, deployed.tenantA, r)
			once(t)
			rules, err := deployed.dynamodb.Rules(t.Context())
			must(t, err)
			for _, rule := range rules {
				if want := len(sequels[s.name]) - 1; rule.Contains == trace(s.m.operation, s.m.name) && (rule.Applied != 1 || rule.Continued != want) {
					t.Errorf("the sequence began %d times and went on %d times, want 1 and %d: %+v", rule.Applied, rule.Continued, want, rule)
				}
			}
		})
	}
}

// batchErrors are what a read of a batch meets, one after the other, and after them half of each batch.
var batchErrors = []faultproxy.Rule{
	{Operation: "BatchGetItem", Fault: faultproxy.Throttle, Times: 1},
	{Operation: "BatchGetItem", Fault: faultproxy.Refuse500, Times: 1},
	{Operation: "BatchGetItem", Fault: faultproxy.CutReply, Times: 1},
	{Operation: "BatchGetItem", Fault: faultproxy.Partial},
}

// TestBatchesAreReadToTheirEnd runs alone: the fold of a collecting account asks for its transfers in one batch, whose
// keys nobody knows before.
func TestBatchesAreReadToTheirEnd(t *testing.T) { // payments-api.md: Collecting accounts
	const count, amount = 5, 10
	from, to := open(t, "partial-from", count*amount), open(t, "partial-to", 0)
	haveCollect(t, "tenant-a", to, 1)
	requests := make([]request, count)
	for i := range requests {
		requests[i] = move(fmt.Sprintf("partial-%d", i), from, to, amount)
	}
	calm := disturb(t, batchErrors...) // the sweep may run at any time, and folds all that wait
	for _, got := range together(t, requests, deployed.tenantA.resolve) {
		got.is(t, http.StatusCreated)
	}
	eventually(t, soon, func() string {
		must(t, hasten(t.Context()))
		if got := balance(t, to); got != count*amount {
			return fmt.Sprintf("the balance is %d, want %d", got, count*amount)
		}
		return ""
	})
	counts, err := deployed.dynamodb.Counts(t.Context())
	must(t, err)
	calm()
	for _, rule := range batchErrors {
		if !slices.ContainsFunc(counts.Faults, func(c faultproxy.Count) bool { return c.Operation == rule.Operation && c.Fault == rule.Fault }) {
			t.Errorf("no batch met %s: %+v", rule.Fault, counts)
		}
	}
	if left := balance(t, from); left != 0 {
		t.Errorf("%d left, want nothing", left)
	}
}

// sweptUntilDelivered runs the sweep until the message of each payment is delivered. A stream mapping of the emulator drops
// what a worker reports as failed, so that its schedule would take a minute.
func sweptUntilDelivered(t *testing.T, names ...string) {
	t.Helper()
	deadline, ticker := time.After(delivered), time.NewTicker(2*time.Second)
	defer ticker.Stop()
	for _, name := range names {
		message := func() item { return phaseRow(t, operationOf(record(t, operationPayments, name)), 1) }
		for m := message(); text(m, schema.State) != "delivered"; m = message() {
			select {
			case <-deadline:
				t.Fatalf("after %s the message of %s is not delivered, at %d: %s", delivered, name, time.Now().UnixMilli(), plain(m))
			case <-ticker.C:
				must(t, hasten(t.Context()))
			}
		}
	}
}

// throttledClaims are payments of one burst. A claim of every other one is throttled for longer than the worker tries.
var throttledClaims = func() (names []string) {
	for i := range 12 {
		name := fmt.Sprintf("throttled-claim-%d", i)
		if i%2 == 0 {
			lossy(operationPayments, name, faultproxy.Rule{
				Operation: "PutItem", Fault: faultproxy.Throttle, Code: faultproxy.Throttling, Times: contentionTries + 2,
			})
		}
		names = append(names, name)
	}
	return names
}()

// claimedAgainMax is how many of the burst may be claimed a second time: a claim that has no time left to call, because the emulator stalled,
// is followed by another one.
const claimedAgainMax = 2

// The worker reports those of its batch that it could not claim, and nothing of it is doubled or given up.
func TestThrottledClaimsOfABatchAreDeliveredOnce(t *testing.T) {
	t.Parallel()
	requests := make([]request, len(throttledClaims))
	for i, name := range throttledClaims {
		requests[i] = pay(name, card("claims"))
	}
	for i, got := range burst(t, requests) {
		if got.starved() { // by no fault of the test's: the emulator stalled
			got = deployed.tenantA.do(t, requests[i])
		}
		got.is(t, http.StatusAccepted)
	}
	sweptUntilDelivered(t, throttledClaims...)
	again := 0
	for i, name := range throttledClaims {
		_, charge := settledOnce(t, requests[i])
		m := phaseRow(t, operationOf(record(t, operationPayments, name)), 1)
		if charge.Attempts != 1 || text(m, schema.State) != "delivered" {
			t.Errorf("payment %d: %d calls, and the message is %v: want one call", i, charge.Attempts, m)
		}
		if number(m, schema.Epoch) != 1 {
			again++
		}
		if applied, want := met(t, trace(operationPayments, name)), (contentionTries+2)*((i+1)%2); applied != want {
			t.Errorf("payment %d: %d claims were throttled, want %d", i, applied, want)
		}
	}
	if again > claimedAgainMax {
		t.Errorf("%d of %d messages were claimed more than once, want %d at most", again, len(requests), claimedAgainMax)
	}
}
