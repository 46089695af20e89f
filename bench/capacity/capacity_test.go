package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/bench/price"
	"github.com/idem-go/idem-aws/internal/localtool"
)

var update = flag.Bool("update", false, "write the golden files from the present code")

// parsed are the arguments of a command line.
func parsed(line ...string) (a arguments, err error) {
	parser, err := kong.New(&a, kong.Name("capacity"))
	if err != nil {
		return a, err
	}
	_, err = parser.Parse(line)
	return a, err
}

func planned(t *testing.T, line ...string) (Plan, string) {
	t.Helper()
	a, err := parsed(append(line, "--output", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := a.run(&out); err != nil {
		t.Fatal(err)
	}
	var p Plan
	if err := json.Unmarshal(out.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	a.Output = "text"
	if err := a.run(&out); err != nil {
		t.Fatal(err)
	}
	return p, out.String()
}

func TestPlansAreThoseOfTestdata(t *testing.T) {
	for name, line := range map[string][]string{
		"100": {"--rate", "100"}, "1000": {}, "10000": {"--rate", "10000"},
		"10000-streams": {"--rate", "10000", "--outbox", "streams", "--webhooks", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := planned(t, line...)
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("if this is meant: go test ./bench/capacity -update\n got\n%s\nwant\n%s", got, want)
			}
			for line := range strings.Lines(got) {
				if utf8.RuneCountInString(line) > 101 { // with its end
					t.Errorf("wider than 100: %s", line)
				}
			}
		})
	}
}

// byHand is the plan of a rate once more: integers and the units that bench/README.md tells of.
type byHand struct {
	rate, requests int
	// counted and looked are the units of the counters, keys the reads of API keys, parts the pieces of the drift job.
	counted, looked, keys, parts float64
}

func ceil(n int, by float64) float64 { return math.Max(1, math.Ceil(float64(n)/by-1e-9)) }

func computed(rate int) byHand {
	h := byHand{rate: rate, requests: rate + rate/10 + rate} // 0.1 replays and 1 look-up
	// Two counters: 1 W for each look-up and each new key; and of the active keys, blocks of 10 less 2.5 on average. A process of the api
	// takes 70/4/2.1 new keys a second of 1,000 tenants, which is 30 of each in an hour: 4 blocks, 0.6 of one more, and one brought back.
	blocks := 30/7.5 + 0.6
	h.counted = float64(rate) * (1 + 1 + (blocks+1)/30)
	// A block is taken after a look at the counters of two days, half a unit each.
	h.looked = float64(rate) * blocks / 30
	// A process of the authorizer takes 70 requests a second, 0.07 of each of 1,000 keys: 4.2 while it holds one, and one
	// that reads it again.
	h.keys = float64(h.requests) / 5.2
	// A piece of the drift job compares 400 rows a second, less the more is listed; 4 pieces at the least.
	h.parts = max(4, ceil(3*rate, 0.7*h.piece()))
	return h
}

// piece is how many rows a second one compares, and burst what all pieces read of a table.
func (h byHand) piece() float64 { return 400 - float64(h.rate)*1.5/5.5*10/240 }

func (h byHand) burst() float64 { return 400 * h.parts }

// writes are 7 W for the request, 8 W for the delivery, 1 W for the ledger, and those of the counters. reads are those of requests, and
// three passes over a row of each of three tables, and a hundredth of its place in the index.
func (h byHand) writes() float64 { return float64(16*h.rate) + h.counted }

func (h byHand) reads() float64 {
	return float64(2*h.rate+h.rate/10) + h.keys + h.looked + 3*3.011*float64(h.rate)
}

// agree compares a figure of the plan.
func agree(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// eachRate runs a test for the plan of each rate, with the outbox's stream.
func eachRate(t *testing.T, test func(t *testing.T, p Plan, h byHand)) {
	t.Helper()
	for _, rate := range []int{100, 1000, 10000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			p, _ := planned(t, "--rate", fmt.Sprint(rate), "--outbox", "streams")
			test(t, p, computed(rate))
		})
	}
}

