package faultproxy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// statuses are the answers to so many requests, one after the other.
func (b bench) statuses(n int) (got []int) {
	b.t.Helper()
	for range n {
		r, err := b.send(b.t.Context(), "PutItem", put)
		b.must(err)
		got = append(got, r.status)
	}
	return got
}

func TestAChanceFallsTheSameWayUnderTheSameSeed(t *testing.T) {
	b := start(t)
	rule := faultproxy.Rule{Fault: faultproxy.Refuse503, Chance: 0.2, Seed: 7}
	b.faults(rule)
	first := b.statuses(200)
	b.faults(rule)
	if again := b.statuses(200); !slices.Equal(first, again) {
		t.Errorf("seed 7 fell two ways:\n%v\n%v", first, again)
	}
	rule.Seed = 8
	b.faults(rule)
	other := b.statuses(200)
	if slices.Equal(first, other) {
		t.Error("seeds 7 and 8 fall the same way")
	}
	rules, err := b.Rules(t.Context())
	b.must(err)
	if r := rules[0]; r.Matched != 200 || r.Applied < 20 || r.Applied > 60 {
		t.Errorf("chance 0.2 applied to %d of %d", r.Applied, r.Matched)
	}
}

// One that does not fall leaves the request to the next, so that several make up one weather; Times bounds each.
func TestChancesOfSeveralRulesAddUp(t *testing.T) {
	b := start(t)
	b.faults(
		faultproxy.Rule{Fault: faultproxy.Refuse503, Chance: 0.5, Seed: 1, Times: 3},
		faultproxy.Rule{Fault: faultproxy.Refuse500, Chance: 0.5, Seed: 2},
	)
	count := map[int]int{}
	for _, status := range b.statuses(100) {
		count[status]++
	}
	if count[503] != 3 || count[500] < 25 || count[500] > 75 || count[200] == 0 {
		t.Errorf("answers %v", count)
	}
}

func TestASequenceIsForTheSameContent(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{
		Operation: "TransactWriteItems", Fault: faultproxy.DropReply, Times: 1,
		Then: []faultproxy.Step{
			{Fault: faultproxy.Throttle, Code: faultproxy.Throttling},
			{Fault: faultproxy.InProgress},
			{Fault: faultproxy.Conflict, Item: faultproxy.EveryItem},
		},
	})
	const bytes = `{"ClientRequestToken":"t1","TransactItems":[{"Put":{"TableName":"a"}}]}`
	const sorted = `{"TransactItems":[{"Put":{"TableName":"a"}}],"ClientRequestToken":"t1"}` // the same content
	const other = `{"ClientRequestToken":"t2","TransactItems":[{"Put":{"TableName":"a"}}]}`
	b.lost("TransactWriteItems", bytes)
	b.want(200, "TransactWriteItems", other)
	for i, want := range []string{"ThrottlingException", "TransactionInProgressException", "TransactionCanceledException"} {
		b.want(400, "TransactWriteItems", []string{bytes, sorted}[i%2])
		if got := b.last().ErrorType; got != want {
			t.Errorf("step %d answers %s, want %s", i+2, got, want)
		}
	}
	b.want(200, "TransactWriteItems", bytes)
	rules, err := b.Rules(t.Context())
	b.must(err)
	if r := rules[0]; r.Applied != 1 || r.Continued != 3 {
		t.Errorf("rule %+v", r)
	}
	if n := len(b.upstream.arrivals()); n != 3 {
		t.Errorf("%d arrived, want the first, the other, and the last", n)
	}
}

func TestNewRulesEndSequences(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Refuse503, Then: []faultproxy.Step{{Fault: faultproxy.Refuse500}}})
	b.want(503, "PutItem", put)
	b.want(500, "PutItem", put)
	b.want(503, "PutItem", put) // without times it begins again
	b.faults()
	b.want(200, "PutItem", put)
}

// A request that a later step could not be an answer to does not begin the sequence.
func TestEveryStepFitsTheRequest(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Refuse503, Then: []faultproxy.Step{{Fault: faultproxy.InProgress}}})
	b.want(200, "PutItem", put)
	b.want(503, "TransactWriteItems", `{"TransactItems":[]}`)
}

func TestFaultsAreCountedByOperationAndCode(t *testing.T) {
	b := start(t)
	b.faults(
		faultproxy.Rule{
			Operation: "TransactWriteItems", Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled, Reason: faultproxy.ReasonThroughput,
			Then: []faultproxy.Step{{Fault: faultproxy.Mismatch}},
		},
		faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Throttle, Times: 2},
	)
	const transaction = `{"TransactItems":[{"Put":{"TableName":"a"}}]}`
	b.want(400, "TransactWriteItems", transaction)
	b.want(400, "TransactWriteItems", transaction)
	b.statuses(3)
	counts, err := b.Counts(t.Context())
	b.must(err)
	const want = "{5 [{PutItem 3 2} {TransactWriteItems 2 1}] [{PutItem throttle  2} {TransactWriteItems mismatch  1} " +
		"{TransactWriteItems throttle TransactionCanceledException ProvisionedThroughputExceeded 1}]}"
	if got := fmt.Sprint(counts); got != want {
		t.Errorf("counts\n%s, want\n%s", got, want)
	}
	b.must(b.Reset(t.Context()))
	if counts, err = b.Counts(t.Context()); err != nil || counts.Requests != 0 || len(counts.Operations) != 0 || len(counts.Faults) != 0 {
		t.Errorf("counts %+v after a reset, %v", counts, err)
	}
}
