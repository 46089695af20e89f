package payments_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// answering are the packages that answer for the application.
var answering = []string{
	"../../../idem", "../../../idem/header", "../../../idem/middleware", "../../../idem/outbox", "../../../idem/awslambda", "../identity", ".",
}

// elsewhere are the codes that no route of the application answers with, because none is as the function asks for.
var elsewhere = map[string]func(middleware.RouteInfo) bool{
	header.CodeError:           func(r middleware.RouteInfo) bool { return r.Policy.Mismatch == idem.Mismatch400 },
	header.CodeInUse:           func(r middleware.RouteInfo) bool { return r.Policy.InFlight == idem.InFlightInUse },
	header.CodeOutcomeUnknown:  func(r middleware.RouteInfo) bool { return r.Kind == idem.KindWrapped },
	header.CodeResponseNotKept: func(r middleware.RouteInfo) bool { return r.Kind == idem.KindWrapped },
	// Lambda returns 6 MiB; the answers of the application have some hundred bytes.
	"response_too_large": func(middleware.RouteInfo) bool { return false },
}

// Each problem code in the code is in the document, and the other way round.
func TestDocumentHasEveryCode(t *testing.T) {
	routes, err := payments.Routes(idem.RetentionMin)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, a := range document(t).Unrouted() {
		documented[a.Code] = true
	}
	for _, o := range document(t).Operations() {
		for _, a := range o.Answers {
			documented[a.Code] = true
		}
	}
	delete(documented, "") // a success
	inCode := codes(t)
	for code, possible := range elsewhere {
		if !inCode[code] {
			t.Errorf("%s is not in the code any more", code)
		}
		if !slices.ContainsFunc(routes, possible) {
			delete(inCode, code)
		}
	}
	if code, said := slices.Sorted(maps.Keys(inCode)), slices.Sorted(maps.Keys(documented)); !slices.Equal(code, said) {
		t.Errorf("the code answers with\n%s\nthe document has\n%s", strings.Join(code, "\n"), strings.Join(said, "\n"))
	}
}

// codes are those of all problems that the packages make.
func codes(t *testing.T) map[string]bool {
	t.Helper()
	constants := sources{constants: map[string]string{}}
	all := make([]sources, len(answering))
	for i, directory := range answering {
		s, err := parse(directory)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(constants.constants, s.constants)
		all[i] = s
	}
	found := map[string]bool{}
	for _, s := range all {
		s.constants = constants.constants
		for _, made := range s.problems() {
			values, err := s.values(made.code, made.in)
			if err != nil {
				t.Errorf("%s: %v", s.files.Position(made.code.Pos()), err)
			}
			for _, value := range values {
				found[value] = true
			}
		}
	}
	return found
}

// sources are the functions and constants of a package.
type sources struct {
	files     *token.FileSet
	functions []*ast.FuncDecl
	constants map[string]string
}

func parse(directory string) (sources, error) {
	s := sources{files: token.NewFileSet(), constants: map[string]string{}}
	paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil || len(paths) == 0 {
		return s, fmt.Errorf("%s: %w", directory, fs.ErrNotExist)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, path, nil, 0)
		if err != nil {
			return s, err
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				s.functions = append(s.functions, d)
			case *ast.GenDecl:
				s.addConstants(d)
			}
		}
	}
	return s, nil
}

func (s sources) addConstants(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for i := range value.Values {
			if literal, ok := value.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				s.constants[value.Names[i].Name], _ = strconv.Unquote(literal.Value) // the parser has read it
			}
		}
	}
}

// made is the code of a problem, and the function that makes it.
type made struct {
	code ast.Expr
	in   *ast.FuncDecl
}

// problems are those that NewProblem makes, and the adapter's own, which imports no engine.
func (s sources) problems() (all []made) {
	for _, name := range []struct {
		function  string
		arguments int
		code      int
	}{{"NewProblem", 4, 1}, {"problem", 4, 1}} {
		for _, c := range s.calls(name.function) {
			if len(c.call.Args) == name.arguments {
				all = append(all, made{c.call.Args[name.code], c.in})
			}
		}
	}
	return all
}

// called is a call, and the function that it stands in.
type called struct {
	call *ast.CallExpr
	in   *ast.FuncDecl
}

func (s sources) calls(name string) (all []called) {
	for _, function := range s.functions {
		ast.Inspect(function, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && nameOf(call.Fun) == name {
				all = append(all, called{call, function})
			}
			return true
		})
	}
	return all
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// values are those that a string can have: a literal, a constant, a parameter by all of its function's calls, a sum, or
// what a function returns.
func (s sources) values(e ast.Expr, in *ast.FuncDecl) ([]string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return []string{value}, err
	case *ast.BinaryExpr:
		return s.sums(e, in)
	case *ast.CallExpr:
		return s.returned(nameOf(e.Fun))
	}
	if i := parameter(in, nameOf(e)); i >= 0 {
		return s.passed(in, i)
	}
	if value, ok := s.constants[nameOf(e)]; ok {
		return []string{value}, nil
	}
	return nil, fmt.Errorf("the values of a %T can't be told", e)
}

// parameter is the index of the function's parameter of that name, or -1.
func parameter(in *ast.FuncDecl, name string) int {
	i := 0
	for _, field := range in.Type.Params.List {
		for _, n := range field.Names {
			if n.Name == name {
				return i
			}
			i++
		}
	}
	return -1
}

func (s sources) passed(in *ast.FuncDecl, i int) (all []string, err error) {
	for _, c := range s.calls(in.Name.Name) {
		if len(c.call.Args) <= i {
			continue // another function of the name
		}
		values, err := s.values(c.call.Args[i], c.in)
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}
	return all, nil
}

func (s sources) sums(e *ast.BinaryExpr, in *ast.FuncDecl) (all []string, err error) {
	left, err := s.values(e.X, in)
	if err != nil {
		return nil, err
	}
	right, err := s.values(e.Y, in)
	for _, l := range left {
		for _, r := range right {
			all = append(all, l+r)
		}
	}
	return all, err
}

func (s sources) returned(function string) (all []string, err error) {
	for _, f := range s.functions {
		if f.Name.Name != function {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 && err == nil {
				var values []string
				values, err = s.values(r.Results[0], f)
				all = append(all, values...)
			}
			return err == nil
		})
	}
	return all, err
}