func TestUnitsAgreeWithASecondComputation(t *testing.T) {
	eachRate(t, func(t *testing.T, p Plan, h byHand) {
		rate, burst := h.rate, h.burst()
		writes, reads := 0.0, 0.0
		for _, of := range p.Paths {
			writes, reads = writes+of.Writes, reads+of.Reads
		}
		agree(t, "write units", writes, h.writes())
		agree(t, "read units", reads, h.reads())
		agree(t, "counters", p.Tables[countersTable].Writes, h.counted)
		agree(t, "reads of counters", p.Tables[countersTable].Reads, h.looked)
		agree(t, "reads of API keys", p.Tables[keysTable].Reads, h.keys)
		agree(t, "reads of payments", p.Tables[paymentsTable].Reads, float64(3*rate))
		agree(t, "reads of payments in bursts", p.Tables[paymentsTable].ReadsAtOnce, burst)
		agree(t, "reads of records", p.Tables[recordsTable].Reads, float64(5*rate+rate/10))
		agree(t, "reads of records in bursts", p.Tables[recordsTable].ReadsAtOnce, float64(2*rate+rate/10)+burst)
		agree(t, "reads of messages", p.Tables[outboxTable].Reads, float64(3*rate))
		// 4 W of the record, 5 of the message, 2 of its index, 4 of the payment.
		agree(t, "idempotency", p.Tables[recordsTable].Writes, float64(4*rate))
		agree(t, "outbox", p.Tables[outboxTable].Writes, float64(5*rate))
		agree(t, "payments", p.Tables[paymentsTable].Writes, float64(4*rate))
		// 70 % of 1,000 W/s and 3,000 R/s a partition, and of 10 × 10 records a second.
		agree(t, "partitions", p.Tables[recordsTable].Partitions, max(ceil(4*rate, 700), math.Ceil((float64(2*rate+rate/10)+burst)/2100)))
		agree(t, "partitions of the outbox", p.Tables[outboxTable].Partitions, max(ceil(5*rate, 700), ceil(rate, 70), math.Ceil(burst/2100)))
		agree(t, "partitions of counters", p.Tables[countersTable].Partitions, math.Ceil(h.counted/700))
		agree(t, "outbox shards", p.Indexes[outboxIndex].Shards, ceil(2*rate, 700))
		agree(t, "ledger shards", p.Indexes[ledgerIndex].Shards, ceil(rate, 700))
	})
}

func TestExecutionsAndDollarsAgreeWithASecondComputation(t *testing.T) {
	eachRate(t, func(t *testing.T, p Plan, h byHand) {
		rate, requests := h.rate, h.requests
		api, authorizer := ceil(requests*40, 700), ceil(requests*10, 700)
		lanes := 10 * ceil(rate, 70)
		agree(t, "batch", p.Mappings[0].Batch, float64(rate)/lanes)
		agree(t, "api", p.Functions[0].Planned, api)
		agree(t, "authorizer", p.Functions[1].Planned, authorizer)
		agree(t, "worker", p.Functions[2].Planned, lanes)
		agree(t, "drift", p.Functions[3].Planned, h.parts)
		// What must be reserved and left, where that is more than the default: with 12 for the worker's wake-ups, 18 each for sweep
		// and reconciler, and 152 for 150 pieces of the drift job.
		reserved := map[int]float64{10000: api + authorizer + lanes + 12 + 2*18 + 152}[rate]
		agree(t, "executions", p.Quotas[0].Needed, max(reserved, api+authorizer+lanes+2*min(16, max(8, ceil(2*rate, 700)))+h.parts, ceil(requests, 7)))
		agree(t, "gateway", p.Quotas[1].Needed, ceil(requests*10, 7))
		month := 730 * 3600.0
		running := float64(3*rate) / h.piece()
		perSecond := (0.625*h.writes() + 0.125*h.reads()) / 1e6
		perSecond += (2*float64(requests) + lanes + running/240 + 3*h.parts/3600) * 0.2 / 1e6
		perSecond += 0.0000133334 * (float64(requests)*(0.04*512+0.01*256) + (lanes+running)*512) / 1024
		perSecond += float64(rate) * 2500 / 1e9 * 0.5
		gateway := 300 + (float64(requests)*month/1e6-300)*0.9
		agree(t, "dollars", p.Dollars, perSecond*month+gateway)
	})
}

