package emulator

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/idem-go/idem-aws/localstack/progress"
)

// pinning is a checkout whose CDK command line is pinned by a lock file, and where npm says where it was called.
func pinning(t *testing.T, lock string) (root string) {
	t.Helper()
	root = t.TempDir()
	programs := t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(root, "infra", "package.json"):      `{"name": "infra"}`,
		filepath.Join(root, "infra", "package-lock.json"): lock,
		filepath.Join(programs, "node"):                   "#!/bin/sh\necho v22.0.0\n",
		filepath.Join(programs, "npm"):                    "#!/bin/sh\nset -e\necho \"$*\" >> calls\nmkdir -p node_modules/.bin\ncp package-lock.json node_modules/.bin/cdk\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	return root
}

// installCDK installs the checkout's CDK, and returns its command line as it is there.
func installCDK(t *testing.T, root string) string {
	t.Helper()
	tool, err := CDKTool(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := Install(t.Context(), root, progress.New(io.Discard), tool); err != nil || !tool.Installed(root) {
		t.Fatalf("Install = %v, and it is installed: %t", err, tool.Installed(root))
	}
	program, err := CDKProgram(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A cache keeps .local/tools, and a fresh checkout has nothing else: the command line is in there as a whole.
func TestTheCDKIsInstalledBelowTools(t *testing.T) {
	root := pinning(t, "one")
	if got := installCDK(t, root); got != "one" {
		t.Errorf("the command line is of the lock %q", got)
	}
	if entries, err := os.ReadDir(filepath.Join(root, "infra")); err != nil || len(entries) != len(cdkManifests) {
		t.Errorf("infra holds %v, %v", entries, err)
	}
	fresh := pinning(t, "one")
	if err := os.CopyFS(filepath.Join(fresh, ".local", "tools"), os.DirFS(filepath.Join(root, ".local", "tools"))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir()) // neither node nor npm: nothing is to be installed
	if got := installCDK(t, fresh); got != "one" {
		t.Errorf("the command line of the fresh checkout is of the lock %q", got)
	}
}

// A branch that pins another command line has its own, and the first one is still there when one comes back.
func TestEveryLockHasItsCDK(t *testing.T) {
	root := pinning(t, "one")
	for _, lock := range []string{"one", "two", "one"} {
		if err := os.WriteFile(filepath.Join(root, "infra", "package-lock.json"), []byte(lock), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := installCDK(t, root); got != lock {
			t.Errorf("the command line is of the lock %q, want %q", got, lock)
		}
	}
}

// A stamp without what it stands for is none: the command line is installed then.
func TestAStampAloneIsNoCDK(t *testing.T) {
	root := pinning(t, "one")
	tool, err := CDKTool(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(tool.Directory(root), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tool.Directory(root), ".installed"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if tool.Installed(root) {
		t.Error("a folder that holds a stamp alone counts as installed")
	}
	if got := installCDK(t, root); got != "one" {
		t.Errorf("the command line is of the lock %q", got)
	}
}
