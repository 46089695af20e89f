package mutants

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// The list can't rot unseen: the code that a mutant changes must be there.
func TestEveryListedMutantApplies(t *testing.T) {
	all := Listed()
	for _, m := range all {
		if _, err := m.file(root); err != nil {
			t.Error(err)
		}
		if len(m.Tests) == 0 || m.Old == m.New {
			t.Errorf("%q has %d sets of tests, and changes %t", m.Name, len(m.Tests), m.Old != m.New)
		}
	}
	if names := Names(all); len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("two mutants have one name")
	}
	if len(all) < 120 {
		t.Errorf("%d mutants", len(all))
	}
}

// What -update writes is no second source: a test of such a file kills no mutant.
func TestNoMutantDiesByAFileThatItsOwnCodeWrites(t *testing.T) {
	written := map[string][]string{}
	seen := 0
	demand := func(tests Tests) {
		for directory := range strings.FieldsSeq(tests.Packages) {
			if _, ok := written[directory]; !ok {
				written[directory] = writers(t, filepath.Join(root, directory))
			}
			for _, name := range written[directory] {
				runs := tests.Run == "" || regexp.MustCompile(tests.Run).MatchString(name)
				if seen++; runs && (tests.Skip == "" || !regexp.MustCompile(tests.Skip).MatchString(name)) {
					t.Errorf("%+v runs %s of %s, which -update rewrites", tests, name, directory)
				}
			}
		}
	}
	for _, m := range Listed() {
		for _, tests := range m.Tests {
			demand(tests)
		}
	}
	for _, target := range Targets() {
		for _, tests := range target.Tests {
			demand(tests)
		}
	}
	if seen == 0 {
		t.Error("no test of the sets has an -update")
	}
}

// writers are a package's tests that read the flag -update, themselves or in functions that they call. One of which a set runs a part only
// compares nothing with the file.
func writers(t *testing.T, directory string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]map[string]bool{} // by function, what it names
	for _, path := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok {
				named := map[string]bool{}
				ast.Inspect(f, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.StarExpr:
						if flag, ok := n.X.(*ast.Ident); ok && flag.Name == "update" {
							named["-update"] = true
						}
					case *ast.CallExpr:
						if called, ok := n.Fun.(*ast.Ident); ok {
							named[called.Name] = true
						}
					}
					return true
				})
				uses[f.Name.Name] = named
			}
		}
	}
	writes := map[string]bool{"-update": true}
	for more := true; more; {
		more = false
		for f, named := range uses {
			for name := range named {
				if writes[name] && !writes[f] {
					writes[f], more = true, true
				}
			}
		}
	}
	for f := range writes {
		if strings.HasPrefix(f, "Test") {
			names = append(names, f)
		}
	}
	return names
}

// Seeds that count up give each mutant its turn, once a round, and one seed is always the same mutants.
func TestSamplesTakeTurns(t *testing.T) {
	all := Listed()
	for _, n := range []int{1, 4, 7, len(all) - 1} {
		took := map[string]int{}
		turns := (len(all) + n - 1) / n
		for seed := range uint64(2 * turns) {
			some := Sample(all, n, 1000*uint64(turns)+seed)
			if len(some) == 0 || len(some) > n || Names(some)[0] != Names(Sample(all, n, 1000*uint64(turns)+seed))[0] {
				t.Fatalf("%d mutants of seed %d, want at most %d", len(some), seed, n)
			}
			for _, m := range some {
				took[m.Name]++
			}
		}
		for _, m := range all {
			if took[m.Name] != 2 {
				t.Errorf("by %d: %q had %d turns in two rounds", n, m.Name, took[m.Name])
			}
		}
	}
	for _, n := range []int{-1, 0, len(all), len(all) + 1} {
		if some := Sample(all, n, 5); len(some) != len(all) {
			t.Errorf("a sample of %d is %d mutants, want all", n, len(some))
		}
	}
}