// Each table and index by itself, with a write of the records' index that no payment takes. 6 R of a record, 4 of a message and a
// payment, 1 of each index, and at the least what the drift job takes. Counters and API keys are on demand.
func TestProvisionedUnitsAgreeWithASecondComputation(t *testing.T) {
	eachRate(t, func(t *testing.T, p Plan, h byHand) {
		units, reads := 0.0, 0.0
		for _, perPayment := range []int{4, 1, 5, 2, 4, 1} {
			units += ceil(perPayment*h.rate, 0.7)
		}
		for _, perPayment := range []int{6, 4, 4} {
			reads += max(ceil(perPayment*h.rate, 0.7), math.Ceil(h.burst()/0.7-1e-9)) + ceil(h.rate, 0.7)
		}
		agree(t, "write units of the account", needs(t, p, quotaProvisionedWrites), units)
		agree(t, "read units of the account", needs(t, p, quotaProvisionedReads), reads)
		instead := units*730*0.00065 + reads*730*0.00013 + 730*3600*(h.counted*0.625+(h.keys+h.looked)*0.125)/1e6
		of := p.Provisioned
		agree(t, "dollars of DynamoDB", instead, of[0].Dollars+of[1].Dollars+of[2].Dollars+of[3].Dollars)
		agree(t, "dollars", p.ProvisionedDollars, p.Dollars-p.Costs[writesCost].Dollars-p.Costs[readsCost].Dollars+instead)
	})
}

// needs is what a plan needs of a quota.
func needs(t *testing.T, p Plan, quota Quota) float64 {
	t.Helper()
	n := slices.IndexFunc(p.Quotas, func(q Quota) bool { return q.Name == quota.Name })
	if n < 0 {
		t.Fatalf("no quota %s", quota.Name)
	}
	return p.Quotas[n].Needed
}

func TestRaisedQuotasAndMissingCapacityAreNamed(t *testing.T) {
	raised := func(p Plan) (names []string) {
		for _, q := range p.Quotas {
			if q.Raise {
				names = append(names, q.Name)
			}
		}
		return names
	}
	p, text := planned(t, "--rate", "100", "--outbox", "streams") // whose worker reads no message
	if len(raised(p)) != 0 || !strings.Contains(text, "carries this rate") {
		t.Errorf("100/s: %q\n%s", raised(p), text)
	}
	p, text = planned(t, "--rate", "10000")
	if got := strings.Join(raised(p), "; "); got != "Lambda concurrent executions; API Gateway requests/s; "+
		"DynamoDB table write units/s, idempotency; DynamoDB table read units/s, idempotency; DynamoDB table write units/s, outbox; "+
		"DynamoDB table read units/s, outbox; DynamoDB table write units/s, payments; DynamoDB table read units/s, payments; "+
		"DynamoDB account provisioned write units; DynamoDB account provisioned read units; DynamoDB table provisioned units, with its index" {
		t.Errorf("10,000/s: %s", got)
	}
	_, missing, found := strings.Cut(text, "does not carry this yet:")
	for _, want := range []string{"index of the outbox", "index of the ledger", "stream of a new outbox table", "new table payments", "new table quota counters", "quota of active keys 1,000,000, tenants 1,000"} {
		if !found || !strings.Contains(missing, want) {
			t.Errorf("%q is not told of in\n%s", want, missing)
		}
	}
	p, _ = planned(t, "--rate", "20000")
	for _, l := range p.Limits { // 190 workers with ten messages a second each
		if strings.HasPrefix(l.What, "executions of worker") && (l.Enough || l.Carries != 1330 || !strings.HasSuffix(l.Remedy, "concurrency.worker=963 and workerBatch=30")) {
			t.Errorf("%+v", l)
		}
	}
}

// The plan for 10,000 payments a second ends with the contexts of a stage that carries them. Where no contexts do, it says what lacks.
func TestThePlanEndsWithContextsThatCarryTheRate(t *testing.T) {
	const carries = "\nDeployed with them the stack carries this rate" + provided + "\n"
	for _, rate := range []string{"1000", "10000", "13000"} {
		if p, text := planned(t, "--rate", rate); !strings.HasSuffix(text, carries) || len(p.Contexts) == 0 {
			t.Errorf("%s/s: %v\n%s", rate, p.Contexts, text)
		}
	}
	if p, text := planned(t, "--rate", "100"); len(p.Contexts) != 0 || !strings.HasSuffix(text, "\nThe stack as deployed carries this rate"+provided+"\n") {
		t.Errorf("100/s: %v\n%s", p.Contexts, text)
	}
	for what, line := range map[string][]string{
		"drift job, pieces at once 240": {"--rate", "14000"}, "executions of worker, 1,010": {"--rate", "13000", "--worker-latency", "5s"},
		"sweep after an outage": {"--rate", "1000", "--outbox", "streams"},
		// A tenant may have as many active keys as the stack takes, and the whole rate is one tenant's.
		"quota of active keys 1,000,000,000, tenants 1": {"--rate", "10000", "--tenants", "1"},
	} {
		if _, text := planned(t, line...); strings.HasSuffix(text, carries) || !strings.Contains(text, "It still lacks: "+what) {
			t.Errorf("%q does not lack %s\n%s", line, what, text)
		}
	}
}

