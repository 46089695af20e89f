package release

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

func code(err error) string {
	var notReady *NotReadyError
	if errors.As(err, &notReady) {
		return notReady.Code
	}
	return ""
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkout is a small repository with every module, ready for v0.2.0.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, module := range Modules() {
		text := "module " + module.Path() + "\n\ngo 1.26.0\n"
		if module != "." {
			text += "\nrequire " + Repository + " v0.0.0\n\nreplace " + Repository + " => ../\n"
		}
		write(t, root, filepath.Join(string(module), "go.mod"), text)
	}
	write(t, root, "go.work", "go 1.26.0\n\nuse .\n")
	write(t, root, "CHANGELOG.md", "# Changelog\n\n## v0.2.0, 2026-12-01\n- It works.\n")
	write(t, root, "idem/client/typescript/package.json", `{"version": "0.2.0"}`)
	write(t, root, "idem/client/python/pyproject.toml", "[project]\nversion = \"0.2.0\"\n")
	for _, arguments := range [][]string{
		{"init", "-q", "-b", "main"}, {"config", "user.name", "t"}, {"config", "user.email", "t@example.com"},
		{"config", "commit.gpgsign", "false"}, {"config", "tag.gpgsign", "false"}, {"add", "."}, {"commit", "-q", "-m", "one"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %s", arguments, out)
		}
	}
	return root
}

// What isn't ready is refused with its code.
func TestReady(t *testing.T) {
	cases := map[string]struct {
		version string
		change  map[string]string
		want    string
	}{
		"ready":                       {"v0.2.0", nil, ""},
		"no version":                  {"", nil, CodeVersion},
		"without v":                   {"0.2.0", nil, CodeVersion},
		"not in full":                 {"v0.2", nil, CodeVersion},
		"with build metadata":         {"v0.2.0+linux", nil, CodeVersion},
		"a major of another path":     {"v2.0.0", nil, CodeVersion},
		"another version":             {"v0.3.0", nil, CodeClients},
		"TypeScript left behind":      {"v0.2.0", map[string]string{"idem/client/typescript/package.json": `{"version": "0.1.0"}`}, CodeClients},
		"TypeScript without version":  {"v0.2.0", map[string]string{"idem/client/typescript/package.json": `{`}, CodeClients},
		"Python left behind":          {"v0.2.0", map[string]string{"idem/client/python/pyproject.toml": "version = \"0.1.0\"\n"}, CodeClients},
		"Python without version":      {"v0.2.0", map[string]string{"idem/client/python/pyproject.toml": "[project]\n"}, CodeClients},
		"no section in the changelog": {"v0.2.0", map[string]string{"CHANGELOG.md": "## Unreleased\n"}, CodeChangelog},
		"a section of a longer name":  {"v0.2.0", map[string]string{"CHANGELOG.md": "## v0.2.01\n"}, CodeChangelog},
		"a section of a candidate":    {"v0.2.0", map[string]string{"CHANGELOG.md": "## v0.2.0-rc.1, 2026-12-01\n"}, CodeChangelog},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := checkout(t)
			for file, text := range c.change {
				write(t, root, file, text)
			}
			if err := Ready(root, c.version); code(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("%v, want the code %q", err, c.want)
			}
		})
	}
}