// toy is a module with one function and a test of it.
func toy(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module toy\n\ngo 1.26\n",
		"sign.go": `package toy

// Sign is -1, 0 or 1.
func Sign(n int) int {
	calls++
	if n < 0 {
		return -1
	}
	if n > 0 {
		return 1
	}
	return 0
}

var calls int
`,
		"sign_test.go": `package toy

import "testing"

func TestSign(t *testing.T) {
	if Sign(-2) != -1 || Sign(3) != 1 {
		t.Error("wrong")
	}
}
`,
		"nothing_test.go": `package toy

import "testing"

func TestOther(*testing.T) {}
`,
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func run(t *testing.T, root string, all ...Mutant) Report {
	t.Helper()
	t.Setenv("GOWORK", "off")
	var told strings.Builder
	report, err := Run(context.Background(), Config{Root: root, Out: &told, Jobs: 2}, all)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(told.String(), "\n") != len(all) {
		t.Errorf("%d mutants are told of as %q", len(all), told.String())
	}
	return report
}

// A night's score is kept, with what was wrong.
func TestAReportIsKeptAsMarkdown(t *testing.T) {
	report := Report{Killed: 18, Explained: 1, NotBuilt: 3, Wrong: []string{"survived: a fence\n    - a\n    + b"}}
	const want = "### Mutants of seed 7\n\n18 killed of 20 (90.0 %), 1 survivors explained, 1 wrong, 3 that do not compile\n" +
		"\n```text\nsurvived: a fence\n    - a\n    + b\n```\n"
	if got := report.Markdown(7); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFateIsWhatTheTestsMakeOfAMutant(t *testing.T) {
	directory, tests := toy(t), []Tests{{Packages: "."}}
	mutant := func(name, from, to, survives string) Mutant {
		return Mutant{Name: name, File: "sign.go", Old: from, New: to, Tests: tests, Survives: survives}
	}
	report := run(t, directory,
		mutant("noticed", "return -1", "return 1", ""),
		mutant("not noticed", "return 0", "return 7", ""),
		mutant("not noticed, and explained", "calls++", "calls--", "nobody reads it"),
		mutant("noticed, and explained all the same", "return 1", "return 2", "nobody looks"),
		mutant("no code", "return 0", "return nothing", ""),
		Mutant{Name: "no tests", File: "sign.go", Old: "return 0", New: "return 8", Tests: []Tests{{Packages: ".", Run: "Nobody"}}},
		Mutant{Name: "the second tests", File: "sign.go", Old: "return -1", New: "return 3", Tests: []Tests{{Packages: ".", Run: "TestSign/none"}, {Packages: "."}}},
	)
	if report.Killed != 2 || report.Explained != 1 || len(report.Wrong) != 4 {
		t.Fatalf("%v\n%s", report, strings.Join(report.Wrong, "\n"))
	}
	for _, want := range []string{"survived: not noticed\n    sign.go\n    - return 0\n    + return 7", "killed, and the list says that it survives: noticed", "not built: no code", "unhealthy: no tests"} {
		if !slices.ContainsFunc(report.Wrong, func(wrong string) bool { return strings.Contains(wrong, want) }) {
			t.Errorf("%q is missing in\n%s", want, strings.Join(report.Wrong, "\n"))
		}
	}
}

// What does not end is noticed only where its tests end quickly otherwise. Where they are slow anyway nobody knows what they would have
// said: the next tests are asked, and if none fails it is no kill.
func TestATestThatHangsKillsNothingUnlessItIsQuickOtherwise(t *testing.T) {
	t.Setenv("GOWORK", "off")
	directory, slow, quick, other := toy(t), Tests{Packages: "."}, Tests{Packages: ".", Run: "TestSign"}, Tests{Packages: ".", Run: "TestOther"}
	hangs := func(tests ...Tests) Mutant {
		return Mutant{Name: "hangs", File: "sign.go", Old: "	if n < 0 {", New: "	for n == 3 {\n	}\n	if n < 0 {", Tests: tests}
	}
	lab := &laboratory{Config: Config{Root: directory, Patience: 2 * time.Second}, clean: map[Tests]*clean{
		slow: {fate: Survived, took: time.Second}, quick: {fate: Survived, took: 20 * time.Millisecond}, other: {fate: Survived, took: time.Millisecond},
	}}
	for _, c := range lab.clean {
		c.once.Do(func() {})
	}
	// On a machine that stands still for two seconds tests that pass are stuck, too: where another fate is due they are tried again.
	try := func(m Mutant, want Fate) (fate Fate, output string, err error) {
		for range 3 {
			fate, output, err = lab.try(t.Context(), filepath.Join(t.TempDir(), "overlay"), m)
			if err != nil || fate != Stuck || want == Stuck {
				break
			}
		}
		return fate, output, err
	}
	for i, c := range []struct {
		m    Mutant
		fate Fate
	}{
		{hangs(quick), Stuck}, {hangs(slow), Hung}, {hangs(slow, quick), Stuck}, {hangs(other), Survived}, {hangs(slow, other), Hung}, {hangs(other, slow), Hung},
	} {
		fate, output, err := try(c.m, c.fate)
		if err != nil || fate != c.fate {
			t.Errorf("%d: %s, %v; want %s\n%s", i, fate, err, c.fate, output)
		}
	}
	var report Report
	report.add(hangs(slow), Hung, "the tests of . did not end")
	report.add(hangs(quick), Stuck, "")
	if report.Killed != 1 || len(report.Wrong) != 1 || !strings.Contains(report.Wrong[0], "hung: hangs") || !strings.Contains(report.Wrong[0], "did not end") {
		t.Errorf("%+v", report)
	}
}

// Patience is each set's own: ten times what it takes on the clean code, within its bounds.
func TestPatienceIsMeasured(t *testing.T) {
	l := &laboratory{}
	for _, c := range []struct {
		took, patience time.Duration
		sure           bool
	}{
		{time.Second, time.Minute, true}, {6 * time.Second, time.Minute, true}, {20 * time.Second, 200 * time.Second, true},
		{time.Minute, 10 * time.Minute, true}, {time.Minute + 1, 10 * time.Minute, false}, {time.Hour, 10 * time.Minute, false},
	} {
		if patience, sure := l.patience(c.took); patience != c.patience || sure != c.sure {
			t.Errorf("%v on the clean code: %v, %v; want %v, %v", c.took, patience, sure, c.patience, c.sure)
		}
	}
}

// A test that fails once and not again kills nothing: it is flaky, or the machine was busy. The next tests may.
func TestATestThatFailsOnceKillsNothing(t *testing.T) {
	directory := toy(t)
	flaky := `package toy

import (
	"os"
	"testing"
)

func TestFlaky(t *testing.T) {
	if Sign(-1) > 0 && os.Mkdir(os.Getenv("FLAKY"), 0o700) == nil {
		t.Error("the first time only")
	}
}
`
	if err := os.WriteFile(filepath.Join(directory, "flaky_test.go"), []byte(flaky), 0o600); err != nil {
		t.Fatal(err)
	}
	once, sure := Tests{Packages: ".", Run: "TestFlaky"}, Tests{Packages: ".", Run: "TestSign"}
	for name, c := range map[string]struct {
		tests []Tests
		want  string
	}{"alone": {[]Tests{once}, "unhealthy: m"}, "beside another": {[]Tests{once, sure}, ""}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FLAKY", filepath.Join(t.TempDir(), "failed"))
			report := run(t, directory, Mutant{Name: "m", File: "sign.go", Old: "return -1", New: "return 1", Tests: c.tests})
			if c.want == "" && (report.Killed != 1 || len(report.Wrong) > 0) {
				t.Errorf("%+v, want a kill", report)
			}
			if c.want != "" && (report.Killed > 0 || len(report.Wrong) != 1 || !strings.Contains(report.Wrong[0], c.want) || !strings.Contains(report.Wrong[0], "not again")) {
				t.Errorf("%+v, want %q", report, c.want)
			}
		})
	}
}