// hourly.PartsMax has the arithmetic: 286 rows a second at 10,000 payments a second, and 13,600 at the most.
func TestADriftPieceComparesLessWhereMoreIsListed(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"functions/internal/drift/run.go":          "lag = 10 * time.Second",
		"functions/internal/drift/hourly/piece.go": "stepTime = 4 * time.Minute",
		"infra/stack/drift.go":                     fmt.Sprintf("partsMax     = %d", driftPartsMax),
	} {
		if source, err := os.ReadFile(filepath.Join(root, file)); err != nil || strings.Count(string(source), want) != 1 {
			t.Errorf("%s: no %q: %v", file, want, err)
		}
	}
	if rows := driftRows - 10_000*driftSlower; math.Round(rows) != 286 || driftLag != 10*time.Second || driftStep != 4*time.Minute {
		t.Errorf("%v rows a second", rows)
	}
	// By hand: 150 × 286.4 × 0.7 / 3.
	if carried := 0.7 * 150 * (driftRows - 10_000*driftSlower) / driftPasses; carried < 10_000 || carried > 10_050 {
		t.Errorf("150 pieces carry %v", carried)
	}
}

// A remedy for the drift job carries the rate, or says that none does: the stack takes 240 pieces at most.
func TestDriftRemedyIsOneThatTheStackTakes(t *testing.T) {
	for rate, want := range map[string]string{
		"1000":  "deploy with driftParts=12", // 1,000 × 3 / (400 - 11.4) / 0.7
		"10000": "deploy with driftParts=150",
		"13688": "deploy with driftParts=240",
		"13689": "none: it carries 13,688 at most, with driftParts=240; above, hours are compared late",
		"40000": "none: it carries 13,688 at most, with driftParts=240; above, hours are compared late",
	} {
		p, _ := planned(t, "--rate", rate)
		n := slices.IndexFunc(p.Limits, func(l Limit) bool { return strings.HasPrefix(l.What, "drift job") })
		if n < 0 || p.Limits[n].Enough || p.Limits[n].Remedy != want {
			t.Errorf("%s/s: limit %d of %+v, want %s", rate, n, p.Limits, want)
		}
	}
}

// A limit is enough exactly up to the rate that it carries.
func TestALimitHoldsUpToWhatItCarries(t *testing.T) {
	p, _ := planned(t)
	for _, limit := range p.Limits {
		for rate, want := range map[float64]bool{math.Floor(limit.Carries): true, math.Floor(limit.Carries) + 1: false} {
			at, _ := planned(t, "--rate", fmt.Sprint(rate))
			for _, l := range at.Limits {
				if l.What == limit.What && l.Enough != want {
					t.Errorf("%s at %v: enough: %v", l.What, rate, l.Enough)
				}
			}
		}
	}
}

func TestUnitsAreThoseOfBenchCost(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	f, err := readFacts(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, costFile))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for operation, paths := range f.costs {
		for path, u := range paths {
			rows++
			if !strings.Contains(string(text), fmt.Sprintf("%.3f", u.Writes()*0.625+u.Reads*0.125)) {
				t.Errorf("%s, %s: no row costs what %+v do", operation, path, u)
			}
		}
	}
	if want := strings.Count(string(text), "\n  "); rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
	if first := f.costs[operation][pathFirst]; first != (Units{Records: 2, Messages: 2, Indexes: 1, Business: 2, Reads: 1}) {
		t.Errorf("%+v", first)
	}
	if f.webhook != (Units{Records: 2, Reads: 3}) {
		t.Errorf("webhook: %+v", f.webhook)
	}
}

