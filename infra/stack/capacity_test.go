package stack_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The contexts that make capacity RATE=10000 prints are those of a stack that can be deployed: none is refused, also not together.
func TestTheContextsOfThePlanAreTaken(t *testing.T) {
	plan, err := os.ReadFile("../../bench/capacity/testdata/10000.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(plan), "raise what can be raised:\n")
	lines, _, found := strings.Cut(lines, "\n\n")
	if !found {
		t.Fatal("the plan has no contexts")
	}
	contexts := map[string]any{"outbox": "sqs"}
	if err := json.Unmarshal([]byte("{"+strings.ReplaceAll(lines, "\n", ",")+"}"), &contexts); err != nil {
		t.Fatalf("%v: %s", err, lines)
	}
	config, err := read(production(contexts), nil)
	if err != nil {
		t.Fatal(err)
	}
	if config.WorkerBatch != 20 || config.WorkerConcurrency != config.Concurrency.Worker-10 || config.DriftParts != 150 || len(contexts) < 10 {
		t.Errorf("%+v", config)
	}
}
