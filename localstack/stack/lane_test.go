package stack

import (
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

// lanes are the build tags of tests: in which folder those tests may lie, and what their names begin with. A lane of the checks
// runs just these.
var lanes = map[string]struct {
	folders []string
	name    string
}{
	"":        {append(slices.Clone(modules), "docs/examples/ownstack"), "Test"}, // the last by the session "new" of docs/start/new.md
	"e2e":     {[]string{"localstack/e2e"}, "Test"},
	"prove":   {[]string{"idem/protocol", "idem/sim"}, "Test"},
	"browser": {[]string{"functions/cmd/idemctl", "localstack/docsite"}, "TestBrowser"},
}

var (
	buildTag = regexp.MustCompile(`(?m)^//go:build (.+)$`)
	testFunc = regexp.MustCompile(`(?m)^func (Test[^a-z(]\w*|Test)\((?:\w+ )?\*testing\.T\)`)
)

// A test that no lane runs proves nothing, and nobody notices.
func TestEveryTestIsOfALane(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	listed, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "go.mod", "*/go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name := range strings.FieldsSeq(string(listed)) {
		if slices.Contains(strings.Split(path.Dir(name), "/"), "testdata") {
			continue // what another test runs by itself: go lists no package there
		}
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range leftBehind(name, string(source), moduleOf(name, string(manifests))) {
			t.Error(wrong)
		}
		found += len(testFunc.FindAllString(string(source), -1))
	}
	if found < 1000 {
		t.Errorf("only %d tests were found", found)
	}
}

// moduleOf is the folder of the innermost module that has the file.
func moduleOf(name, manifests string) string {
	for folder := path.Dir(name); ; folder = path.Dir(folder) {
		if slices.Contains(strings.Fields(manifests), path.Join(folder, "go.mod")) || folder == "." {
			return folder
		}
	}
}

// leftBehind says of each test of a file why no lane runs it.
func leftBehind(name, source, module string) (wrong []string) {
	if !strings.HasSuffix(name, "_test.go") {
		return nil
	}
	tag := ""
	if match := buildTag.FindStringSubmatch(source); match != nil {
		tag = match[1]
	}
	lane, known := lanes[tag]
	inside := slices.ContainsFunc(lane.folders, func(folder string) bool {
		return tag == "" && folder == module || tag != "" && strings.HasPrefix(name, folder+"/")
	})
	for _, part := range strings.Split(path.Dir(name), "/") {
		inside = inside && part != "testdata" && (part == "." || !strings.HasPrefix(part, ".") && !strings.HasPrefix(part, "_"))
	}
	for _, test := range testFunc.FindAllStringSubmatch(source, -1) {
		if !known || !inside || !strings.HasPrefix(test[1], lane.name) {
			wrong = append(wrong, name+": "+test[1]+": no lane runs it")
		}
	}
	return wrong
}

func TestATestOfNoLaneIsFound(t *testing.T) {
	const test = "package x\n\nfunc TestX(t *testing.T) {}\n"
	for name, c := range map[string]struct {
		file, source, module string
		left                 bool
	}{
		"the library's":                    {"idem/x_test.go", test, ".", false},
		"of a module that nobody tests":    {"localstack/collector/x_test.go", test, "localstack/collector", true},
		"end to end":                       {"localstack/e2e/x_test.go", "//go:build e2e\n\n" + test, "localstack", false},
		"end to end in another folder":     {"functions/x_test.go", "//go:build e2e\n\n" + test, "functions", true},
		"of a tag that nobody sets":        {"idem/x_test.go", "//go:build slow\n\n" + test, ".", true},
		"of a browser under another name":  {"localstack/docsite/x_test.go", "//go:build browser\n\n" + test, "localstack", true},
		"of a browser":                     {"localstack/docsite/x_test.go", "//go:build browser\n\n" + strings.ReplaceAll(test, "TestX", "TestBrowserX"), "localstack", false},
		"in a folder that go test ignores": {"idem/testdata/x_test.go", test, ".", true},
		"in a file that go test ignores":   {"idem/_x/x_test.go", test, ".", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leftBehind(c.file, c.source, c.module); (len(got) > 0) != c.left {
				t.Errorf("left behind: %q, want some: %t", got, c.left)
			}
		})
	}
}