func TestDamagedSourcesAreErrors(t *testing.T) {
	for _, text := range []string{
		"", "  first  1  .  .  .  1  .  0.6  1W  1  PutItem\n",
		"deferred, 300 B of JSON  records  messages  indexes  business  W  R  $  reported  record  calls\n  first  1  .  .  .  2  .  0.6  1W  1  PutItem\n",
		"deferred, 300 B of JSON  records  messages  indexes  business  W  R  $  reported  record  calls\n  first  x  .  .  .  2  .  0.6  1W  1  PutItem\n",
	} {
		if _, err := parseCosts(text); err == nil {
			t.Errorf("no error: %q", text)
		}
	}
	if _, err := parseWebhook("the same again: GetItem 1R 0W\n"); err == nil {
		t.Error("no error without the usual webhook")
	}
	for _, text := range []string{"", "{}", `{"Resources":{"ApiFunction1":{"Type":"AWS::Lambda::Function","Properties":{"MemorySize":512}}}}`} {
		if _, err := parseTemplate([]byte(text)); err == nil {
			t.Errorf("no error: %q", text)
		}
	}
}

func TestBadInputIsAnErrorThatNamesFlagValueAndRule(t *testing.T) {
	for _, row := range []struct{ flag, value, want string }{
		{"rate", "0", "--rate = 0: must be above 0 and at most 1,000,000"},
		{"rate", "-1", "--rate = -1: must be above 0 and at most 1,000,000"},
		{"rate", "NaN", "--rate = NaN: must be above 0 and at most 1,000,000"},
		{"rate", "Inf", "--rate = +Inf: must be above 0 and at most 1,000,000"},
		{"rate", "1e9", "--rate = 1e+09: must be above 0 and at most 1,000,000"},
		{"rate", "many", `--rate: expected a float but got "many" (string)`},
		{"replays", "-0.1", "--replays = -0.1: must be 0 to 1,000"},
		{"keys", "0", "--keys = 0: must be above 0 and at most 1,000,000,000"},
		{"utilisation", "1.1", "--utilisation = 1.1: must be above 0 and at most 1"},
		{"utilisation", "0", "--utilisation = 0: must be above 0 and at most 1"},
		{"worker-latency", "0s", "--worker-latency = 0s: must be above 0 and at most 15m0s"},
		{"worker-latency", "1h", "--worker-latency = 1h0m0s: must be above 0 and at most 15m0s"},
		{"outbox", "kafka", `--outbox must be one of "sqs","streams" but got "kafka"`},
		{"output", "xml", `--output must be one of "text","json" but got "xml"`},
	} {
		var out bytes.Buffer
		a, err := parsed("--" + row.flag + "=" + row.value)
		if err == nil {
			err = a.run(&out)
		}
		if err == nil || err.Error() != row.want || out.Len() > 0 {
			t.Errorf("--%s=%s: %v", row.flag, row.value, err)
		}
	}
}

// functions/internal/apikey reads a key strongly, from a table of its own, and functions/internal/config says how old what it holds
// may be.
func TestKeysAreReadAsTheAuthorizerReadsThem(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	source := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, read, _ := strings.Cut(source("functions/internal/apikey/table.go"), ") Key(ctx")
	read, _, _ = strings.Cut(read, "\n}\n")
	units := 0.5
	if strings.Contains(read, "ConsistentRead: aws.Bool(true)") {
		units = 1
	}
	if !strings.Contains(read, "GetItem(") || units != keyRead {
		t.Errorf("a key is read by %v units, planned are %v:\n%s", units, keyRead, read)
	}
	_, age, _ := strings.Cut(source("functions/internal/config/config.go"), `env:"API_KEY_CACHE_AGE" envDefault:"`)
	if age, _, _ = strings.Cut(age, `"`); age != "1m" || keyAge != time.Minute {
		t.Errorf("a process holds a key for %s, planned are %s", age, keyAge)
	}
	// One key is read once a minute by each of 300 processes; each of 100 million at every request, nearly.
	for keys, want := range map[string]float64{"1": 300.0 / 60, "100000000": 21_000} {
		if p, _ := planned(t, "--rate", "10000", "--keys", keys); math.Abs(p.Tables[keysTable].Reads/want-1) > 0.001 {
			t.Errorf("%s keys: %v reads a second, want %v", keys, p.Tables[keysTable].Reads, want)
		}
	}
}

