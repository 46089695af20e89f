package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Target is a package whose code is changed by rule, and the tests that should notice.
type Target struct {
	// Directory is the package's, from the checkout's root.
	Directory string
	Tests     []Tests
}

// Generate changes the targets by rules, and returns as many of the changes as sample says: the same ones for the same seed. Accepted
// are the names of those that no test can notice, with the reason.
func Generate(root string, targets []Target, seed uint64, sample int, accepted map[string]string) ([]Mutant, error) {
	var all []Mutant
	for _, target := range targets {
		made, err := target.mutants(root)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	chance := rand.New(rand.NewPCG(seed, 0))
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(sample, len(all))]
	for i := range all {
		all[i].Survives = accepted[all[i].Name]
	}
	return all, nil
}

// mutants are all changes of a target.
func (t Target) mutants(root string) (all []Mutant, err error) {
	files, err := filepath.Glob(filepath.Join(root, t.Directory, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_prove.go") || filepath.Base(path) == "doc.go" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		made, err := mutantsOf(filepath.ToSlash(filepath.Join(t.Directory, filepath.Base(path))), raw)
		if err != nil {
			return nil, err
		}
		for i := range made {
			made[i].Tests = t.Tests
		}
		all = append(all, made...)
	}
	return all, nil
}

// maker makes the changes of one file.
type maker struct {
	file   string
	source string
	set    *token.FileSet
	all    []Mutant
	// same counts names, which would otherwise be equal where a line stands in a file twice.
	same map[string]int
}

// mutantsOf are the changes of one file.
func mutantsOf(file string, source []byte) ([]Mutant, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	m := &maker{file: file, source: string(source), set: set, same: map[string]int{}}
	for _, declaration := range parsed.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
			ast.Inspect(function.Body, m.visit)
		}
	}
	return m.all, nil
}

// swapped are operators that are mistaken for each other.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
}

func (m *maker) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.BinaryExpr:
		if other, ok := swapped[n.Op]; ok {
			at := m.offset(n.OpPos)
			m.change("mistakes "+n.Op.String()+" for "+other.String(), at, at+len(n.Op.String()), other.String())
		}
	case *ast.IfStmt:
		m.replace("turns a condition around", n.Cond, "!("+m.text(n.Cond)+")")
	case *ast.CaseClause:
		for _, condition := range n.List {
			if _, comparison := condition.(*ast.BinaryExpr); comparison {
				m.replace("never takes a case", condition, "("+m.text(condition)+") && false")
			}
		}
	case *ast.ExprStmt:
		m.replace("leaves a call out", n, "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			m.replace("leaves an assignment out", n, "")
		}
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			m.replace("says the opposite", n, map[string]string{"true": "false", "false": "true"}[n.Name])
		}
	case *ast.FuncLit, *ast.BlockStmt:
	}
	return true
}

func (m *maker) offset(at token.Pos) int { return m.set.Position(at).Offset }

func (m *maker) text(n ast.Node) string { return m.source[m.offset(n.Pos()):m.offset(n.End())] }

func (m *maker) replace(what string, n ast.Node, by string) {
	m.change(what, m.offset(n.Pos()), m.offset(n.End()), by)
}

// change notes a change. Its name has the line's text and not its number, so that it is the same after changes elsewhere.
func (m *maker) change(what string, from, to int, by string) {
	begin := strings.LastIndexByte(m.source[:from], '\n') + 1
	end := from + strings.IndexByte(m.source[from:]+"\n", '\n')
	name := fmt.Sprintf("%s %s: %s", m.file, what, strings.TrimSpace(m.source[begin:end]))
	if m.same[name]++; m.same[name] > 1 {
		name = fmt.Sprintf("%s (%d)", name, m.same[name])
	}
	m.all = append(m.all, Mutant{Name: name, File: m.file, Old: m.source[from:to], New: by, at: from, made: true})
}

// Names are those of mutants, in order.
func Names(all []Mutant) (names []string) {
	for _, m := range all {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}
