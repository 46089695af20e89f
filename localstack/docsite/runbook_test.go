package docsite

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// recovery has the runbooks of which a stand-in of each command shows what becomes of them where one fails.
const recovery = "docs/recovery.md"

// blocksOf are the blocks of a session of a document.
func blocksOf(t *testing.T, document, session string) (blocks []string) {
	t.Helper()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents(t, root) {
		if d.Name != document {
			continue
		}
		sessions, err := d.Sessions()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sessions {
			for _, step := range s.steps {
				if s.Name == session {
					blocks = append(blocks, step.Text)
				}
			}
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no session %q", document, session)
	}
	return blocks
}

// typed runs a block as a reader's shell does, in each shell that is installed, in a folder of its own with these stand-ins and files. check
// looks at what is left there.
func typed(t *testing.T, block string, standIns, files map[string]string, check func(t *testing.T, folder, said string)) {
	t.Helper()
	for _, shell := range []string{"bash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%s is not installed: the block is not tried in it", shell)
			}
			folder, tools := t.TempDir(), t.TempDir()
			for name, text := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for name, script := range standIns {
				if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.CommandContext(t.Context(), shell, "-c", block)
			command.Dir, command.Env = folder, append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
			said, _ := command.CombinedOutput() // how the last command ended is what the reader does not look at
			check(t, folder, string(said))
		})
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// docs/recovery.md "Restored to a point in time": tables are restored only where the deployment that stops the stack has succeeded.
func TestNothingIsRestoredWhereTheStopHasFailed(t *testing.T) {
	t.Parallel()
	block := strings.Join(blocksOf(t, recovery, "restore"), "")
	for deploys, restores := range map[string]int{"exit 2": 0, "exit 0": 1} {
		t.Run(deploys, func(t *testing.T) {
			typed(t, block, map[string]string{"make": deploys, "idemctl": `echo "$*" >> calls`}, nil, func(t *testing.T, folder, said string) {
				if n := strings.Count(read(t, folder, "calls"), "tables restore"); n != restores {
					t.Errorf("restored %d times, want %d: %s", n, restores, said)
				}
			})
		})
	}
}

// docs/recovery.md "What is missing": where the log can't be asked, or has nothing, the file that says whose operations are stays as it was,
// with what a person has written into it.
func TestWhatIsToldStaysWhereTheLogCannotBeAsked(t *testing.T) {
	t.Parallel()
	block := strings.Join(blocksOf(t, recovery, "told"), "")
	before := map[string]string{"told": "before\n", "told.own": "own\n"}
	for name, c := range map[string]struct{ aws, told string }{
		"it answers":      {"echo line", "line\nown\n"},
		"it fails":        {"echo expired >&2; exit 254", "before\n"},
		"it fails midway": {"echo line; exit 254", "before\n"},
		"it has nothing":  {"exit 0", "before\n"},
	} {
		t.Run(name, func(t *testing.T) {
			typed(t, block, map[string]string{"aws": c.aws, "jq": `cat "$3"`}, before, func(t *testing.T, folder, said string) {
				if got := read(t, folder, "told"); got != c.told {
					t.Errorf("told %q, want %q", got, c.told)
				}
				if own := read(t, folder, "told.own"); own != "own\n" {
					t.Errorf("one's own lines: %q", own)
				}
				if written := strings.Contains(said, "told is written"); written != (name == "it answers") {
					t.Errorf("said to be written: %t\n%s", written, said)
				}
			})
		})
	}
}

// docs/recovery.md "Data keys for another Region": each export has a file of its own, because none replaces another's, and what is imported
// under another KMS key is the one that was wrapped under it.
func TestEachExportOfDataKeysHasAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	const idemctl = `case "$1 $2" in
"keys export") [ ! -e "$3" ] || { echo "$3: file exists" >&2; exit 2; }; echo "$*" > "$3" ;;
"keys import") cp "$3" imported ;;
esac`
	blocks := blocksOf(t, recovery, "keys")
	typed(t, strings.Join(blocks, ""), map[string]string{"idemctl": idemctl}, nil, func(t *testing.T, folder, said string) {
		if made, err := filepath.Glob(filepath.Join(folder, "keys-*.json")); err != nil || len(made) != 2 || said != "" {
			t.Errorf("files %q, %v: %s", made, err, said)
		}
		if imported := read(t, folder, "imported"); !strings.Contains(imported, " --under arn:aws:kms:eu-west-1:") {
			t.Errorf("imported is what was exported by %q", imported)
		}
	})
}