// What the smallest and the largest traffic need is finite and at least one of each.
func TestExtremesHaveAPlan(t *testing.T) {
	for _, line := range [][]string{
		{"--rate", "0.0001", "--worker-latency", "1ns"},
		{"--rate", "1000000", "--replays", "1000", "--polls", "1000", "--webhooks", "1000", "--worker-latency", "15m", "--utilisation", "0.01"},
		{"--rate", "1000000", "--outbox", "sqs", "--relay-latency", "15m"},
	} {
		p, text := planned(t, line...)
		if strings.Contains(text, "Inf") || strings.Contains(text, "NaN") || p.Dollars <= 0 {
			t.Errorf("%q\n%s", line, text)
		}
		for _, of := range p.Tables {
			if of.Partitions < 1 {
				t.Errorf("%q: %+v", line, of)
			}
		}
	}
}

// docs/platform.md tells each quota's default and where AWS says so.
func TestQuotasAreInTheDocumentation(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "platform.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []Quota{quotaConcurrency, quotaGateway, quotaTableWrites, quotaTableReads, quotaProvisionedWrites, quotaProvisionedReads, quotaProvisionedTable, quotaInFlight} {
		told := false
		for line := range strings.Lines(string(text)) {
			told = told || strings.Contains(line, "| "+q.Name+" | "+figure(q.Default)+" |") && strings.Contains(line, q.Source)
		}
		if !told {
			t.Errorf("no line of docs/platform.md tells %+v", q)
		}
	}
}

// The default stack has neither webhook nor relay, so its template does not tell their memory.
func TestMemoryOfOptionalFunctionsIsTheirs(t *testing.T) {
	stackSays(t, "webhook.go", fmt.Sprintf("memoryMiB: %d", optionalMemoryMiB))
	stackSays(t, "outbox.go", fmt.Sprintf("memoryMiB: %d", optionalMemoryMiB))
}

// The template of the default stack has no relay, so it does not tell what is reserved for it.
func TestReservedForTheRelayIsWhatTheStackReserves(t *testing.T) {
	stackSays(t, "concurrency.go", fmt.Sprintf("Relay: %d", relayReserved))
}

// stackSays demands that the code of the CDK app's stack says something once, whose numbers may have underscores.
func stackSays(t *testing.T, file, want string) {
	t.Helper()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "infra", "stack", file))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(strings.ReplaceAll(string(source), "_", ""), want) != 1 {
		t.Errorf("infra/stack/%s: no %q", file, want)
	}
}

// What the API lets through and what its functions may have at once bound the rate, and no more than they do.
func TestThrottlesAndReservationsAreLimits(t *testing.T) {
	p, _ := planned(t, "--rate", "400")
	for prefix, want := range map[string]float64{
		"API, requests/s": 0.7 * 1000 / 2.1, "API, payments and replays/s": 0.7 * 500 / 1.1,
		"executions of api": 0.7 * 400 / 0.04 / 2.1, "executions of authorizer": 0.7 * 100 / 0.01 / 2.1,
		"executions of worker": 0.7 * 190 * 10, "executions of relay": 0.7 * 40 * 10 / 0.05,
	} {
		found := false
		for _, l := range p.Limits {
			if strings.HasPrefix(l.What, prefix) {
				if found = true; math.Abs(l.Carries-want) > 1e-6 || l.Enough != (want >= 400) {
					t.Errorf("%+v, want %g", l, want)
				}
			}
		}
		if !found {
			t.Errorf("no limit %q", prefix)
		}
	}
}

// Nothing is read as less than nothing.
func TestNoFigureIsBelowZero(t *testing.T) {
	for _, outbox := range []string{"streams", "sqs"} {
		if _, text := planned(t, "--outbox", outbox); strings.Contains(text, "-0") {
			t.Errorf("%s:\n%s", outbox, text)
		}
	}
}

