package idem_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A wrong configuration is told with its field, its value and the rule that it breaks: none of the three is ever left out,
// wherever the library or the application makes such an error.
func TestEveryConfigErrorNamesFieldValueAndRule(t *testing.T) {
	made := 0
	for _, root := range []string{".", "../functions"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				literal, ok := n.(*ast.CompositeLit)
				if !ok || !namesConfigError(literal.Type) {
					return true
				}
				if made++; !complete(literal) {
					t.Errorf("%s: a ConfigError without field, value or rule", files.Position(literal.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if made < 100 {
		t.Errorf("%d places make a ConfigError; were all files read?", made)
	}
}

func namesConfigError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "ConfigError"
	case *ast.SelectorExpr:
		return e.Sel.Name == "ConfigError"
	}
	return false
}

// complete says whether all three are given, and the field and the rule not as "".
func complete(literal *ast.CompositeLit) bool {
	if len(literal.Elts) != 3 {
		return false
	}
	for i, element := range literal.Elts {
		name := []string{"Field", "Value", "Rule"}[i]
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
			name = pair.Key.(*ast.Ident).Name
		}
		if text, ok := element.(*ast.BasicLit); ok && name != "Value" && (text.Kind != token.STRING || len(text.Value) <= 2) {
			return false
		}
	}
	return true
}
