//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/outside"
	"github.com/idem-go/idem-aws/localstack/docsite"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// The commands of step 3 of docs/start/ten-minutes.md, as a reader runs them, in a copy of the module: they build the functions,
// deploy them, send an order twice and remove the stack.
func TestStartPageDeploysAndReplays(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	must(t, err)
	const module = "docs/examples/start/lambda"
	copied := t.TempDir()
	_, err = outside.Copy(t.Context(), root, module, copied)
	must(t, err)
	documents, err := docsite.Documents(t.Context(), root)
	must(t, err)
	// What the page leaves out must not reach AWS.
	environment, err := stack.LocalEnvironment(os.Environ(), deployed.variables["AWS_ENDPOINT_URL"])
	must(t, err)
	in := docsite.Shell{
		Directory: root, Environment: environment,
		Replace: strings.NewReplacer(".local/run.env", os.Getenv("IDEM_E2E_ENV"), "cd "+module, "cd "+copied),
	}
	ran := false
	for _, d := range documents {
		if d.Name != "docs/start/ten-minutes.md" {
			continue
		}
		sessions, err := d.Sessions()
		must(t, err)
		for _, s := range sessions {
			if s.Name == "lambda" {
				ran = true
				must(t, s.Run(context.WithoutCancel(t.Context()), in))
			}
		}
	}
	if !ran {
		t.Error("the page has no session lambda")
	}
}
