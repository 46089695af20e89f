package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A mutant that does not compile shows nothing, and who writes one sees that only where it is run: a check runs two of the list. The
// package's own tests are left out: they would need all of their imports compiled too. One that only they do not compile with is seen
// where it is run.
func TestEveryListedMutantCompiles(t *testing.T) {
	c := newCompiler(t, Listed())
	for _, m := range Listed() {
		if filepath.Ext(m.File) != ".go" {
			continue
		}
		if err := c.compiles(m); err != nil {
			t.Errorf("%q: %v\n%s", m.Name, err, m.diff())
		}
	}
}

// The check can fail: on a type, on a variable that is left unused, and on text that is no Go.
func TestAMutantThatDoesNotCompileIsNoticed(t *testing.T) {
	good := Mutant{File: "localstack/mutants/mutant.go", Old: "text, at := string(raw), m.at\n", New: "text, at := string(raw), m.at+1\n"}
	c := newCompiler(t, []Mutant{good})
	if err := c.compiles(good); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"text, at := string(raw), m.name\n", "text, at, unused := string(raw), m.at, 1\n", "text, at := string(raw),\n"} {
		bad := good
		bad.New = code
		if c.compiles(bad) == nil {
			t.Errorf("%q compiles", code)
		}
	}
}

// compiler checks the types of a package in which one file differs. What the package imports is compiled once.
type compiler struct {
	files    *token.FileSet
	packages map[string]listed // by folder, from the checkout's root
	imports  types.Importer
}

// listed is a package as `go list` tells of it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
	Module                  *struct{ GoVersion string }
}

func newCompiler(t *testing.T, all []Mutant) *compiler {
	t.Helper()
	var folders []string
	for _, m := range all {
		if filepath.Ext(m.File) == ".go" {
			folders = append(folders, "./"+filepath.Dir(m.File))
		}
	}
	slices.Sort(folders)
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly,Module"}, slices.Compact(folders)...)...)
	list.Dir, list.Stderr = root, os.Stderr
	told, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	within, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	c, exports := &compiler{files: token.NewFileSet(), packages: map[string]listed{}}, map[string]string{}
	for each := json.NewDecoder(strings.NewReader(string(told))); ; {
		var p listed
		if err := each.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if folder, err := filepath.Rel(within, p.Dir); err == nil && !p.DepOnly {
			c.packages[folder] = p
		}
	}
	c.imports = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// compiles is nil where the package of the mutant's file has the right types with it.
func (c *compiler) compiles(m Mutant) error {
	changed, err := m.file(root)
	if err != nil {
		return err
	}
	p, ok := c.packages[filepath.Dir(m.File)]
	if !ok || !slices.Contains(p.GoFiles, filepath.Base(m.File)) {
		return fmt.Errorf("%s is no file of a package of this platform", m.File)
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		var source any // nil has the parser read the file
		if name == filepath.Base(m.File) {
			source = changed
		}
		file, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	config := types.Config{Importer: c.imports, GoVersion: "go" + p.Module.GoVersion}
	_, err = config.Check(p.ImportPath, c.files, files, nil)
	return err
}
