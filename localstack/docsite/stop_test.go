package docsite

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// ofStandIn are the sessions whose aws is a stand-in. Tests of their own run them.
var ofStandIn = []string{"stop"}

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
		if len(sessions) == 1 && len(sessions[0].steps) == 3 {
			return sessions[0]
		}
	}
	t.Fatal("docs/recovery.md has no session of three blocks")
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

// recoveryBlock is the one block of docs/recovery.md that has the text.
func recoveryBlock(t *testing.T, has string) string {
	t.Helper()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range documents(t, root) {
		if d.Name != "docs/recovery.md" {
			continue
		}
		blocks, err := d.Blocks()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if strings.Contains(b.Text, has) {
				found = append(found, b.Text)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("docs/recovery.md has %d blocks with %q", len(found), has)
	}
	return found[0]
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
	block := recoveryBlock(t, "tables restore")
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
	block := recoveryBlock(t, "told.events")
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
