package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
)

// planned are the contexts of a golden plan of make capacity: those of tables on demand, and those of provisioned ones.
func planned(t *testing.T, name string) (onDemand, provisioned map[string]any, text string) {
	t.Helper()
	plan, err := os.ReadFile("../../bench/capacity/testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	after := func(head string) map[string]any {
		contexts := map[string]any{}
		_, lines, found := strings.Cut(string(plan), head+"\n")
		if !found {
			return contexts
		}
		lines, _, _ = strings.Cut(lines, "\n\n")
		if err := json.Unmarshal([]byte("{"+strings.ReplaceAll(strings.TrimSpace(lines), "\n", ",")+"}"), &contexts); err != nil {
			t.Fatalf("%v: %s", err, lines)
		}
		return contexts
	}
	onDemand, provisioned = after("raise what can be raised:"), after("With provisioned tables, instead of the warmThroughput below:")
	return onDemand, provisioned, string(plan)
}

// stageOf is a production stage with the contexts of a plan.
func stageOf(name string, contexts ...map[string]any) map[string]any {
	all := map[string]any{"outbox": "sqs"}
	if strings.HasSuffix(name, "streams") {
		all["outbox"] = "streams"
	}
	for _, more := range contexts {
		maps.Copy(all, more)
	}
	return production(all)
}

// The contexts that make capacity prints for a rate are those of a stack that can be deployed: none is refused, also not together.
func TestTheContextsOfThePlanAreTaken(t *testing.T) {
	for _, name := range []string{"100", "1000", "10000", "10000-streams"} {
		t.Run(name, func(t *testing.T) {
			onDemand, _, _ := planned(t, name)
			config, err := read(stageOf(name, onDemand), nil)
			if err != nil {
				t.Fatal(err)
			}
			if name == "10000" && (config.WorkerBatch != 20 || config.WorkerConcurrency != config.Concurrency.Worker-10 || config.DriftParts != 150 || len(onDemand) < 10) {
				t.Errorf("%+v", config)
			}
		})
	}
}

// So are those for provisioned tables. The plan's units are the stack's own, to the last one: with a quota that is one smaller, the
// stack refuses the range, and names the sums that the plan has.
func TestTheProvisionedContextsOfThePlanAreTaken(t *testing.T) {
	for _, name := range []string{"100", "1000", "10000", "10000-streams"} {
		t.Run(name, func(t *testing.T) {
			onDemand, provisioned, text := planned(t, name)
			delete(onDemand, "warmThroughput")
			if provisioned["provisioned"] == nil {
				t.Fatalf("no range in %v", provisioned)
			}
			if _, err := read(stageOf(name, onDemand, provisioned), nil); err != nil {
				t.Fatal(err)
			}
			provisioned["accountUnits"] = "1/1"
			_, err := read(stageOf(name, onDemand, provisioned), nil)
			if err == nil {
				t.Fatal("one unit was enough")
			}
			writes, reads := needed(t, text, "DynamoDB account provisioned write units"), needed(t, text, "DynamoDB account provisioned read units")
			if want := fmt.Sprintf(": %d/%d in all", writes, reads); !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// needed is what a plan needs of a quota.
func needed(t *testing.T, plan, quota string) int {
	t.Helper()
	_, row, _ := strings.Cut(plan, "\n  "+quota)
	row, _, _ = strings.Cut(row, "\n")
	cells := strings.Fields(row)
	if len(cells) < 2 {
		t.Fatalf("no quota %s in\n%s", quota, plan)
	}
	n, err := strconv.Atoi(strings.ReplaceAll(cells[1], ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
