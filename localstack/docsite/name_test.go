package docsite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	testNamed    = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")
	targetNamed  = regexp.MustCompile("`make ([a-z][a-z0-9-]*)")
	question     = regexp.MustCompile(`(?m)^\| ([^|]+\?) \| (.+) \|$`)
)

// named is what a text names and the checkout does not have: tests, and targets of make.
func named(text string, tests, targets map[string]bool) []string {
	var missing []string
	for _, name := range testNamed.FindAllStringSubmatch(text, -1) {
		if !tests[name[1]] {
			missing = append(missing, name[1])
		}
	}
	for _, name := range targetNamed.FindAllStringSubmatch(text, -1) {
		if !targets[name[1]] {
			missing = append(missing, "make "+name[1])
		}
	}
	return missing
}

// there are the tests and the targets of the checkout.
func there(ctx context.Context, t *testing.T, root string) (tests, targets map[string]bool) {
	t.Helper()
	tests, targets = map[string]bool{}, map[string]bool{}
	listed, err := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(listed)) {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testFunction.FindAllStringSubmatch(string(source), -1) {
			tests[found[1]] = true
		}
	}
	for _, folder := range []string{".", "docs/examples/ownstack"} { // the second is what `idemctl new` writes
		makefile, err := os.ReadFile(filepath.Join(root, folder, "Makefile"))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
			targets[found[1]] = true
		}
	}
	return tests, targets
}

// crashRow is a row of a table of the page about crashes: what dies where, and its last cell.
var crashRow = regexp.MustCompile(`(?m)^\| (.+?) \|.*\| (.*) \|$`)

// Each point at which something may die names the test that shows what is left.
func TestEachPointOfACrashHasItsTest(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "concepts", "crashes.md"))
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for _, row := range crashRow.FindAllStringSubmatch(string(page), -1) {
		if row[2] == "test" {
			continue
		}
		if points++; !testNamed.MatchString(row[2]) {
			t.Errorf("no test shows what is left of %q", row[1])
		}
	}
	if points < 19 {
		t.Errorf("%d points were found", points)
	}
}

// Every test and every target of make that a document names exists, and each question of the checklist has one.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	tests, targets := there(t.Context(), t, root)
	if len(tests) < 1000 || len(targets) < 20 {
		t.Fatalf("%d tests and %d targets were found", len(tests), len(targets))
	}
	questions := 0
	for _, d := range documents(t, root) {
		if !checkedFolder(d.Name) || strings.HasPrefix(d.Name, "docs/adr/") { // decisions are never rewritten
			continue
		}
		for _, missing := range named(d.text, tests, targets) {
			t.Errorf("%s names %s, which does not exist", d.Name, missing)
		}
		if d.Name != "docs/verify/checklist.md" {
			continue
		}
		for _, row := range question.FindAllStringSubmatch(d.text, -1) {
			if questions++; !testNamed.MatchString(row[2]) && !targetNamed.MatchString(row[2]) {
				t.Errorf("nothing shows the answer to %q", row[1])
			}
		}
	}
	if questions < 30 {
		t.Errorf("the checklist has %d questions", questions)
	}
}

func TestNamesThatDoNotExistAreFound(t *testing.T) {
	t.Parallel()
	tests, targets := map[string]bool{"TestA": true}, map[string]bool{"test": true}
	if missing := named("`TestA`, `make test`, `make test-unit-x`, `TestB`, TestC", tests, targets); len(missing) != 2 {
		t.Errorf("missing are %q, want TestB and make test-unit-x", missing)
	}
}

// The guide has adopters install the emulator that this checkout is tested with.
func TestTheGuideInstallsThePinnedEmulator(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(root, "docs", "guides", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "@dynoxide/linux-x64@" + localtool.DynoxideTool.Version + "\n"; !strings.Contains(string(guide), want) {
		t.Errorf("docs/guides/testing.md does not install %s", want)
	}
}
