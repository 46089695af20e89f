package faultproxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

func TestRulesMatch(t *testing.T) {
	transaction := `{"TransactItems":[{"Update":{"TableName":"stack-idempotency"}},{"ConditionCheck":{"TableName":"stack-payments"}}]}`
	batch := `{"RequestItems":{"stack-outbox":[{"PutRequest":{}}]}}`
	for name, c := range map[string]struct {
		rule      faultproxy.Rule
		operation string
		body      string
		hit       bool
	}{
		"everything":             {faultproxy.Rule{}, "Scan", put, true},
		"operation":              {faultproxy.Rule{Operation: "PutItem"}, "PutItem", put, true},
		"another operation":      {faultproxy.Rule{Operation: "PutItem"}, "Put", put, false},
		"table":                  {faultproxy.Rule{Table: "outbox"}, "PutItem", put, true},
		"another table":          {faultproxy.Rule{Table: "m.1"}, "PutItem", put, false},
		"table of a transaction": {faultproxy.Rule{Table: "payments"}, "TransactWriteItems", transaction, true},
		"table of a batch":       {faultproxy.Rule{Table: "outbox"}, "BatchWriteItem", batch, true},
		"no JSON":                {faultproxy.Rule{Table: "outbox"}, "PutItem", "outbox", false},
		"content":                {faultproxy.Rule{Contains: `"S":"m.1"`}, "PutItem", put, true},
		"other content":          {faultproxy.Rule{Contains: `"S":"m.2"`}, "PutItem", put, false},
		"all of it":              {faultproxy.Rule{Operation: "PutItem", Table: "out", Contains: "m."}, "PutItem", put, true},
		"all but one":            {faultproxy.Rule{Operation: "PutItem", Table: "in", Contains: "m."}, "PutItem", put, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			c.rule.Fault = faultproxy.Refuse503
			b.faults(c.rule)
			status := http.StatusOK
			if c.hit {
				status = http.StatusServiceUnavailable
			}
			b.want(status, c.operation, c.body)
		})
	}
}

func TestAfterAndTimes(t *testing.T) {
	b := start(t)
	b.faults(
		faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Refuse503, After: 2, Times: 2},
		faultproxy.Rule{Fault: faultproxy.Throttle, After: 4, Times: 1},
	)
	b.want(200, "GetItem", put)
	for i, status := range []int{200, 200, 503, 503, 200, 400, 200} {
		r, err := b.send(t.Context(), "PutItem", put)
		if err != nil || r.status != status {
			t.Errorf("request %d: %d, %v, want %d", i, r.status, err, status)
		}
	}
	rules, err := b.Rules(t.Context())
	b.must(err)
	if rules[0].Matched != 4 || rules[0].Applied != 2 || rules[1].Matched != 5 || rules[1].Applied != 1 {
		t.Errorf("rules %+v", rules)
	}
}

func TestTimesHoldForSimultaneousRequests(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Refuse503, After: 3, Times: 5})
	var group sync.WaitGroup
	var mu sync.Mutex
	count := map[int]int{}
	for range 20 {
		group.Go(func() {
			r, err := b.send(t.Context(), "PutItem", put)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				count[r.status]++
			}
		})
	}
	group.Wait()
	if count[503] != 5 || count[200] != 15 {
		t.Errorf("answers %v", count)
	}
	var seqs []int
	for _, e := range b.log() {
		seqs = append(seqs, e.Seq)
	}
	if !slices.IsSorted(seqs) || len(slices.Compact(seqs)) != 20 {
		t.Errorf("seqs %v", seqs)
	}
}

