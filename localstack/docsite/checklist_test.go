package docsite

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// checklistPage names the tests that answer a reviewer, and how to run each of them.
const checklistPage = "docs/verify/checklist.md"

// howToRun begins the section of that page which has a table of its tests by the command that runs them.
const howToRun = "## Run one test\n"

var (
	buildTag     = regexp.MustCompile(`\A//go:build (\w+)\n`)
	runTable     = regexp.MustCompile(`(?m)^\| run it by \| tests \|\n\|---\|---\|\n(?:\|.*\|\n)*`)
	runTableHead = "| run it by | tests |\n|---|---|\n"
)

// runBy is the command that runs one test of a package, NAME, whose file has a build tag or "". Without the tag go test would run
// none, and succeed.
func runBy(folder, tag string) (string, error) {
	switch tag {
	case "":
		return fmt.Sprintf("`go test ./%s -v -run '^NAME$'`", folder), nil
	case "prove":
		return fmt.Sprintf("`go test -tags prove ./%s -v -timeout 24m -run '^NAME$'`", folder), nil
	case "e2e":
		return "`make test-e2e`, which runs them all: they need a deployed stack", nil
	}
	return "", fmt.Errorf("%s has tests of the tag %s, and no command is known that runs them", folder, tag)
}

// placesOf finds the command that runs each test of the checkout; a name may be in several packages.
func placesOf(ctx context.Context, t *testing.T, root string) map[string][]string {
	t.Helper()
	listed, err := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	places := map[string][]string{}
	for _, name := range strings.Fields(string(listed)) {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		tag := ""
		if found := buildTag.FindSubmatch(source); found != nil {
			tag = string(found[1])
		}
		command, unknown := runBy(path.Dir(name), tag)
		if unknown != nil {
			command = unknown.Error()
		}
		for _, found := range testFunction.FindAllStringSubmatch(string(source), -1) {
			places[found[1]] = append(places[found[1]], command)
		}
	}
	return places
}

// Each test that the checklist names stands in its table beside the command that runs it.
func TestChecklistSaysHowEachTestRuns(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, filepath.FromSlash(checklistPage))
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	asked, _, found := strings.Cut(string(page), howToRun)
	if !found {
		t.Fatalf("%s has no section %q", checklistPage, howToRun)
	}
	places, tests := placesOf(t.Context(), t, root), map[string][]string{}
	for _, name := range testNamed.FindAllStringSubmatch(asked, -1) {
		for _, command := range places[name[1]] {
			if !strings.HasPrefix(command, "`") {
				t.Errorf("%s: %s", name[1], command)
			}
			if quoted := "`" + name[1] + "`"; !slices.Contains(tests[command], quoted) {
				tests[command] = append(tests[command], quoted)
			}
		}
	}
	table := runTableHead
	for _, command := range slices.Sorted(maps.Keys(tests)) {
		table += fmt.Sprintf("| %s | %s |\n", command, strings.Join(slices.Sorted(slices.Values(tests[command])), ", "))
	}
	if len(tests) < 20 {
		t.Fatalf("the tests stand in %d packages", len(tests))
	}
	want := runTable.ReplaceAllLiteralString(string(page), table)
	switch {
	case !runTable.Match(page):
		t.Errorf("%s has no table of how its tests run", checklistPage)
	case want == string(page):
	case *update:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s names other tests than its table; go test ./localstack/docsite -run %s -update writes it", checklistPage, t.Name())
	}
}

// A test behind a build tag is not run by go test alone.
func TestATaggedTestHasItsTag(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{"": "go test ./a", "prove": "-tags prove", "e2e": "make test-e2e"} {
		if command, err := runBy("a", tag); err != nil || !strings.Contains(command, want) {
			t.Errorf("%q: %s, %v", tag, command, err)
		}
	}
	if _, err := runBy("a", "browser"); err == nil {
		t.Error("a tag without a command has one")
	}
	if !bytes.Equal(buildTag.FindSubmatch([]byte("//go:build e2e\n\npackage a"))[1], []byte("e2e")) {
		t.Error("the tag is not found")
	}
}
