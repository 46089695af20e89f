package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// priceDeployment prices the paths of a deployment whose calls to DynamoDB are metered.
func priceDeployment(t *testing.T, d *deployment) (map[string]*Cost, []string, error) {
	t.Helper()
	endpoint := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	b, err := listen(endpoint)
	must(t, err)
	t.Cleanup(b.close)
	d.dynamodb = b.server.URL
	g, err := openGateway(deploy(t, d), time.Minute)
	must(t, err)
	must(t, b.meter(t.Context(), endpoint))
	own := []string{"load-gateway-idempotency", "load-gateway-outbox", "load-gateway-rows"}
	return priced{traffic: g.traffic, provider: g.provider, wire: b.wire, own: own, quiet: 20 * time.Millisecond, within: time.Minute}.costs(t.Context())
}

// A payment is priced with its delivery, at what bench/cost says of both.
func TestThePathsOfAStackArePricedWithWhatComesOfThem(t *testing.T) {
	root, err := localtool.Root()
	must(t, err)
	want, err := documented(root)
	must(t, err)
	if *want["payment"] != (Cost{"GetItem, TransactWriteItems(3), GetItem, PutItem, TransactWriteItems(3)", 15, 2}) {
		t.Errorf("bench/cost says %+v of a payment", *want["payment"])
	}
	costs, notes, err := priceDeployment(t, &deployment{effects: one, settles: true})
	must(t, err)
	part := Part{Figures: []Figure{{Path: "payment"}, {Path: "replay"}, {Path: "status read"}}}
	part.priced(costs, want)
	if err := (Report{Parts: []Part{part}}).err(); err != nil {
		t.Error(err)
	}
	for _, f := range part.Figures {
		if f.Cost == nil {
			t.Errorf("%s has no cost", f.Path)
		}
	}
	if len(notes) != 3 || !strings.HasPrefix(notes[0], "payment: 5 of 5 alike; besides, for each on quota counters and API keys: 0.0 W 0.0 R in 0.0 calls") {
		t.Errorf("%q", notes)
	}
}

// A stack whose payments consume something else than bench/cost says fails the run: here one without a row of the worker's.
func TestAnotherCostThanDocumentedFailsTheRun(t *testing.T) {
	root, err := localtool.Root()
	must(t, err)
	want, err := documented(root)
	must(t, err)
	costs, _, err := priceDeployment(t, &deployment{effects: one})
	must(t, err)
	var part Part
	part.priced(costs, want)
	if len(part.Wrong) != 1 || !strings.HasPrefix(part.Wrong[0], "payment consumes {Calls:GetItem, TransactWriteItems(3), GetItem, PutItem, TransactWriteItems(2) WriteUnits:13 ") {
		t.Errorf("got %q, want the payment", part.Wrong)
	}
}

// A payment whose charge never comes has no price, and requests that each consume something else have none either.
func TestAPaymentWithoutItsEffectHasNoPrice(t *testing.T) {
	endpoint := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	b, err := listen(endpoint)
	must(t, err)
	t.Cleanup(b.close)
	d := &deployment{effects: func(int64) int { return 0 }, dynamodb: b.server.URL}
	g, err := openGateway(deploy(t, d), time.Minute)
	must(t, err)
	must(t, b.meter(t.Context(), endpoint))
	p := priced{traffic: g.traffic, provider: g.provider, wire: b.wire, quiet: time.Millisecond, within: 100 * time.Millisecond}
	if _, _, err := p.costs(t.Context()); err == nil || !strings.Contains(err.Error(), "a payment has no charge") {
		t.Errorf("got %v", err)
	}
	seen := map[Cost]int{{Calls: "GetItem"}: 2, {Calls: "GetItem, Query"}: 3}
	if usual, times := mostFrequent(seen); usual.Calls != "GetItem, Query" || times != 3 {
		t.Errorf("%+v, %d times", usual, times)
	}
}

// The dated table that is shown has what bench/cost says today, and the page repeats it.
func TestTheNewestLoadTableHasTheCostsOfToday(t *testing.T) {
	root, err := localtool.Root()
	must(t, err)
	want, err := documented(root)
	must(t, err)
	want["payment"].WriteUnits += ledgerWrites
	results, err := filepath.Glob("../results/*.md")
	must(t, err)
	slices.Sort(results)
	newest := ""
	for _, name := range results {
		text, err := os.ReadFile(name)
		must(t, err)
		if _, part, found := strings.Cut(string(text), "\ngateway: "); found {
			newest, _, _ = strings.Cut(part, "\n\n")
		}
	}
	for path, cost := range want {
		row := fmt.Sprintf(`(?m)^ +\. +\. +%s .* %g +%g +%s +\.$`, path, cost.WriteUnits, cost.ReadUnits, regexp.QuoteMeta(cost.Calls))
		if n := len(regexp.MustCompile(row).FindAllString(newest, -1)); n != 3 {
			t.Errorf("%s: %d rows of the newest result have %+v, want those of 1, 8 and 32 callers", path, n, *cost)
		}
	}
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	row := fmt.Sprintf(`(?m)^\| payment, with its delivery \|.*\| %g \| %g \| GetItem, TransactWriteItems of 3; then GetItem, PutItem, TransactWriteItems of 3 \|$`,
		want["payment"].WriteUnits, want["payment"].ReadUnits)
	if !regexp.MustCompile(row).Match(readme) {
		t.Errorf("bench/README.md has no row %s", row)
	}
}