func TestTheLogSaysWhatACallCost(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	b := startWith(t, faultproxy.Config{LogMax: 3, Now: func() time.Time { return now }})
	for _, c := range []struct {
		status   int
		answer   string
		capacity float64
		errType  string
	}{
		{200, `{"ConsumedCapacity":{"TableName":"outbox","CapacityUnits":1.5}}`, 1.5, ""},
		{200, `{"ConsumedCapacity":[{"CapacityUnits":2},{"CapacityUnits":4}]}`, 6, ""},
		{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"m"}`, 0, "ConditionalCheckFailedException"},
		{500, `no JSON`, 0, ""},
	} {
		b.upstream.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.answer)
		})
		b.want(c.status, "PutItem", put)
		e := b.last()
		if e.Status != c.status || e.ConsumedCapacity != c.capacity || e.ErrorType != c.errType || e.RequestBytes != len(put) ||
			!e.StartedAt.Equal(now) || !slices.Equal(e.Tables, []string{"outbox"}) || e.Fault != "" {
			t.Errorf("%s: log %+v", c.answer, e)
		}
	}
	if log := b.log(); len(log) != 3 || log[0].Seq != 2 || log[2].Seq != 4 {
		t.Errorf("the log holds the newest 3: %+v", log)
	}
	b.must(b.ClearLog(t.Context()))
	if log := b.log(); len(log) != 0 {
		t.Errorf("log %+v", log)
	}
	b.want(500, "GetItem", put)
	if e := b.last(); e.Seq != 5 {
		t.Errorf("the count goes on after the log was cleared: %+v", e)
	}
}

func TestControlEndpoints(t *testing.T) {
	b := start(t)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"PUT", "/control/faults", `{"rules":[{"operation":"TransactWriteItems","table":"t","contains":"c","fault":"late","after":0,"times":1,"delay_ms":5}]}`, 204},
		{"GET", "/control/faults", "", 200},
		{"PUT", "/control/faults", `{"rules":[{"fault":"explode"}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"down"}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"refuse","times":-1}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"refuse","delay_ms":86400001}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"delay"}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"throttle","code":"Other"}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"conflict","code":"ThrottlingException"}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"refuse","op":"PutItem"}]}`, 400},
		{"PUT", "/control/faults", `{"rules":`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"throttle","code":"RequestLimitExceeded","chance":0.5,"seed":7,"then":[{"fault":"mismatch"},{"fault":"delay_reply","delay_ms":1}]}]}`, 204},
		{"PUT", "/control/faults", `{"rules":[{"fault":"refuse","chance":1.1}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"refuse","chance":-0.1}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"refuse","seed":7}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"refuse","then":[{"fault":"delay_reply"}]}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"refuse","then":[{"fault":"refuse","times":1}]}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"conflict","item":-2}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"throttle","reason":"ThrottlingError"}]}`, 400},
		{"PUT", "/control/faults", `{"rules":[{"fault":"throttle","code":"TransactionCanceledException","reason":"TransactionConflict"}]}`, 400},
		{"GET", "/control/counts", "", 200},
		{"POST", "/control/counts", "", 405},
		{"GET", "/control/log", "", 200},
		{"POST", "/control/log", "", 405},
		{"DELETE", "/control/log", "", 204},
		{"GET", "/control/waiting", "", 200},
		{"POST", "/control/release", "", 204},
		{"GET", "/control/release", "", 405},
		{"POST", "/control/down", "", 204},
		{"POST", "/control/up", "", 204},
		{"POST", "/control/reset", "", 204},
		{"GET", "/control/other", "", 404},
	} {
		t.Run(c.method+c.path+c.body, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, b.URL+c.path, strings.NewReader(c.body))
			b.must(err)
			res, err := http.DefaultClient.Do(req)
			b.must(err)
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			b.must(err)
			if res.StatusCode != c.status || (c.status != 204 && !json.Valid(body)) {
				t.Errorf("%d %s, want %d", res.StatusCode, body, c.status)
			}
		})
	}
	if len(b.upstream.arrivals()) != 0 {
		t.Error("a control request reached DynamoDB")
	}
}

func ExampleRule() {
	// The commit after the next two is performed, and its reply is lost.
	rule := faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.DropReply, After: 2, Times: 1}
	body, err := json.Marshal(rule)
	fmt.Println(string(body), err)
	// Output: {"operation":"TransactWriteItems","fault":"drop_reply","after":2,"times":1} <nil>
}