// The template of the default stack tells neither what a sweep reads in one call, nor what it lets wait with outbox=sqs.
func TestWhatASweepOffersIsWhatTheStackSets(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"infra/stack/outbox.go":     fmt.Sprintf("wakeUpsMax = %d", wakeUpsMax),
		"infra/spec/concurrency.go": fmt.Sprintf("WorkerMargin = %d", workerMargin),
		"infra/spec/delivery.go":    fmt.Sprintf("runsMax = %d", sweepRunsMax),
		"idem/outbox/config.go":     fmt.Sprintf("cmp.Or(c.SweepMax, %d)", sweepMax),
		"bench/sweep/due.go":        fmt.Sprintf("wakeUpsMax = %d", wakeUpsMax),
	} {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(strings.ReplaceAll(string(source), "_", ""), want) != 1 {
			t.Errorf("%s: no %q", file, want)
		}
	}
	p, _ := planned(t)
	if p.Deployed.SweepRuns != 8 {
		t.Errorf("%d calls of the sweep a minute", p.Deployed.SweepRuns)
	}
	for outbox, carries := range map[string]float64{"streams": 0.7 * 8 * 10_000 / 60, "sqs": 0.7 * 200_000 / 60} {
		p, _ := planned(t, "--outbox", outbox)
		for _, limit := range p.Limits {
			if strings.HasPrefix(limit.What, "sweep after an outage") && math.Abs(limit.Carries-carries) > 1e-6 {
				t.Errorf("%s: %+v, want %g", outbox, limit, carries)
			}
		}
	}
}

func TestLatenciesCountInNanosecondsInJSON(t *testing.T) {
	p, _ := planned(t, "--worker-latency", "250ms")
	if p.Traffic.Worker != 250*time.Millisecond {
		t.Errorf("%v", p.Traffic.Worker)
	}
}

// What is not read needs 0 units, and not -0, which both outputs would print.
func TestNothingNeedsZeroUnits(t *testing.T) {
	p, text := planned(t, "--rate", "100", "--outbox", "streams") // whose worker reads no message
	nothing := 0
	for _, q := range p.Quotas {
		if q.Needed == 0 {
			nothing++
		}
		if math.Signbit(q.Needed) {
			t.Errorf("%s needs %v", q.Name, q.Needed)
		}
	}
	if nothing == 0 || strings.Contains(text, " -0") {
		t.Errorf("%d quotas of which nothing is needed:\n%s", nothing, text)
	}
}

// functions/cmd/ledgerbench measured what comparing a row reads: bench/README.md has its figures, to a thousandth of a unit.
func TestComparedRowsReadWhatTheLedgerBenchmarkMeasured(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "bench", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## An hour of the ledger")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 7 {
			continue
		}
		measured, err := strconv.ParseFloat(strings.TrimSpace(cells[6]), 64)
		if err != nil {
			continue // the head
		}
		rows++
		if planned := compareTables*compareReads + compareIndexReads; math.Abs(measured-planned) > 0.005 {
			t.Errorf("%g R planned for a row: %s", planned, line)
		}
	}
	if rows < 4 {
		t.Errorf("%d measured rows", rows)
	}
}

// Documents that repeat figures of the plan repeat today's.
func TestDocumentsRepeatThePlan(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	repeats := func(document string, figures ...string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		prose := strings.Join(strings.Fields(string(text)), " ")
		for _, want := range figures {
			if !strings.Contains(prose, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s does not say %q", document, want)
			}
		}
	}
	for _, rate := range []float64{100, 1000, 10000} {
		p, _ := planned(t, "--rate", fmt.Sprint(rate))
		million := func(dollars float64) string { return fmt.Sprintf("$%.2f", dollars/rate/price.MonthSeconds*1e6) }
		repeats("bench/README.md", fmt.Sprintf("| %s | $%s | %s | $%s | %s |",
			figure(rate), figure(p.Dollars), million(p.Dollars), figure(p.ProvisionedDollars), million(p.ProvisionedDollars)))
	}
	p, _ := planned(t, "--rate", "10000")
	saved, provisioned := p.Dollars-p.ProvisionedDollars, p.Provisioned[0].Dollars+p.Provisioned[1].Dollars
	database := p.Costs[writesCost].Dollars + p.Costs[readsCost].Dollars
	repeats("docs/adr/0049-provision-capacity-before-saving-writes.md",
		"costs "+figure(p.Dollars)+" dollars", figure(p.Costs[writesCost].Dollars)+" of them",
		fmt.Sprintf("%.2f W for the counters", p.Tables[countersTable].Writes/10000),
		figure(saved)+fmt.Sprintf(" | taken: %.0f %% of what DynamoDB costs, %.0f %% of the bill", saved/database*100, saved/p.Dollars*100),
		figure(0.54*provisioned)+" or "+figure(0.77*provisioned)+" more", "77 % of "+figure(provisioned),
		figure(p.Paths[comparePath].Reads*price.MonthSeconds/price.Million*price.Reads)+" dollars a month on demand",
	)
}
