package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/mutants"
)

// toolless are targets of workflows that run tests of packages which use tools of the checkout, and need none of them all the same.
var toolless = map[string]string{
	"fuzz":     "it runs no test, and the targets of fuzzing are pure functions",
	"simulate": "the stories that it names are played on stores in memory",
}

// A runner has a fresh checkout: tools are there only where the target installs them, and with CI=true a test that misses one
// fails. What goes through the program `stack` is installed by its command.
func TestTargetsOfWorkflowsInstallTheToolsOfTheirTests(t *testing.T) {
	root, all := workflows(t)
	called := map[string]string{}
	for _, one := range all {
		for _, job := range one.Jobs {
			for _, line := range job.commands() {
				if call := calledTarget.FindStringSubmatch(line); call != nil {
					called[call[1]] = line
				}
			}
		}
	}
	if len(called) < 10 {
		t.Errorf("workflows call %d targets of make", len(called))
	}
	for target := range called {
		wrong := toolsMissed(t, root, filepath.Join(root, "Makefile"), target)
		if _, ok := toolless[target]; ok != (wrong != "") {
			t.Errorf("make %s: %q; it needs no tools: %q", target, wrong, toolless[target])
		}
	}
	for target := range toolless {
		if called[target] == "" {
			t.Errorf("no workflow calls make %s, which is listed as one that needs no tools", target)
		}
	}
}

var (
	testsByHand   = regexp.MustCompile(`\bgo test (?:.* )?(?:\$package|(\./\S+))`)
	mutantsByHand = regexp.MustCompile(`\bgo run \./localstack/cmd/mutants\b`)
)

// toolsMissed says which tests the target runs that use tools, when no command before them has installed these.
func toolsMissed(t *testing.T, root, makefile, target string) string {
	t.Helper()
	recipe, err := exec.CommandContext(t.Context(), "make", "-n", "-C", root, "-f", makefile, target).Output()
	if err != nil {
		t.Fatalf("make -n %s: %v", target, err)
	}
	var packages []string
	for line := range strings.Lines(string(recipe)) {
		if regexp.MustCompile(`^\S*stack tools\b`).MatchString(line) {
			return ""
		}
		if mutantsByHand.MatchString(line) {
			packages = append(packages, testedByMutants()...)
		}
		for _, call := range testsByHand.FindAllStringSubmatch(line, -1) {
			if call[1] == "" { // a loop over the library's packages
				call[1] = library
			}
			packages = append(packages, call[1])
		}
	}
	if used := usersOfTools(t, root, packages); len(used) > 0 {
		return "no tools are installed for the tests of " + strings.Join(used, " ")
	}
	return ""
}

// testedByMutants are the packages whose tests judge changes of the code.
func testedByMutants() (packages []string) {
	for _, m := range mutants.Listed() {
		for _, tests := range m.Tests {
			packages = append(packages, strings.Fields(tests.Packages)...)
		}
	}
	for _, target := range mutants.Targets() {
		for _, tests := range target.Tests {
			packages = append(packages, strings.Fields(tests.Packages)...)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// usersOfTools are those of the packages whose tests find tools of the checkout, themselves or in what they import.
func usersOfTools(t *testing.T, root string, packages []string) (users []string) {
	t.Helper()
	if len(packages) == 0 {
		return nil
	}
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-test", "-f", "{{.ImportPath}} {{join .Deps \" \"}}"}, packages...)...)
	command.Dir = root
	listed, err := command.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", packages, err)
	}
	const finder = "github.com/idem-go/idem-aws/internal/localtool"
	for line := range strings.Lines(string(listed)) {
		if fields := strings.Fields(line); strings.HasSuffix(fields[0], ".test") && slices.Contains(fields, finder) {
			users = append(users, fields[0])
		}
	}
	return users
}

func TestATargetThatInstallsNoToolsIsFound(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	makefile := filepath.Join(t.TempDir(), "Makefile")
	if err := os.WriteFile(makefile, []byte(`tools:
	@.local/build/bin/stack tools
bare:
	@go run ./localstack/cmd/mutants
installed: tools
	@go run ./localstack/cmd/mutants
store:
	@FLAGS=1 go test -v ./idem/dynamo -run X
late:
	@go test ./idem/dynamo && .local/build/bin/stack tools
pure:
	@go test ./idem/canonical
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, missed := range map[string]bool{"bare": true, "installed": false, "store": true, "late": true, "pure": false} {
		if wrong := toolsMissed(t, root, makefile, target); (wrong != "") != missed {
			t.Errorf("%s: %q, want some: %t", target, wrong, missed)
		}
	}
}
