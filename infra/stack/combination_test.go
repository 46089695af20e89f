package stack_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/infra/lint"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// choice is a value of a dimension: the contexts that make it.
type choice map[string]any

// dimensions are the contexts that change what is in a template of a stack on AWS, each with the values that differ. Those that
// only change a number are in variants.
var dimensions = []struct {
	name    string
	choices []choice
}{
	{"front", []choice{
		{}, {"api": "rest"}, {"api": "rest", "waf": "on"}, {"domainName": "api.shop.example", "certificate": certificate},
		{"api": "rest", "waf": "on", "domainName": "api.shop.example", "certificate": certificate},
	}},
	{"auth", []choice{{}, {"auth": "function"}}},
	{"arch", []choice{{}, {"arch": "amd64"}}},
	{"encryption and tables", []choice{ // which keys are imported depends on both
		{}, {"encryption": "open"}, {"encryption": "on"}, imported(nil),
		withEncryption(imported(map[string]string{
			"keys": "Sealed", "kmsKey": "mrk-0123456789abcdef0123456789abcdef", "backupVault": "payments", "apiKeys": "Keys", "audit": "Audit",
		})),
	}},
	{"lost", []choice{{}, {"lost": "records"}}},
	{"stopped", []choice{{}, {"stopped": "true"}}},
	{"traces", []choice{{}, {"otlpEndpoint": "https://collector.example:4318"}, {"otlpEndpoint": "http://localhost:4318", "tracesPercent": 5}}},
	{"deployment", []choice{{}, {"deployment": "linear"}, {"deployment": "now"}}},
	{"network", []choice{
		{}, {"privateNetwork": "on"}, {"privateNetwork": map[string]any{"addresses": "eipalloc-0123456789abcdef0,eipalloc-0123456789abcdef1"}},
		{"privateNetwork": `{"subnets": "subnet-0123456789abcdef0,subnet-0123456789abcdef1", "securityGroups": "sg-0123456789abcdef0"}`},
	}},
	{"rollback", []choice{{}, {"rollback": "true"}}},
	{"outbox", []choice{{}, {"outbox": "sqs"}}},
	{"webhooks", []choice{{}, {"webhookSecret": "payments/webhook"}, {"webhookSecret": secretARN}}},
	{"provider", []choice{{}, {"providerSecret": "payments/provider"}}},
	{"names", []choice{{}, {"scopeSecret": "payments/scopes", "fingerprintSecret": "payments/fingerprints", "testKeys": "refuse"}}},
	{"origins", []choice{{}, {"corsOrigins": origins}}},
	{"quota", []choice{{}, {"quotaNewKeys": 0, "quotaActiveKeys": 0, "quotaLookUps": 0, "quotaWaits": 0}}},
	{"throttle", []choice{{}, {"apiThrottle": "off", "paymentThrottle": "off"}}},
	{"concurrency", []choice{{}, {"concurrency": "none"}}},
	{"alarms", []choice{{"alarmTopic": "none"}, {"alarmTopic": alarmTopic}}},
	{"insights", []choice{{}, {"insights": "false"}}},
	{"backup", []choice{{}, {"backup": "on"}, {"backup": "on", "backupCopy": copyVault}}},
	{"access log", []choice{{}, {"accessLogs": "off"}}},
	{"throughput", []choice{{}, {"warmThroughput": "20000/10000"}, {"maxThroughput": "30000/15000"}, {"provisioned": "100-1000"}}},
	{"customer keys", []choice{{}, {"customerKeys": "on"}}},
	{"trail", []choice{{}, {"trail": "people"}, {"trail": "all"}}},
	{"tags", []choice{{}, {"stage": "prod", "owner": "payments team"}}},
}

// imported are the contexts of a stack onto tables that are there, and what else is.
func imported(more map[string]string) choice {
	names := map[string]any{
		"idempotency": "Records", "outbox": "Messages", "payments": "Payments",
		"outboxStream": "arn:aws:dynamodb:eu-central-1:111122223333:table/Messages/stream/2026-11-21T09:00:00.000",
	}
	for name, value := range more {
		names[name] = value
	}
	return choice{"import": names, "lost": "nothing"}
}

func withEncryption(c choice) choice {
	c["encryption"] = "on"
	return c
}

// pair is two values of two dimensions, the first of them the one before.
type pair struct{ d, v, e, w int }

// refused are pairs that Read refuses: tables that are there keep their own capacity.
func (p pair) refused() bool {
	one, other := dimensions[p.d].choices[p.v], dimensions[p.e].choices[p.w]
	return one["import"] != nil && other["provisioned"] != nil
}

// refusedIn tells whether two of the values that are chosen in a row are refused together.
func refusedIn(row []int) bool {
	for d, v := range row {
		for e := d + 1; e < len(row); e++ {
			if v >= 0 && row[e] >= 0 && (pair{d, v, e, row[e]}).refused() {
				return true
			}
		}
	}
	return false
}

