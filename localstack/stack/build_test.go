package stack

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// A commit that leaves a function's source alone leaves its binary alone, wherever the checkout is: otherwise each deployment
// would update every function.
func TestTheSameSourceIsTheSameBinary(t *testing.T) {
	t.Setenv("GOFLAGS", "-buildvcs=true") // the default of a checkout: the commit is stamped into binaries
	t.Setenv("GOWORK", "off")
	var binaries [][]byte
	for _, commit := range []string{"one", "two"} {
		root := t.TempDir()
		for name, text := range map[string]string{
			"functions/go.mod":     "module example.com/functions\n\ngo 1.26.0\n",
			"functions/a/main.go":  "package main\n\nfunc main() { println(\"a\") }\n",
			"functions/readme.txt": commit,
		} {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git(t, root, "init", "-q")
		git(t, root, "add", ".")
		git(t, root, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", commit)
		if err := BuildFunctions(t.Context(), root, runtime.GOARCH); err != nil {
			t.Fatal(err)
		}
		binary, err := os.ReadFile(buildDirectory(root, runtime.GOARCH, "a", "bootstrap"))
		if err != nil {
			t.Fatal(err)
		}
		binaries = append(binaries, binary)
	}
	if !bytes.Equal(binaries[0], binaries[1]) {
		t.Error("two commits with the same source of a function have different binaries")
	}
}

func git(t *testing.T, root string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", arguments...)
	command.Dir = root
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, said)
	}
}
