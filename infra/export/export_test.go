package export_test

import (
	"bytes"
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