// The clients of this checkout have one version, so that it can be a release's.
func TestClientsHaveOneVersion(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]bool{}
	for name, read := range clients {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckVersion("v" + read(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		versions[read(text)] = true
	}
	if len(versions) != 1 {
		t.Errorf("the clients have versions %v", versions)
	}
}

// Tags of all modules are on one commit, whose go.mod files are the release's. The branch and the files stay as they are.
func TestTagLeavesTheCheckoutAsItIs(t *testing.T) {
	root := checkout(t)
	before, err := git(t.Context(), root, "rev-parse", "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := Made(root, "v0.2.0"); code(err) != CodeUnmade {
		t.Errorf("the checkout in development: %v", err)
	}
	checked, err := Untagged(t.Context(), root, "v0.2.0")
	if err != nil || checked != before {
		t.Fatalf("checked %s, %v", checked, err)
	}
	if err := Tag(t.Context(), root, checked, "v0.2.0", filepath.Join(t.TempDir(), "commit")); err != nil {
		t.Fatal(err)
	}
	if after, err := git(t.Context(), root, "rev-parse", "main"); err != nil || after != before {
		t.Errorf("main moved to %s, %v", after, err)
	}
	if changed, err := git(t.Context(), root, "status", "--porcelain"); err != nil || changed != "" {
		t.Errorf("changed: %s, %v", changed, err)
	}
	if trees, err := git(t.Context(), root, "worktree", "list"); err != nil || strings.Contains(trees, "\n") {
		t.Errorf("work trees left: %s, %v", trees, err)
	}
	commits := map[string]bool{}
	for _, module := range Modules() {
		commit, err := git(t.Context(), root, "rev-parse", module.Tag("v0.2.0")+"^{commit}")
		if err != nil {
			t.Fatal(err)
		}
		commits[commit] = true
	}
	if parent, err := git(t.Context(), root, "rev-parse", "v0.2.0^"); len(commits) != 1 || err != nil || parent != before {
		t.Errorf("tagged %v, on top of %s, %v", commits, parent, err)
	}
	if _, err := git(t.Context(), root, "checkout", "-q", "v0.2.0"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Ready(root, "v0.2.0"), Tagged(t.Context(), root, "v0.2.0"), Made(root, "v0.2.0")); err != nil {
		t.Errorf("on the tag: %v", err)
	}
}

// A version that was tagged, or a checkout with changes, is refused.
func TestUntagged(t *testing.T) {
	root := checkout(t)
	if _, err := git(t.Context(), root, "tag", "functions/v0.2.0"); err != nil {
		t.Fatal(err)
	}
	if _, err := Untagged(t.Context(), root, "v0.2.0"); code(err) != CodeTagged || !strings.Contains(err.Error(), "functions/v0.2.0") {
		t.Error(err)
	}
	if _, err := Untagged(t.Context(), root, "v0.2.1"); err != nil {
		t.Error(err)
	}
	write(t, root, "new.txt", "")
	if _, err := Untagged(t.Context(), root, "v0.2.1"); code(err) != CodeDirty {
		t.Error(err)
	}
}

// What is attached to a release is built of its tag's commit, and of nothing that was changed since.
func TestTagged(t *testing.T) {
	root := checkout(t)
	run := func(arguments ...string) {
		t.Helper()
		if _, err := git(t.Context(), root, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	want := func(refusal string) {
		t.Helper()
		if err := Tagged(t.Context(), root, "v0.2.0"); code(err) != refusal || (err == nil) != (refusal == "") {
			t.Errorf("%v, want the code %q", err, refusal)
		}
	}
	want(CodeUntagged)
	run("branch", "v0.2.0") // no tag
	want(CodeUntagged)
	run("tag", "--annotate", "-m", "Release", "v0.2.0")
	want("")
	write(t, root, "functions/backdoor.go", "package functions\n")
	want(CodeDirty)
	run("add", ".")
	run("commit", "-q", "-m", "after the tag")
	want(CodeUntagged)
}

// What was committed while the release was checked is not in it, and what a killed one left is in nobody's way.
func TestTagIsOnTopOfTheCommitThatWasChecked(t *testing.T) {
	root, scratch := checkout(t), filepath.Join(t.TempDir(), "commit")
	checked, err := Untagged(t.Context(), root, "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "later.txt", "")
	for _, arguments := range [][]string{{"add", "."}, {"commit", "-q", "-m", "later"}, {"worktree", "add", "--quiet", "--detach", scratch}} {
		if _, err := git(t.Context(), root, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	if err := Tag(t.Context(), root, checked, "v0.2.0", scratch); err != nil {
		t.Fatal(err)
	}
	if parent, err := git(t.Context(), root, "rev-parse", "v0.2.0^"); err != nil || parent != checked {
		t.Errorf("the release is on top of %s (%v), want %s", parent, err, checked)
	}
}

// Where one tag can't be made, none is left.
func TestTagMakesAllTagsOrNone(t *testing.T) {
	root := checkout(t)
	if _, err := git(t.Context(), root, "tag", "infra/v0.2.0"); err != nil { // as another release would, meanwhile
		t.Fatal(err)
	}
	if err := Tag(t.Context(), root, "HEAD", "v0.2.0", filepath.Join(t.TempDir(), "commit")); err == nil {
		t.Error("the release was tagged over another's tag")
	}
	if tags, err := git(t.Context(), root, "tag", "--list"); err != nil || tags != "infra/v0.2.0" {
		t.Errorf("left: %s, %v", tags, err)
	}
}

// No push names more than three tags together with the one that starts the workflow, and all tags are pushed.
func TestTheRootsTagIsPushedAloneAndLast(t *testing.T) {
	pushes := Pushes("v0.2.0")
	if last := pushes[len(pushes)-1]; last != "git push origin v0.2.0" {
		t.Errorf("last: %s", last)
	}
	all := strings.Fields(strings.Join(pushes, " "))
	for _, module := range Modules() {
		if !slices.Contains(all, module.Tag("v0.2.0")) {
			t.Errorf("%s is not pushed", module.Tag("v0.2.0"))
		}
	}
}

// Directives that go install refuses are an error, as is a module that nobody can download.
func TestModFilesThatCannotBeReleased(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"another's module replaced": {"replace example.com/x => ../x\n", "example.com/x"},
		"a version excluded":        {"exclude example.com/x v1.0.0\n", "example.com/x"},
		"a module not published":    {"require " + Repository + "/bench v0.0.0\n", "bench"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := releasedModFile([]byte("module example.com/m\n\ngo 1.26.0\n\n"+c.text), "v0.2.0"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}
