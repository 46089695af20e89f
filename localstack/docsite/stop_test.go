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

// ofStandIn are the sessions whose commands, such as aws, are stand-ins. Tests of their own run them, in this file and in runbook_test.go.
var ofStandIn = []string{"stop", "keys", "deployed again", "restore", "restored", "told", "runbook", "of the checkout", "sam"}

// standIn answers as the AWS CLI does of a stack of two functions, one of which has a mapping. It notes each call, and fails at the one
// that begins with FAILS, as it does where credentials have expired.
const standIn = `#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  "$FAILS"*) echo "An error occurred (ExpiredToken)" >&2; exit 254 ;;
  "cloudformation list-stack-resources "*) printf '%s' "$FUNCTIONS" ;;
  "lambda get-function-concurrency "*) echo 0 ;;
  "lambda list-event-source-mappings --function-name shop-Worker-3C4D "*State*) printf '5e6f7a8b-0000-4000-8000-000000000000\tDisabled\n' ;;
  "lambda list-event-source-mappings --function-name shop-Worker-3C4D "*) echo 5e6f7a8b-0000-4000-8000-000000000000 ;;
esac
`

// stopping is a shell's environment in which aws is the stand-in, and the file that has its calls.
func stopping(t *testing.T, fails, functions string) (environment []string, calls string) {
	t.Helper()
	folder := t.TempDir()
	calls = filepath.Join(folder, "calls")
	if err := os.WriteFile(filepath.Join(folder, "aws"), []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "CALLS=" + calls, "FAILS=" + fails, "FUNCTIONS=" + functions}, calls
}

const twoFunctions = "shop-Orders-1A2B\tshop-Worker-3C4D\n"

// stopSession is what docs/recovery.md has a reader type.
func stopSession(t *testing.T) *Session {
	t.Helper()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents(t, root) {
		if d.Name != "docs/recovery.md" {
			continue
		}
		sessions, err := d.Sessions()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(sessions, func(s *Session) bool { return s.Name == "stop" })
		if i >= 0 && len(sessions[i].steps) == 3 {
			return sessions[i]
		}
	}
	t.Fatal("docs/recovery.md has no session of three blocks that stops a service")
	return nil
}

// docs/recovery.md "Stop a service of your own": the blocks stop and start every function and mapping, and show what the page shows.
func TestAServiceIsStoppedAndStartedAgain(t *testing.T) {
	t.Parallel()
	environment, calls := stopping(t, "nothing", twoFunctions)
	if err := stopSession(t).Run(t.Context(), Shell{Directory: t.TempDir(), Environment: environment, Replace: strings.NewReplacer()}); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"lambda put-function-concurrency --function-name shop-Orders-1A2B --reserved-concurrent-executions 0",
		"lambda put-function-concurrency --function-name shop-Worker-3C4D --reserved-concurrent-executions 0",
		"lambda update-event-source-mapping --uuid 5e6f7a8b-0000-4000-8000-000000000000 --no-enabled",
		"lambda delete-function-concurrency --function-name shop-Orders-1A2B",
		"lambda delete-function-concurrency --function-name shop-Worker-3C4D",
		"lambda update-event-source-mapping --uuid 5e6f7a8b-0000-4000-8000-000000000000 --enabled",
	} {
		if n := strings.Count("\n"+string(made), "\n"+want+"\n"); n != 1 {
			t.Errorf("%d calls of %s", n, want)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// docs/recovery.md "Stop a service of your own": "all are stopped" is said only where every command has succeeded. The block is typed into
// a reader's shell, which goes on after a command that failed.
func TestAServiceThatIsNotStoppedIsNotSaidToBe(t *testing.T) {
	t.Parallel()
	block := stopSession(t).steps[0].Text
	for _, shell := range []string{"bash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%s is not installed: the block is not tried in it", shell)
			}
			for name, c := range map[string]struct {
				fails, functions string
				stopped          bool
			}{
				"all succeed":                    {"nothing", twoFunctions, true},
				"the first function":             {"lambda put-function-concurrency --function-name shop-Orders-1A2B", twoFunctions, false},
				"the last function":              {"lambda put-function-concurrency --function-name shop-Worker-3C4D", twoFunctions, false},
				"the list of functions":          {"cloudformation list-stack-resources", twoFunctions, false},
				"a stack without functions":      {"nothing", "", false},
				"the list of the first mappings": {"lambda list-event-source-mappings --function-name shop-Orders-1A2B", twoFunctions, false},
				"a mapping":                      {"lambda update-event-source-mapping", twoFunctions, false},
			} {
				environment, calls := stopping(t, c.fails, c.functions)
				command := exec.CommandContext(t.Context(), shell, "-c", block)
				command.Env = append(os.Environ(), environment...)
				said, _ := command.CombinedOutput() // how the last command ended is what the reader does not look at
				if got := strings.Contains(string(said), "all are stopped"); got != c.stopped {
					t.Errorf("%s: said to be stopped: %t\n%s", name, got, said)
				}
				if made, _ := os.ReadFile(calls); !c.stopped && !strings.HasPrefix(lastLine(string(made)), strings.TrimPrefix(c.fails, "nothing")) {
					t.Errorf("%s: the block goes on after it\n%s", name, made)
				}
			}
		})
	}
}
