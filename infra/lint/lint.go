// Package lint holds synthesized CloudFormation templates against cfn-lint and cdk-nag (the rules of AWS Solutions and of
// Serverless), and judges what they find. The package belongs to this repository's tools and has no compatibility promise.
//
// A finding is accepted where its resource says why, in the resource's Metadata: see [Accept]. The tools are told of none of
// that, so that an explanation that nothing needs any more is found too.
package lint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	_ "embed" // nag.cjs

	"github.com/idem-go/idem-aws/internal/localtool"
)

// Finding is what a rule has against a resource.
type Finding struct {
	// Template is the path of the template.
	Template string `json:"template"`
	// Rule is the rule's id: "W3005" of cfn-lint, "AwsSolutions-APIG1" of cdk-nag. Logical names in it have no hash.
	Rule string `json:"rule"`
	// Resource is the resource's logical name; empty where the finding is not about a resource.
	Resource string `json:"resource"`
	// Text is the tool's explanation.
	Text string `json:"text"`
}

// String is one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", filepath.Base(f.Template), f.Resource, f.Rule, strings.TrimSpace(f.Text))
}

// Templates are synthesized templates by a name of the caller's.
type Templates map[string]map[string]any

// write writes each template without the explanations of its resources into folder, and returns the paths.
func (t Templates) write(folder string) ([]string, error) {
	var paths []string
	for name, template := range t {
		text, err := json.Marshal(unexplained(template))
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, name+".json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// unexplained is a template whose resources have no Metadata.
func unexplained(template map[string]any) map[string]any {
	bare := map[string]any{}
	for section, value := range template {
		bare[section] = value
	}
	resources := map[string]any{}
	for name, value := range template["Resources"].(map[string]any) {
		resource := map[string]any{}
		for field, value := range value.(map[string]any) {
			if field != "Metadata" {
				resource[field] = value
			}
		}
		resources[name] = resource
	}
	bare["Resources"] = resources
	return bare
}

// cfnLintFound is set in the exit code of cfn-lint where it found something: 2 errors, 4 warnings, 8 information.
const cfnLintFound = 2 | 4 | 8

// CfnLint returns every finding of cfn-lint: it compares a template with the schemas of its resources, and with what the services
// are known to refuse. Folder is an empty one for the templates. The error is a *localtool.NotInstalledError, or says why
// the tool did not run; findings are no error.
func CfnLint(ctx context.Context, folder string, templates Templates) ([]Finding, error) {
	tool, err := localtool.CfnLintTool.Find()
	if err != nil {
		return nil, err
	}
	paths, err := templates.write(folder)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(tool, "venv", "bin", "cfn-lint"), append([]string{"--format", "json", "--"}, paths...)...)
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode()&^cfnLintFound == 0 {
		err = nil
	}
	if err != nil {
		return nil, failed("cfn-lint", err)
	}
	var matches []struct {
		Filename string
		Message  string
		Rule     struct{ ID string }
		Location struct{ Path []any }
	}
	if err := json.Unmarshal(out, &matches); err != nil {
		return nil, fmt.Errorf("cfn-lint: %w: %s", err, out)
	}
	findings := make([]Finding, len(matches))
	for i, match := range matches {
		findings[i] = Finding{Template: match.Filename, Rule: match.Rule.ID, Text: match.Message}
		if path := match.Location.Path; len(path) > 1 && path[0] == "Resources" {
			findings[i].Resource = fmt.Sprint(path[1])
		}
	}
	return findings, nil
}

//go:embed nag.cjs
var nagProgram []byte

// CDKNag is CfnLint for cdk-nag, whose rules are about security and operation.
func CDKNag(ctx context.Context, folder string, templates Templates) ([]Finding, error) {
	tool, err := localtool.CDKNagTool.Find()
	if err != nil {
		return nil, err
	}
	paths, err := templates.write(folder)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(folder, "nag.cjs")
	if err := os.WriteFile(program, nagProgram, 0o600); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "node", append([]string{program, tool}, paths...)...).Output()
	if err != nil {
		return nil, failed("cdk-nag", err)
	}
	var findings []Finding
	if err := json.Unmarshal(out, &findings); err != nil {
		return nil, fmt.Errorf("cdk-nag: %w: %s", err, out)
	}
	for i := range findings {
		findings[i].Rule = withoutHashes(findings[i].Rule)
	}
	return findings, nil
}

var hashed = regexp.MustCompile(`<([A-Za-z0-9]+?)[0-9A-F]{8}(\.[A-Za-z.]+)?>`)

// withoutHashes takes what CDK appends to a construct's path out of the logical names of a rule's id, which stand in angle
// brackets, so that an explanation can be written in code.
func withoutHashes(rule string) string { return hashed.ReplaceAllString(rule, "<$1$2>") }

func failed(tool string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%s: %w: %s", tool, err, exit.Stderr)
	}
	return fmt.Errorf("%s: %w", tool, err)
}