// Of a test of which a part is run, the others are not asked either when what failed is run once more.
func TestAPartOfATestIsRunOnceMoreAlone(t *testing.T) {
	directory := toy(t)
	parts := `package toy

import (
	"os"
	"testing"
)

func TestParts(t *testing.T) {
	t.Run("flaky", func(t *testing.T) {
		if Sign(-1) > 0 && os.Mkdir(os.Getenv("FLAKY"), 0o700) == nil {
			t.Error("the first time only")
		}
	})
	t.Run("sure", func(t *testing.T) {
		if Sign(-1) > 0 {
			t.Error("each time")
		}
	})
}
`
	if err := os.WriteFile(filepath.Join(directory, "parts_test.go"), []byte(parts), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FLAKY", filepath.Join(t.TempDir(), "failed"))
	m := Mutant{Name: "m", File: "sign.go", Old: "return -1", New: "return 1", Tests: []Tests{{Packages: ".", Run: "^TestParts$/^flaky$"}}}
	if report := run(t, directory, m); report.Killed > 0 || len(report.Wrong) != 1 || !strings.Contains(report.Wrong[0], "not again") {
		t.Errorf("%+v, want it unhealthy", report)
	}
}

// What is accepted is a change that the rules make, so that no reason outlives its code.
func TestEveryAcceptedMutantIsMade(t *testing.T) {
	accepted, err := Accepted()
	if err != nil {
		t.Fatal(err)
	}
	all, err := Generate(root, Targets(), 1, 1_000_000, accepted)
	if err != nil {
		t.Fatal(err)
	}
	names := Names(all)
	for name := range accepted {
		if _, made := slices.BinarySearch(names, name); !made {
			t.Errorf("no rule makes %q", name)
		}
	}
}

// Tests that fail on the clean code kill nothing.
func TestTestsThatFailAnywayKillNothing(t *testing.T) {
	directory := toy(t)
	if err := os.WriteFile(filepath.Join(directory, "bad_test.go"), []byte("package toy\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(\"always\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := run(t, directory, Mutant{Name: "m", File: "sign.go", Old: "return -1", New: "return 1", Tests: []Tests{{Packages: "."}}})
	if report.Killed != 0 || len(report.Wrong) != 1 || !strings.Contains(report.Wrong[0], "unhealthy: m") || !strings.Contains(report.Wrong[0], "on the clean code") {
		t.Errorf("%+v", report)
	}
}

func TestCodeThatIsGoneOrStandsTwiceIsAnError(t *testing.T) {
	directory := toy(t)
	for _, old := range []string{"return 5", "return "} {
		_, err := Run(context.Background(), Config{Root: directory, Out: os.Stderr}, []Mutant{{Name: "m", File: "sign.go", Old: old}})
		if err == nil || !strings.Contains(err.Error(), "must be once") {
			t.Errorf("%q: %v", old, err)
		}
	}
}

func TestGeneratedMutantsChangeOnePlaceEach(t *testing.T) {
	directory := toy(t)
	targets := []Target{{Directory: ".", Tests: []Tests{{Packages: "."}}}}
	all, err := Generate(directory, targets, 1, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sign.go mistakes < for <=: if n < 0 {", "sign.go mistakes > for >=: if n > 0 {",
		"sign.go turns a condition around: if n < 0 {", "sign.go turns a condition around: if n > 0 {",
	}
	if got := Names(all); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	some, err := Generate(directory, targets, 1, 2, nil)
	if err != nil || fmt.Sprint(Names(some)) != fmt.Sprint(Names(all[:2])) {
		t.Errorf("%q of one seed, and %q, %v", Names(some), Names(all[:2]), err)
	}
	if report := run(t, directory, all...); report.Killed != 2 || len(report.Wrong) != 2 { // nobody asks for the sign of 0
		t.Errorf("%v %q", report, report.Wrong)
	}
}
