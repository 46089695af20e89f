package trace_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The operator's manual lists every span and every attribute that the library and the application record, and no other.
func TestManualListsEverySpanAndAttribute(t *testing.T) {
	spans, attributes := map[string]bool{}, map[string]bool{}
	for _, folder := range []string{"../..", "../../../functions"} {
		constants(t, folder, func(name, value string) {
			switch {
			case strings.HasPrefix(name, "span"):
				spans[value] = true
			case strings.HasPrefix(name, "attribute"):
				attributes[value] = true
			}
		})
	}
	manual, err := os.ReadFile("../../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	listedSpans, listedAttributes := map[string]bool{}, map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| `((?:idem|dynamodb)\\.[a-z*]+)` \\| [^|]+ \\| (?:server|client|consumer|internal) \\| ([^|]+) \\|$")
	for _, found := range row.FindAllStringSubmatch(string(manual), -1) {
		listedSpans[strings.TrimSuffix(found[1], "*")] = true
		for attribute := range strings.SplitSeq(found[2], ", ") {
			listedAttributes[strings.Trim(attribute, "`")] = true
		}
	}
	if len(spans) < 5 || !maps.Equal(spans, listedSpans) {
		t.Errorf("the code has the spans %v, docs/operator.md %v", slices.Sorted(maps.Keys(spans)), slices.Sorted(maps.Keys(listedSpans)))
	}
	if !maps.Equal(attributes, listedAttributes) {
		t.Errorf("the code has the attributes %v, docs/operator.md %v", slices.Sorted(maps.Keys(attributes)), slices.Sorted(maps.Keys(listedAttributes)))
	}
}

// constants visits the text constants of a folder's packages, without their tests.
func constants(t *testing.T, folder string, visit func(name, value string)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Names) != len(spec.Values) {
				return true
			}
			for i, name := range spec.Names {
				if literal, ok := spec.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					value, err := strconv.Unquote(literal.Value)
					if err == nil {
						visit(name.Name, value)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
