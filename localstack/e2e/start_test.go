//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
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
	for _, s := range sessionsOf(t, root, docsite.OnStack) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			runSession(t, root, s, "cd "+module, "cd "+copied)
		})
	}
}

// Those that tell the provider to fail, before any other test's payments are on their way.
func TestDocumentsHaveCommandsThatWorkOnAStackAlone(t *testing.T) {
	root, err := filepath.Abs("../..")
	must(t, err)
	t.Cleanup(func() { must(t, layOutFaults(context.WithoutCancel(t.Context()))) })
	for _, s := range sessionsOf(t, root, docsite.Alone) {
		t.Run(s.Name, func(t *testing.T) { runSession(t, root, s) })
	}
}

// sessionsOf are the sessions of all documents that have these names: each name is there once.
func sessionsOf(t *testing.T, root string, names []string) (all []*docsite.Session) {
	t.Helper()
	documents, err := docsite.Documents(t.Context(), root)
	must(t, err)
	var found []string
	for _, d := range documents {
		sessions, err := d.Sessions()
		must(t, err)
		for _, s := range sessions {
			if slices.Contains(names, s.Name) {
				all, found = append(all, s), append(found, s.Name)
			}
		}
	}
	if want := slices.Sorted(slices.Values(names)); !slices.Equal(slices.Sorted(slices.Values(found)), want) {
		t.Fatalf("the documents have the sessions %q, want %q", found, want)
	}
	return all
}

// runSession runs a session on the deployed stack. What the page leaves out must not reach AWS.
func runSession(t *testing.T, root string, s *docsite.Session, replace ...string) {
	t.Helper()
	environment, err := stack.LocalEnvironment(os.Environ(), deployed.variables["AWS_ENDPOINT_URL"])
	must(t, err)
	bin := filepath.Join(t.TempDir(), "bin")
	in := docsite.Shell{
		Directory: root, Environment: environment,
		Replace: strings.NewReplacer(append(replace, ".local/run.env", os.Getenv("IDEM_E2E_ENV"), "$PWD/.local/bin", bin, ".local/bin", bin)...),
	}
	err = s.Run(context.WithoutCancel(t.Context()), in)
	if s.Name == conformSession && foundNoStoreIn(err) {
		t.Logf("once more: %v", err)
		err = s.Run(context.WithoutCancel(t.Context()), in)
	}
	must(t, err)
}

// conformSession is the one whose command asks what an emulator that stalls cannot answer.
const conformSession = "conform"

// sawNoStore is what idemctl conform prints below its table of an answer without a store, and of the gateway's where no API key could be read.
var sawNoStore = regexp.MustCompile(`(?m)^[a-z_]+: .*(status 503,|503 application/problem\+json|Internal Server Error)`)

// foundNoStoreIn says that the last command of a session has found an answer that is not the contract's, so that its exit code is 1, and that
// there was no store for one.
func foundNoStoreIn(err error) bool {
	var failed *docsite.BlockError
	return errors.As(err, &failed) && strings.HasPrefix(failed.Why, "the commands failed: exit status 1\n") && sawNoStore.MatchString(failed.Why)
}