// docs/recovery.md: after a deployment its own variables are loaded, and nothing is changed by those of before, nor where it has failed.
func TestWhatFollowsADeploymentTakesItsVariables(t *testing.T) {
	t.Parallel()
	for _, session := range []string{"deployed again", "restored"} {
		block := strings.Join(blocksOf(t, recovery, session), "")
		for deploys, want := range map[string]struct {
			sweeps int
			tables string
		}{
			"mkdir -p .local; echo IDEMPOTENCY_TABLE=new > .local/prod.env": {1, "new"},
			"exit 2": {0, "old"},
		} {
			t.Run(session+" "+deploys, func(t *testing.T) {
				standIns := map[string]string{"make": deploys, "idemctl": `echo "$IDEMPOTENCY_TABLE: $*" >> calls`}
				typed(t, "export IDEMPOTENCY_TABLE=old\n"+block, standIns, nil, func(t *testing.T, folder, said string) {
					calls := read(t, folder, "calls")
					if n := strings.Count(calls, " sweep "); n != want.sweeps || !strings.Contains(lastLine(calls), " drift --from ") {
						t.Errorf("called: %s\n%s", calls, said)
					}
					if n := strings.Count(calls, want.tables+": "); n != want.sweeps+1 {
						t.Errorf("%d calls with the variables of %s: %s", n, want.tables, calls)
					}
				})
			})
		}
	}
}

// docs/recovery.md "What is missing": a line names the tenant of an operation also where its first attempt was answered 503. A line
// idempotency.store.error may name somebody who asked for another tenant's operation, so it is not among them.
func TestEachLineThatNamesATenantIsFetched(t *testing.T) {
	t.Parallel()
	const aws = `for name in idempotency.reserve.created idempotency.store.error idempotency.reserve.failed_retry; do
  case "$*" in *"$.msg = \"$name\""*) echo "$name" ;; esac
done`
	block := strings.Join(blocksOf(t, recovery, "told"), "")
	typed(t, block, map[string]string{"aws": aws, "jq": `cat "$3"`}, nil, func(t *testing.T, folder, said string) {
		if told := read(t, folder, "told"); told != "idempotency.reserve.created\nidempotency.reserve.failed_retry\n" {
			t.Errorf("told %q: %s", told, said)
		}
	})
}

// The blocks of a page that are for the folder of the checkout leave the reader's shell there, and each calls its tool where its file is.
func TestBlocksOfTheCheckoutStayThere(t *testing.T) {
	t.Parallel()
	const where = `echo "$(basename "$PWD") $(basename "$0") $*" >> "$OF/calls"`
	for document, want := range map[string]string{
		"docs/examples/README.md": "shoprpc npx @bufbuild/buf@1.75.0 generate\ncheckout go test ./docs/examples/...\n",
		"infra/README.md":         "infra go test ./stack ./idemconstruct -run TestGolden|Linters -update\n",
	} {
		t.Run(document, func(t *testing.T) {
			blocks := blocksOf(t, document, "of the checkout")
			files := map[string]string{"checkout/docs/examples/internal/shoprpc/buf.gen.yaml": "", "checkout/infra/go.mod": ""}
			twice := "export OF=$PWD; cd checkout\n" + strings.Join(slices.Concat(blocks, blocks), "")
			typed(t, twice, map[string]string{"npx": where, "go": where}, files, func(t *testing.T, folder, said string) {
				if calls := read(t, folder, "calls"); calls != want+want || said != "" {
					t.Errorf("called: %s\n%s", calls, said)
				}
			})
		})
	}
}

// docs/own-stack.md "SAM and Terraform": the binary that is deployed is one for Lambda, and is built before.
func TestABinaryIsBuiltBeforeItIsDeployed(t *testing.T) {
	t.Parallel()
	block := strings.Join(blocksOf(t, "docs/own-stack.md", "sam"), "")
	standIns := map[string]string{
		"go":  `[ "$GOOS $GOARCH $CGO_ENABLED" = "linux arm64 0" ] && [ "$*" = "build -tags lambda.norpc -o build/bootstrap ./function" ] && mkdir build && echo > build/bootstrap`,
		"sam": `cp build/bootstrap deployed && echo "$*" > deployed`,
	}
	typed(t, block, standIns, nil, func(t *testing.T, folder, said string) {
		if deployed := read(t, folder, "deployed"); deployed != "deploy --guided --capabilities CAPABILITY_IAM\n" {
			t.Errorf("deployed by %q: %s", deployed, said)
		}
	})
	standIns["go"], standIns["sam"] = "exit 1", "echo > deployed" // the binary of before is there
	typed(t, block, standIns, nil, func(t *testing.T, folder, said string) {
		if read(t, folder, "deployed") != "" {
			t.Errorf("deployed although nothing was built: %s", said)
		}
	})
}
