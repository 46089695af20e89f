//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/outside"
	"github.com/idem-go/idem-aws/localstack/docsite"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// The commands of the documents that need a stack, as a reader runs them. Those of docs/start/ten-minutes.md run in a copy of
// their module: they build functions, deploy them, send an order twice and remove the stack.
func TestDocumentsHaveCommandsThatWorkOnAStack(t *testing.T) {
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
	var ran []string
	for _, d := range documents {
		sessions, err := d.Sessions()
		must(t, err)
		for _, s := range sessions {
			if !slices.Contains(docsite.OnStack, s.Name) {
				continue
			}
			ran = append(ran, s.Name)
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				bin := filepath.Join(t.TempDir(), "bin")
				must(t, s.Run(context.WithoutCancel(t.Context()), docsite.Shell{
					Directory: root, Environment: environment,
					Replace: strings.NewReplacer(".local/run.env", os.Getenv("IDEM_E2E_ENV"), "cd "+module, "cd "+copied, "$PWD/.local/bin", bin, ".local/bin", bin),
				}))
			})
		}
	}
	if want := slices.Sorted(slices.Values(docsite.OnStack)); !slices.Equal(slices.Sorted(slices.Values(ran)), want) {
		t.Errorf("the documents have the sessions %q, want %q", ran, want)
	}
}
