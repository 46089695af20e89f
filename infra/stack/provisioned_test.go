package stack_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// onAWS are contexts of a stack on AWS, with others.
func onAWS(more map[string]any) map[string]any {
	context := map[string]any{"account": "111122223333", "region": "eu-central-1", "alarmTopic": "none"}
	maps.Copy(context, more)
	return context
}

// capacity is what auto scaling may do: "400 to 4000 at 70 %, 4000 at first".
func capacity(t *testing.T, settings any, kind string) string {
	t.Helper()
	outer, _ := settings.(map[string]any)
	scaling, ok := outer[kind+"CapacityAutoScalingSettings"].(map[string]any)
	if !ok {
		t.Fatalf("no auto scaling: %v", settings)
	}
	target := scaling["TargetTrackingScalingPolicyConfiguration"].(map[string]any)["TargetValue"]
	return fmt.Sprintf("%v to %v at %v %%, %v at first", scaling["MinCapacity"], scaling["MaxCapacity"], target, scaling["SeedCapacity"])
}

// Tables of money and their indexes have capacity for the payments that were asked for, scaled by DynamoDB; the others are on demand.
// Alarms on throttles stay. Four pieces of the drift job read 400 rows a second each, and a read capacity is never below what they take.
func TestProvisionedTables(t *testing.T) {
	template := synthesizeContext(t, onAWS(map[string]any{"provisioned": "70-700"}), buildFolder(t))
	per := func(units int) string {
		return fmt.Sprintf("%d to %d at 70 %%, %d at first", 100*units, 1000*units, 1000*units)
	}
	for name, want := range map[string]struct{ writes, reads, indexWrites, indexReads int }{
		"TablesIdempotency": {4, 6, 1, 1}, "TablesOutbox": {5, 4, 2, 1}, "Payments": {4, 4, 1, 1},
	} {
		table := template.only(t, "AWS::DynamoDB::GlobalTable", name).Properties
		replica := table["Replicas"].([]any)[0].(map[string]any)
		index := table["GlobalSecondaryIndexes"].([]any)[0].(map[string]any)
		replicaIndex := replica["GlobalSecondaryIndexes"].([]any)[0].(map[string]any)
		for what, pair := range map[string][2]string{
			"writes":              {capacity(t, table["WriteProvisionedThroughputSettings"], "Write"), per(want.writes)},
			"reads":               {capacity(t, replica["ReadProvisionedThroughputSettings"], "Read"), "2286" + strings.TrimPrefix(per(want.reads), fmt.Sprint(100*want.reads))},
			"writes of the index": {capacity(t, index["WriteProvisionedThroughputSettings"], "Write"), per(want.indexWrites)},
			"reads of the index":  {capacity(t, replicaIndex["ReadProvisionedThroughputSettings"], "Read"), per(want.indexReads)},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s, %s: %s, want %s", name, what, pair[0], pair[1])
			}
		}
		if table["BillingMode"] != "PROVISIONED" || table["WriteOnDemandThroughputSettings"] != nil {
			t.Errorf("%s: %v", name, table["BillingMode"])
		}
	}
	for _, name := range []string{"ApiKeys", "AuditTable", "Quota"} {
		if table := template.only(t, "AWS::DynamoDB::GlobalTable", name).Properties; table["BillingMode"] != "PAY_PER_REQUEST" {
			t.Errorf("%s: %v", name, table["BillingMode"])
		}
	}
	for _, name := range []string{"Idempotency", "Outbox", "Payments"} {
		template.only(t, "AWS::CloudWatch::Alarm", "AlarmsTableThrottled"+name)
	}
	template = synthesizeContext(t, onAWS(map[string]any{"provisioned": "70-700", "provisionedTarget": 50}), buildFolder(t))
	outbox := template.only(t, "AWS::DynamoDB::GlobalTable", "TablesOutbox").Properties
	template = synthesizeContext(t, onAWS(map[string]any{"provisioned": "70-700", "driftParts": 20}), buildFolder(t))
	replica := template.only(t, "AWS::DynamoDB::GlobalTable", "Payments").Properties["Replicas"].([]any)[0].(map[string]any)
	if got := capacity(t, replica["ReadProvisionedThroughputSettings"], "Read"); got != "11429 to 11429 at 70 %, 11429 at first" {
		t.Errorf("20 pieces: %s", got)
	}
	if got := capacity(t, outbox["WriteProvisionedThroughputSettings"], "Write"); got != "700 to 7000 at 50 %, 7000 at first" {
		t.Errorf("half used: %s", got)
	}
}

