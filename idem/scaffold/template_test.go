package scaffold

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the template anew, from docs/examples/ownstack")

var (
	root    = filepath.Join("..", "..")
	example = filepath.Join(root, "docs", "examples", "ownstack")
)

// forReaders are lines that only the example has: they tell this repository's checks which lines count, and which are not run.
var forReaders = regexp.MustCompile(`(?m)^\s*(// idem: (begin|end)|<!-- .* -->)\n`)

// The template is docs/examples/ownstack, whose files are compiled, vetted, tested and deployed: what a service begins with is
// written once.
func TestTemplateIsTheExample(t *testing.T) {
	want := packed(t)
	if *update {
		if err := os.RemoveAll("template"); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			path := filepath.Join("template", filepath.FromSlash(name)+".txt")
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	found := 0
	err := fs.WalkDir(template, "template", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found++
		name := strings.TrimSuffix(strings.TrimPrefix(path, "template/"), ".txt")
		if text, err := template.ReadFile(path); err != nil || !bytes.Equal(text, want[name]) {
			t.Errorf("%s differs from docs/examples/ownstack/%s: go test ./idem/scaffold -update writes it anew (%v)", path, name, err)
		}
		return nil
	})
	if err != nil || found != len(want) || found < 12 {
		t.Errorf("%d files in the template, %d in the example: go test ./idem/scaffold -update (%v)", found, len(want), err)
	}
}

// packed are the files of the example that git tracks or would track.
func packed(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", example, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range strings.Fields(string(out)) {
		text, err := os.ReadFile(filepath.Join(example, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		files[name] = forReaders.ReplaceAll(text, nil)
	}
	return files
}

// The example's command line of the CDK is the one that the construct's own tests use, wherever the example names it: npm's latest refuses
// the library's assemblies.
func TestExamplePinsTheCDKOfTheRepository(t *testing.T) {
	pinned, err := os.ReadFile(filepath.Join(root, "infra", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`"aws-cdk": "([0-9.]+)"`).FindSubmatch(pinned)
	if version == nil {
		t.Fatal("infra/package.json has no aws-cdk")
	}
	for _, name := range []string{"Makefile", "README.md"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			t.Fatal(err)
		}
		called := regexp.MustCompile(`\bnpx (?:--yes )?aws-cdk(\S*)`).FindAllSubmatch(text, -1)
		if len(called) == 0 {
			t.Errorf("%s of the example does not call the CDK", name)
		}
		for _, call := range called {
			if string(call[1]) != "@"+string(version[1]) {
				t.Errorf("%s of the example has %q, and infra/package.json aws-cdk@%s", name, call[0], version[1])
			}
		}
	}
}

// Two orders of one second are two orders, and a service that says nothing ends the command: what tries a service out is copied, too.
func TestTheMakefileOfTheTemplateTriesWithAKeyOfItsOwn(t *testing.T) {
	makefile, err := template.ReadFile("template/Makefile.txt")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`\bdate \+`).Match(makefile) {
		t.Error("a key is made of the time")
	}
	line := regexp.MustCompile(`key=.*\$\$\((.*)\);`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("no key is made")
	}
	command := strings.ReplaceAll(string(line[1]), "$$", "$")
	keys := map[string]bool{}
	for range 3 {
		key, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
		if err != nil || !regexp.MustCompile(`^[0-9a-f]{16,}\n?$`).Match(key) {
			t.Errorf("%q, %v", key, err)
		}
		keys[string(key)] = true
	}
	if len(keys) != 3 {
		t.Errorf("%d of 3 keys differ", len(keys))
	}
	for curl := range strings.SplitSeq(string(makefile), "curl ") {
		if command, _, _ := strings.Cut(curl, "\n"); strings.Contains(command, "--retry") && !strings.Contains(command, "--max-time ") {
			t.Errorf("curl %s: an attempt has no end", command)
		}
	}
}

// A module of a name that Go's own packages begin with could not import its own packages.
func TestStandardNamesAreGos(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "std", "cmd").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if first, _, _ := strings.Cut(path, "/"); !slices.Contains(standard, first) {
			t.Errorf("%s is missing", first)
		}
	}
}
