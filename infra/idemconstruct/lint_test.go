package idemconstruct_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
	"github.com/idem-go/idem-aws/infra/spec"
	"github.com/idem-go/idem-aws/internal/localtool"
)

var update = flag.Bool("update", false, "have the linters look at every template, and write the table of what they found")

// Every finding of cfn-lint and cdk-nag about an application is accepted by its resource, with the reason, and nothing is accepted
// that they do not find.
func TestApplicationPassesTheLinters(t *testing.T) {
	orders := schema.Table{Key: "id"}
	templates := lint.Templates{}
	for name, props := range map[string]idemconstruct.ApplicationProps{
		"defaults":    {},
		"operators":   {Operators: true, Environment: map[string]string{"WAREHOUSE_URL": "https://warehouse.example"}},
		"relay":       {Relay: true, Inline: true, WorkerConcurrency: 20, Reserved: map[string]int{"worker": 40}},
		"provisioned": {Shards: 40, Tables: idemconstruct.TablesProps{Provisioned: idemconstruct.Provisioned{Operations: spec.Range{Min: 10, Max: 100}}}},
		"bounded":     {Tables: idemconstruct.TablesProps{Max: idemconstruct.Throughput{Read: 1000, Write: 1000}, Warm: idemconstruct.Throughput{Read: 12000, Write: 4000}}},
	} {
		templates[name] = synthesizeWith(t, props, func(a *idemconstruct.Application) { a.NewTable("Orders", orders, "ORDERS_TABLE") }).document
	}
	part, err := lint.ParsePart(os.Getenv(lint.PartVariable))
	if err != nil {
		t.Fatal(err)
	}
	report, err := lint.Check{AWS: templates, Table: "testdata/linted.txt", Part: part, Update: *update}.Run(t.Context(), t.TempDir())
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range report.Wrong {
		t.Error(line)
	}
	t.Logf("%d templates, of which the linters looked at %d; %d findings of cfn-lint and %d of cdk-nag are explained",
		len(templates), len(report.Looked), report.Linted, report.Nagged)
	readme, err := os.ReadFile("../README.md")
	row := lint.Row(fmt.Sprintf("`NewApplication`: %d", len(templates)), report.Linted, report.Nagged)
	if err != nil || !strings.Contains(string(readme), row) {
		t.Errorf("infra/README.md has no row %q (%v)", row, err)
	}
}
