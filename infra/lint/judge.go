package lint

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// metadata is where a resource says which findings it accepts: {"rule": "reason"}.
const metadata = "idem:accepted-findings"

// Accept writes into a resource's Metadata, for each rule by its id, why what the rule finds there is right. The construct is
// a resource, or one with a resource as its default child. Reasons that were given before stay. It panics where a reason is
// empty.
func Accept(construct constructs.IConstruct, reasons map[string]string) {
	resource, ok := construct.(awscdk.CfnResource)
	if !ok {
		resource = construct.Node().DefaultChild().(awscdk.CfnResource)
	}
	all := map[string]any{}
	if before, ok := resource.GetMetadata(jsii.String(metadata)).(map[string]any); ok {
		maps.Copy(all, before)
	}
	for rule, reason := range reasons {
		if strings.TrimSpace(reason) == "" {
			panic("lint: no reason for " + rule + " of " + *construct.Node().Path())
		}
		all[rule] = reason
	}
	resource.AddMetadata(jsii.String(metadata), all)
}

// Judge returns the findings that no resource accepts, and the explanations, as "rule of resource", that no finding of any
// template needs.
func Judge(templates Templates, findings []Finding) (open []Finding, idle []string) {
	used := map[string]bool{}
	for name, template := range templates {
		for resource, value := range template["Resources"].(map[string]any) {
			for rule := range accepted(value) {
				used[explanation(rule, resource)] = used[explanation(rule, resource)] || slices.ContainsFunc(findings, func(f Finding) bool {
					return nameOf(f) == name && f.Resource == resource && f.Rule == rule
				})
			}
		}
	}
	for _, finding := range findings {
		resources := templates[nameOf(finding)]["Resources"].(map[string]any)
		if _, ok := accepted(resources[finding.Resource])[finding.Rule]; !ok {
			open = append(open, finding)
		}
	}
	for each, needed := range used {
		if !needed {
			idle = append(idle, each)
		}
	}
	slices.Sort(idle)
	return open, idle
}

func nameOf(f Finding) string { return strings.TrimSuffix(filepath.Base(f.Template), ".json") }

func explanation(rule, resource string) string { return fmt.Sprintf("%s of %s", rule, resource) }

// accepted are the rules that a resource accepts findings of.
func accepted(resource any) map[string]any {
	object, _ := resource.(map[string]any)
	described, _ := object["Metadata"].(map[string]any)
	rules, _ := described[metadata].(map[string]any)
	return rules
}

// Row is how a document counts findings of both tools that are explained, in a table of Markdown.
func Row(of string, linted, nagged int) string {
	return fmt.Sprintf("| %s | %s | %s | 0 |", of, thousands(linted), thousands(nagged))
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