// The writes of a payment are those that bench/cost counts: one that is accepted, and one whose message is delivered.
func TestProvisionedWritesAreThoseOfBenchCost(t *testing.T) {
	text, err := os.ReadFile("../../bench/cost/testdata/dynoxide.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, group, found := strings.Cut(string(text), "\ndeferred, 300 B of JSON")
	if !found {
		t.Fatal("no deferred operations")
	}
	group, _, _ = strings.Cut(group, "\n\n")
	sums, rows := [4]int{}, 0
	for line := range strings.Lines(group) {
		cells := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
		if cells[0] != "first" && cells[0] != "delivery, by queue" {
			continue
		}
		rows++
		for i := range sums {
			if cells[1+i] != "." {
				units, err := strconv.Atoi(cells[1+i])
				if err != nil {
					t.Fatal(err)
				}
				sums[i] += units
			}
		}
	}
	// Records, messages, the outbox's index, and the payment's row: those of TestProvisionedTables.
	if rows != 2 || sums != [4]int{4, 5, 2, 4} {
		t.Errorf("%d rows of bench/cost make %v", rows, sums)
	}
}

// What says two things about the same capacity is refused with the field, the value and the rule.
func TestProvisionedStandsAlone(t *testing.T) {
	for _, c := range []struct {
		context map[string]any
		want    string
	}{
		{map[string]any{"maxThroughput": "30000/15000"}, `maxThroughput="30000/15000" is refused; allowed: default, with provisioned`},
		{map[string]any{"warmThroughput": "12000/4000"}, `warmThroughput="12000/4000" is refused; allowed: 8572/7143 or more of each, with provisioned=100-1000`},
		{map[string]any{"warmThroughput": "12000/8000"}, ""},
		{imported(nil), `provisioned="100-1000" is refused; allowed: off, with import`},
		{map[string]any{"local": "true", "providerUrl": "http://127.0.0.1:1"}, `provisioned="100-1000" is refused; allowed: off, with local=true`},
	} {
		context := onAWS(c.context)
		context["provisioned"] = "100-1000"
		if context["providerUrl"] == nil {
			context["providerUrl"] = "https://provider.example"
		}
		_, err := read(context, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "is refused") != 1) {
			t.Errorf("%v: %v, want %s", c.context, err, c.want)
		}
	}
}

// What the tables could not grow to under the account's quotas is refused, with what each table and all of them take: auto scaling
// would deploy it.
func TestProvisionedFitsTheQuotas(t *testing.T) {
	for _, c := range []struct {
		context map[string]any
		want    string
	}{
		{map[string]any{"provisioned": "500-2000"}, ""},
		{map[string]any{"provisioned": "500-3294"}, ""},
		{map[string]any{"provisioned": "500-3295"}, `80025 in all" is refused; allowed: at most 40000 of a table and 80000 in all, which is accountUnits`},
		{map[string]any{"provisioned": "500-5000"}, `context provisioned="500-5000: write/read units at the most, with indexes: ` +
			`records 35715/50001, messages 50001/35715, payments 35715/35715: 121431/121431 in all" is refused`},
		{map[string]any{"provisioned": "500-5000", "accountUnits": "121431/50001"}, ""},
		{map[string]any{"provisioned": "500-5000", "accountUnits": "121430/50001"}, "at most 50001 of a table and 121430 in all"},
		{map[string]any{"provisioned": "500-5000", "accountUnits": "121431/50000"}, "at most 50000 of a table and 121431 in all"},
		{map[string]any{"provisioned": "500-2000", "provisionedTarget": 35}, "messages 40001/"},
		{map[string]any{"provisioned": "70-700", "driftParts": 60}, "payments 5000/35286: 17000/105858 in all"},
		{map[string]any{"provisioned": "500-2000", "accountUnits": "many"}, `accountUnits="many" is refused`},
		{map[string]any{"accountUnits": "80000/40000"}, `accountUnits="80000/40000" is refused; allowed: nothing, unless provisioned has a range`},
	} {
		c.context["providerUrl"] = "https://provider.example"
		_, err := read(onAWS(c.context), nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "is refused") != 1) {
			t.Errorf("%v: %v, want %s", c.context, err, c.want)
		}
	}
}
