//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// documentSeed names the variable by which a run of schemathesis is made again.
const documentSeed = "IDEM_E2E_SEED"

// checkedWithin bounds one run of schemathesis, which has about 200 requests; it ends with them, in a minute.
const checkedWithin = 5 * time.Minute

// TestAPIKeepsToItsDocument lets schemathesis look for answers that functions/api/openapi.yaml does not have: a status, a
// header, a media type or a body. What it sends is the document's examples, the bounds of its schemas from both sides,
// requests at random, and chains of requests along its links; openapi/hooks.py leads them past the forms.
func TestAPIKeepsToItsDocument(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	must(t, err)
	tool := emulator.SchemathesisTool()
	must(t, tool.Require(root))
	config := filepath.Join(root, "localstack", "e2e", "openapi")
	environment := append(os.Environ(),
		"TENANT_A_TOKEN="+deployed.tenantA.token, "SCHEMATHESIS_HOOKS=hooks", "PYTHONPATH="+config, "PYTHONDONTWRITEBYTECODE=1",
		"ACCOUNT_FROM="+open(t, "openapi_from", 100_000_000), "ACCOUNT_TO="+open(t, "openapi_to", 100_000_000),
	)
	seed := cmp.Or(os.Getenv(documentSeed), strconv.Itoa(rand.IntN(1_000_000)))
	// One process for each part: threads of one process meet a fault of CPython's parser (gh-106905).
	for name, part := range map[string][]string{
		"payments":  {"--phases", "examples,coverage", "--include-tag", "payments"},
		"others":    {"--phases", "examples,coverage", "--exclude-tag", "payments"},
		"at random": {"--phases", "fuzzing,stateful"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), checkedWithin)
			defer cancel()
			arguments := append([]string{
				"--config-file", filepath.Join(config, "schemathesis.toml"), "run", filepath.Join(root, "functions", "api", "openapi.yaml"),
				"--url", deployed.tenantA.url, "--seed", seed,
			}, part...)
			command := exec.CommandContext(ctx, filepath.Join(tool.Directory(root), "venv", "bin", "schemathesis"), arguments...)
			command.Dir, command.Env = t.TempDir(), environment
			output, err := command.CombinedOutput()
			t.Logf("%s=%s\n%s", documentSeed, seed, output)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
