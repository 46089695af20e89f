package idem_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutRequest are the files that log one line outside of any request, and why.
var withoutRequest = map[string]string{
	"idem/secret.go":                        "said once, while a process starts",
	"functions/internal/config/config.go":   "a function that does not start has no request",
	"functions/internal/tracing/tracing.go": "about spans of many requests",
}

// A line names its request (awslambda.RequestMembers) and its trace only where the call that writes it has the context.
func TestLinesAreLoggedWithTheirContext(t *testing.T) { // operator.md "Traces"
	found := map[string]int{}
	for _, folder := range []string{"idem", "functions"} {
		err := fs.WalkDir(os.DirFS(".."), folder, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "cmd" || entry.Name() == "template"):
				return fs.SkipDir // commands answer a person
			case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(filepath.Join("..", name))
			if err != nil {
				return err
			}
			for _, line := range loggedWithoutContext(t, name, text) {
				if found[name]++; withoutRequest[name] == "" || found[name] > 1 {
					t.Errorf("%s:%d logs without a context: its line names no request", name, line)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(withoutRequest)) {
		if found[name] == 0 {
			t.Errorf("%s logs nothing without a context any more", name)
		}
	}
}

func TestLinesWithoutContextAreFound(t *testing.T) {
	const source = `package p
func f() {
	logger.Info("a")
	s.cfg.Logger.ErrorContext(ctx, "b")
	s.cfg.Logger.Error("c")
	slog.Warn("d")
	slog.New(handler).Debug("e")
	t.Error("f")
	slog.Default().InfoContext(ctx, "g")
}`
	if got, want := loggedWithoutContext(t, "p.go", []byte(source)), []int{3, 5, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
}

// loggedWithoutContext are the lines that call a logger's method without a context.
func loggedWithoutContext(t *testing.T, name string, text []byte) (lines []int) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if ok && slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name) && isLogger(method.X) {
			lines = append(lines, files.Position(call.Pos()).Line)
		}
		return true
	})
	return lines
}

// isLogger tells a logger by its name: nothing else here is called log, slog or logger.
func isLogger(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"log", "slog", "logger"}, strings.ToLower(of.Name))
	case *ast.SelectorExpr:
		return isLogger(of.Sel)
	case *ast.CallExpr: // slog.New(…), logger.With(…)
		method, ok := of.Fun.(*ast.SelectorExpr)
		return ok && isLogger(method.X)
	}
	return false
}
