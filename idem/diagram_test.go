package idem_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite golden files")

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// golden compares with a file. -update writes it where the tests in the directory pass: the file is made by the code that it shows, and
// would follow every fault of it.
func golden(t *testing.T, path, got, sources string) {
	t.Helper()
	want, err := os.ReadFile(path)
	switch {
	case err != nil:
		t.Fatal(err)
	case got == string(want):
	case *update:
		if err := confirmed(t, sources); err != nil {
			t.Fatalf("%s is not written: %v", path, err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs; look at the difference after running with -update:\n%s", path, got)
	}
}

// confirmed runs the tests in the directory, and says what failed.
func confirmed(t *testing.T, directory string) error {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-short", directory).CombinedOutput(); err != nil {
		return fmt.Errorf("the tests in %s fail (%w):\n%s", directory, err, out)
	}
	return nil
}

// statesSource are the tests of the machines, with their tables: these are written only where tests by behaviour pass, so that a
// transition that is new in the diagrams has gone through them.
const statesSource = "./protocol"

func TestAGoldenFileIsNotWrittenWhileItsSourcesFail(t *testing.T) {
	err := confirmed(t, "./protocol/testdata/failing")
	if err == nil || !strings.Contains(err.Error(), "--- FAIL: TestFails") {
		t.Errorf("confirmed by tests that fail: %v", err)
	}
}

const statesFile = "../docs/states.md"

const statesProse = "# States\n" +
	"This page is generated from the machines of `idem/protocol`, which are the only code that decides\n" +
	"what a record or a message becomes. They were given every errand and every answer in every situation\n" +
	"that can arise, and each arrow is a write that they made. A test fails as soon as this page says\n" +
	"anything else. After a change write it anew:\n" +
	"\n" +
	"<!-- not run: it rewrites this page -->\n```sh\n" +
	"go test ./idem -run TestStateDiagrams -update\n" +
	"```\n" +
	"\n" +
	"What a state means, and what a request that meets it gets, is in [semantics.md](semantics.md).\n" +
	"\n"

// An edge is a transition: "event / effect", as UML has it.
type edge struct{ from, to, label string }

// A diagram holds, for each edge, the situations that it was seen in: by dimension, the values of it.
type diagram struct {
	edges      map[edge]map[string]map[string]bool
	dimensions []dimension
}

// A dimension of a situation is named on an edge only where the edge depends on it.
type dimension struct {
	name   string
	values []string
	// say words the values that an edge was seen with, where those are not all; "" says nothing.
	say func(seen []string) string
}

func (d *diagram) add(from, to, label string, situation map[string]string) {
	e := edge{from, to, label}
	if d.edges == nil {
		d.edges = map[edge]map[string]map[string]bool{}
	}
	if d.edges[e] == nil {
		d.edges[e] = map[string]map[string]bool{}
	}
	for name, value := range situation {
		if d.edges[e][name] == nil {
			d.edges[e][name] = map[string]bool{}
		}
		d.edges[e][name][value] = true
	}
}

// when words the situations of an edge that it depends on: those of which it was not seen with every value.
func (d *diagram) when(e edge) string {
	var when []string
	for _, dimension := range d.dimensions {
		values := slices.DeleteFunc(slices.Clone(dimension.values), func(v string) bool { return !d.edges[e][dimension.name][v] })
		if len(values) > 0 && len(values) < len(dimension.values) {
			if said := dimension.say(values); said != "" {
				when = append(when, said)
			}
		}
	}
	return strings.Join(when, ", ")
}

// between calls visit for every two states that have edges, in the order of states, with these edges in the order of their
// labels.
func (d *diagram) between(states []string, visit func(edges []edge)) {
	drawn := 0
	for _, from := range states {
		for _, to := range states {
			var edges []edge
			for e := range d.edges {
				if e.from == from && e.to == to {
					edges = append(edges, e)
				}
			}
			if edges == nil {
				continue
			}
			slices.SortFunc(edges, func(a, b edge) int { return strings.Compare(a.label, b.label) })
			visit(edges)
			drawn += len(edges)
		}
	}
	if drawn != len(d.edges) {
		panic(fmt.Sprintf("%d edges between states that are not drawn", len(d.edges)-drawn))
	}
}

// mermaid draws the diagram, with one arrow between two states, whose lines are the edges.
func (d *diagram) mermaid(states []string) string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	d.between(states, func(edges []edge) {
		labels := make([]string, len(edges))
		for i, e := range edges {
			if labels[i] = e.label; d.when(e) != "" {
				labels[i] += " [" + d.when(e) + "]"
			}
		}
		slices.Sort(labels)
		fmt.Fprintf(&b, "    %s --> %s: %s\n", edges[0].from, edges[0].to, strings.Join(labels, "<br>"))
	})
	b.WriteString("```\n")
	return b.String()
}

// only says a text where that one value alone was seen.
func only(text string, value string) func([]string) string {
	return func(seen []string) string {
		if slices.Equal(seen, []string{value}) {
			return text
		}
		return ""
	}
}

// product calls visit with every situation that the dimensions have.
func product(dimensions []dimension, visit func(situation map[string]string)) {
	situation := map[string]string{}
	var choose func(rest []dimension)
	choose = func(rest []dimension) {
		if len(rest) == 0 {
			visit(maps.Clone(situation))
			return
		}
		for _, value := range rest[0].values {
			situation[rest[0].name] = value
			choose(rest[1:])
		}
	}
	choose(dimensions)
}

// declared reads from a package's source what is there to be tried: the types that have the method, and the constants of
// the types.
func declared(t *testing.T, dir, method string, constantsOf ...string) (types, constants []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil || n.Name.Name != method {
					return true
				}
				if of, ok := n.Recv.List[0].Type.(*ast.Ident); ok {
					types = append(types, of.Name)
				}
			case *ast.ValueSpec:
				if of, ok := n.Type.(*ast.Ident); ok && slices.Contains(constantsOf, of.Name) {
					constants = append(constants, strings.Trim(n.Values[0].(*ast.BasicLit).Value, `"`))
				}
			}
			return true
		})
	}
	slices.Sort(types)
	slices.Sort(constants)
	return types, constants
}

// wantAll wants every one that is declared to have been tried, and no other.
func wantAll[V any](t *testing.T, what string, declared []string, tried []V, name func(V) string) {
	t.Helper()
	names := map[string]bool{}
	for _, v := range tried {
		names[name(v)] = true
	}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, declared) {
		t.Errorf("%s: tried %v, declared are %v", what, got, declared)
	}
}

func TestStateDiagramsShowEveryTransition(t *testing.T) {
	golden(t, statesFile, statesProse+"## A record\n"+recordProse+recordDiagram(t)+"\n## A message\n"+messageProse+messageDiagram(t), statesSource)
}
