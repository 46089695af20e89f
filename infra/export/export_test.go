package export_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/idem-go/idem-aws/infra/export"
	"github.com/idem-go/idem-aws/infra/lint"
	"github.com/idem-go/idem-aws/internal/localtool"
)

var update = flag.Bool("update", false, "rewrite the files from the present schema")

// The files are what the schema says now.
func TestFilesAreOfThisSchema(t *testing.T) {
	for path, write := range map[string]func() ([]byte, error){"../sam/template.yaml": export.SAM, "../terraform/main.tf.json": export.Terraform} {
		want, err := write()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not of this schema (%v): go generate ./export", path, err)
		}
	}
}

// No number is written as 1.2096e+06: tools that copy the template, as AWS SAM does, read a float of it and write 1209600.0, which SQS
// refuses as a retention.
func TestWholeNumbersOfTheSAMTemplateAreWrittenInFull(t *testing.T) {
	text, err := os.ReadFile("../sam/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	noExponents(t, &document)
}

func noExponents(t *testing.T, n *yaml.Node) {
	if n.Tag == "!!float" && strings.ContainsAny(n.Value, "eE") {
		t.Errorf("line %d: %s", n.Line, n.Value)
	}
	for _, child := range n.Content {
		noExponents(t, child)
	}
}

// What docs/own-stack.md adds to the template refers to resources that the template, or the page, has.
func TestThePageRefersToWhatTheSAMTemplateHas(t *testing.T) {
	page, err := os.ReadFile("../../docs/own-stack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```")
	var added struct {
		Resources map[string]any `yaml:"Resources"`
	}
	var tree yaml.Node
	if err := errors.Join(yaml.Unmarshal([]byte(text), &added), yaml.Unmarshal([]byte(text), &tree)); err != nil || !found || !closed {
		t.Fatal(err)
	}
	resources := samDocument(t)["Resources"].(map[string]any)
	if resources["ApiFunction"] == nil || added.Resources["ApiFunction"] == nil {
		t.Error("the page adds no gateway to the API's function")
	}
	for _, name := range references(&tree) {
		if resources[name] == nil && added.Resources[name] == nil {
			t.Errorf("%s is in neither", name)
		}
	}
}

// references are the resources that !Ref and !GetAtt name.
func references(n *yaml.Node) (names []string) {
	if n.Tag == "!Ref" || n.Tag == "!GetAtt" {
		name, _, _ := strings.Cut(n.Value, ".")
		names = append(names, name)
	}
	for _, child := range n.Content {
		names = append(names, references(child)...)
	}
	return names
}

// cfn-lint, which expands what is SAM's own, finds nothing in the template.
func TestSAMTemplatePassesItsLinter(t *testing.T) {
	findings, err := lint.CfnLint(t.Context(), t.TempDir(), lint.Templates{"sam": samDocument(t)})
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		t.Error(finding)
	}
}

// samDocument is the file as it is.
func samDocument(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../sam/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return document
}
