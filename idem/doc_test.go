package idem_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// privateReference matches what a reader of pkg.go.dev cannot look up: a finding's number, a decision record, or the page
// of failures seen in similar libraries.
var privateReference = regexp.MustCompile(`\b[HP]\d{1,2}\b|peers\.md|\bADR \d{4}\b`)

func TestExportedNamesAreDocumentedWithoutPrivateReferences(t *testing.T) {
	packages := 0
	for dir := range mayImport {
		if strings.Contains(dir, "/internal/") || strings.Contains(dir, "/cmd/") {
			continue
		}
		packages++
		pkg := documented(t, filepath.Join("..", filepath.FromSlash(dir)))
		if !strings.HasPrefix(pkg.Doc, "Package "+pkg.Name+" ") && !strings.HasPrefix(pkg.Doc, "Package "+pkg.Name+"\n") {
			t.Errorf("%s: its package comment must begin with \"Package %s\": %.60q", dir, pkg.Name, pkg.Doc)
		}
		checkComment(t, dir, pkg.Doc)
		checkValues(t, dir, pkg.Consts, pkg.Vars)
		checkFuncs(t, dir, pkg.Funcs)
		for _, typ := range pkg.Types {
			checkComment(t, dir+"."+typ.Name, typ.Doc)
			checkValues(t, dir, typ.Consts, typ.Vars)
			checkFuncs(t, dir, typ.Funcs)
			checkFuncs(t, dir+"."+typ.Name, typ.Methods)
		}
	}
	if packages == 0 {
		t.Fatal("no package was checked")
	}
}

// documented parses the package in dir, without its tests, and keeps its exported names.
func documented(t *testing.T, dir string) *doc.Package {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		t.Fatalf("%s: %v", dir, fs.ErrNotExist)
	}
	pkg, err := doc.NewFromFiles(fset, files, dir)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func checkComment(t *testing.T, name, comment string) {
	t.Helper()
	if strings.TrimSpace(comment) == "" {
		t.Errorf("%s has no doc comment", name)
	}
	if found := privateReference.FindString(comment); found != "" {
		t.Errorf("%s: its doc comment refers to %q; say it in words", name, found)
	}
}

func checkFuncs(t *testing.T, place string, funcs []*doc.Func) {
	t.Helper()
	for _, f := range funcs {
		checkComment(t, place+"."+f.Name, f.Doc)
	}
}

// checkValues accepts a comment on the group or on each exported name of it.
func checkValues(t *testing.T, place string, groups ...[]*doc.Value) {
	t.Helper()
	for _, values := range groups {
		for _, group := range values {
			if group.Doc != "" {
				checkComment(t, place+"."+group.Names[0], group.Doc)
			}
			for _, spec := range group.Decl.Specs {
				value := spec.(*ast.ValueSpec)
				comment := value.Doc.Text() + value.Comment.Text()
				if group.Doc == "" || comment != "" {
					checkComment(t, place+"."+value.Names[0].Name, comment)
				}
			}
		}
	}
}