// combinations are rows of values, one of each dimension, such that each two values of two dimensions are in some row: a fault
// of a template is nearly always one of a value, or of two that meet. It is greedy and always the same.
func combinations() [][]int {
	open := map[pair]bool{}
	var order []pair
	for d := range dimensions {
		for e := d + 1; e < len(dimensions); e++ {
			for v := range dimensions[d].choices {
				for w := range dimensions[e].choices {
					if each := (pair{d, v, e, w}); !each.refused() {
						order, open[each] = append(order, each), true
					}
				}
			}
		}
	}
	var rows [][]int
	for _, each := range order {
		if open[each] {
			rows = append(rows, rowWith(each, open))
		}
	}
	return rows
}

// rowWith is a row with a pair that is still open, and with as many others as choosing from left to right finds. They are open
// no more.
func rowWith(first pair, open map[pair]bool) []int {
	row := slices.Repeat([]int{-1}, len(dimensions))
	row[first.d], row[first.e] = first.v, first.w
	for d := range dimensions {
		if row[d] >= 0 {
			continue
		}
		best, most := 0, -1
		for v := range dimensions[d].choices {
			row[d] = v
			if refusedIn(row) {
				continue
			}
			if count := len(openIn(row, open)); count > most {
				best, most = v, count
			}
		}
		row[d] = best
	}
	for _, done := range openIn(row, open) {
		delete(open, done)
	}
	return row
}

// openIn are the open pairs of a row whose values are chosen in part: -1 is no value yet.
func openIn(row []int, open map[pair]bool) (found []pair) {
	for d, v := range row {
		for e := d + 1; e < len(row); e++ {
			if each := (pair{d, v, e, row[e]}); open[each] {
				found = append(found, each)
			}
		}
	}
	return found
}

func TestCombinationsMeetInPairs(t *testing.T) {
	rows := combinations()
	readme, err := os.ReadFile("../README.md")
	if told := fmt.Sprintf("%d combinations", len(rows)); err != nil || !strings.Contains(string(readme), told) {
		t.Errorf("infra/README.md does not tell of %s (%v)", told, err)
	}
	for d := range dimensions {
		for e := d + 1; e < len(dimensions); e++ {
			for v := range dimensions[d].choices {
				for w := range dimensions[e].choices {
					meet := slices.ContainsFunc(rows, func(row []int) bool { return row[d] == v && row[e] == w })
					if meet == (pair{d, v, e, w}).refused() {
						t.Errorf("%s %d meets %s %d never, or though they are refused together", dimensions[d].name, v, dimensions[e].name, w)
					}
				}
			}
		}
	}
}

// templates are what both linters look at: the variants that go to AWS, and combinations. Those of emulators are apart.
func templates(t *testing.T) (aws, local lint.Templates) {
	t.Helper()
	aws, local = lint.Templates{}, lint.Templates{}
	for variant := range variants {
		if variants[variant]["local"] != nil {
			local[variant] = synthesize(t, variant).document
		} else {
			aws[variant] = synthesize(t, variant).document
		}
	}
	for name, has := range combined() {
		aws[name] = synthesizeOnce(t, name, has).document
	}
	return aws, local
}

// combined are the contexts of the combinations, by their names.
func combined() map[string]contexts {
	all := map[string]contexts{}
	for n, row := range combinations() {
		has := contexts{"account": "111122223333", "region": "eu-central-1"}
		for d, v := range row {
			maps.Copy(has, dimensions[d].choices[v])
		}
		all[fmt.Sprintf("combination-%02d", n)] = has
	}
	return all
}

// Every finding of cfn-lint and cdk-nag is accepted by its resource, with the reason, and nothing is accepted that they do not
// find. What emulators get is held against the schemas only: nothing of it is for AWS.
func TestTemplatesPassTheLinters(t *testing.T) {
	part, err := lint.ParsePart(os.Getenv(lint.PartVariable))
	if err != nil {
		t.Fatal(err)
	}
	aws, local := templates(t)
	report, err := lint.Check{AWS: aws, Local: local, Table: "testdata/linted.txt", Part: part, Update: *update}.Run(t.Context(), t.TempDir())
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range report.Wrong {
		t.Error(line)
	}
	t.Logf("%d templates of stacks on AWS, %d of local ones, of which the linters looked at %d; %d findings of cfn-lint and %d of cdk-nag are explained",
		len(aws), len(local), len(report.Looked), report.Linted, report.Nagged)
	readme, err := os.ReadFile("../README.md")
	pairs := len(combined())
	row := lint.Row(fmt.Sprintf("payments on AWS: %d combinations and %d variants", pairs, len(aws)-pairs), report.Linted, report.Nagged)
	if err != nil || !strings.Contains(string(readme), row) {
		t.Errorf("infra/README.md has no row %q (%v)", row, err)
	}
}
