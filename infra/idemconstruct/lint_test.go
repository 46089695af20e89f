package idemconstruct_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
	"github.com/idem-go/idem-aws/infra/spec"
	"github.com/idem-go/idem-aws/internal/localtool"
)

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
	linted, err := lint.CfnLint(t.Context(), t.TempDir(), templates)
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	nagged, err := lint.CDKNag(t.Context(), t.TempDir(), templates)
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	open, idle := lint.Judge(templates, slices.Concat(linted, nagged))
	said := map[string]bool{}
	for _, f := range open {
		said[fmt.Sprintf("%s: %s: %.120s", f.Rule, f.Resource, f.Text)] = true
	}
	for line := range said {
		t.Error(line)
	}
	for _, each := range idle {
		t.Errorf("nothing needs the explanation of %s any more", each)
	}
	t.Logf("%d templates; %d findings of cfn-lint and %d of cdk-nag are explained", len(templates), len(linted), len(nagged))
	readme, err := os.ReadFile("../README.md")
	row := lint.Row(fmt.Sprintf("`NewApplication`: %d", len(templates)), len(linted), len(nagged))
	if err != nil || !strings.Contains(string(readme), row) {
		t.Errorf("infra/README.md has no row %q (%v)", row, err)
	}
}
