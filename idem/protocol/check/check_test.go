//go:build prove

package check

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/protocol"
)

var update = flag.Bool("update", false, "write testdata/table.txt")

// job is one exploration: a scenario with all rules, or with one removed.
type job struct {
	mutation *Mutation
	scenario Scenario
	report   Report
}

func jobs(t *testing.T) []*job {
	t.Helper()
	var all []*job
	byName := map[string]Scenario{}
	for _, sc := range Scenarios() {
		if _, twice := byName[sc.Name]; twice {
			t.Fatalf("two scenarios are called %q", sc.Name)
		}
		byName[sc.Name] = sc
		all = append(all, &job{scenario: sc})
	}
	for _, m := range Mutations() {
		sc, ok := byName[m.Scenario]
		if !ok {
			t.Fatalf("%q is removed in %q, which does not exist", m.Name, m.Scenario)
		}
		all = append(all, &job{mutation: &m, scenario: m.In(sc)})
	}
	return all
}

// row is what the table says of an exploration. How many states lie before a violation is no news, a story's length is.
func (j *job) row() string {
	r := &j.report
	switch {
	case j.mutation == nil:
		return fmt.Sprintf("%-45s %8d states, depth %d", j.scenario.Name, r.States, r.Depth)
	case j.mutation.Redundant != "":
		return fmt.Sprintf("%s [%s]\n    %s: holds. %s", j.mutation.Name, j.mutation.Keeps, j.scenario.Name, j.mutation.Redundant)
	}
	return fmt.Sprintf("%s [%s]\n    %s: %s, in %d steps", j.mutation.Name, j.mutation.Keeps, j.scenario.Name, r.Violation, len(r.Story))
}

// judge says what is wrong with an exploration.
func (j *job) judge(t *testing.T) {
	r := &j.report
	switch {
	case r.Truncated:
		t.Errorf("too many states: %d", r.States)
	case (j.mutation == nil || j.mutation.Redundant != "") && r.Violation != "":
		t.Errorf("%s\n%s", r.Violation, strings.Join(r.Story, "\n"))
	case j.mutation != nil && j.mutation.Redundant == "" && r.Violation == "":
		t.Error("nothing breaks without this rule")
	}
}

// tableFile says what came of each job.
var tableFile = filepath.Join("testdata", "table.txt")

// TestEveryRuleHoldsAndIsNeeded explores every scenario with all rules, and with each rule removed.
func TestEveryRuleHoldsAndIsNeeded(t *testing.T) {
	all := jobs(t)
	explored := chosen(t, all)
	t.Run("explore", func(t *testing.T) {
		for _, j := range explored {
			name := j.scenario.Name
			if j.mutation != nil {
				name = "if " + j.mutation.Name
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var off = j.mutation
				if off == nil {
					off = &Mutation{}
				}
				j.report = Explore(j.scenario, off.Off)
				j.judge(t)
			})
		}
	})
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // a part was asked for, and not what the table says of it
	}
	if len(explored) < len(all) {
		for _, j := range explored {
			rowStands(t, j)
		}
		return
	}
	var b strings.Builder
	b.WriteString(code(t))
	b.WriteString("\n# What is explored with all rules, in which nothing is violated.\n")
	rules := false
	for _, j := range all {
		if j.report.States == 0 { // -run left it out
			return
		}
		if j.mutation != nil && !rules {
			rules = true
			b.WriteString("\n# What breaks if a rule is removed, and in brackets the section that the rule keeps true.\n")
		}
		b.WriteString(j.row() + "\n")
	}
	golden(t, tableFile, b.String())
}

// rowStands compares what came of one job with the table.
func rowStands(t *testing.T, j *job) {
	t.Helper()
	table, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	if j.report.States > 0 && !strings.Contains(string(table), "\n"+j.row()+"\n") {
		t.Errorf("%s has no row\n%s", tableFile, j.row())
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := write(path, got, t.Failed()); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update writes:\n%s", path, got)
	}
}

// write refuses where an exploration was judged wrong: from then on that would be expected.
func write(path, text string, wrong bool) error {
	if wrong {
		return fmt.Errorf("%s is not written: an exploration failed, as printed above", path)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// TestTheTableIsNotWrittenWhileAnExplorationFails: nor is a file of it made.
func TestTheTableIsNotWrittenWhileAnExplorationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.txt")
	if err := write(path, "wrong", true); err == nil {
		t.Error("it was written")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
	if err := write(path, "right", false); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "right" {
		t.Errorf("the table has %q, %v", text, err)
	}
}

// TestEveryRuleKeepsAPromise: each rule names the section of the documents that would be false without it.
func TestEveryRuleKeepsAPromise(t *testing.T) {
	for _, m := range Mutations() {
		path, heading, _ := strings.Cut(m.Keeps, ": ")
		page, err := os.ReadFile(filepath.Join("..", "..", "..", path))
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if ok, err := regexp.Match(`(?m)^##+ `+regexp.QuoteMeta(heading)+`$`, page); !ok || err != nil {
			t.Errorf("%s keeps %q true, and %s has no such section: %v", m.Name, heading, path, err)
		}
	}
}

// TestEveryRuleIsRemoved: a rule without a mutation is a claim without a proof.
func TestEveryRuleIsRemoved(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "rules.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t([A-Z]\w+) +(Rule = iota +)?//`).FindAllSubmatch(source, -1)
	removed := map[protocol.Rule]bool{}
	for _, m := range Mutations() {
		for rule := range protocol.Rule(128) {
			removed[rule] = removed[rule] || m.Off.Has(rule)
		}
	}
	for rule, name := range names {
		if !removed[protocol.Rule(rule)] {
			t.Errorf("nothing shows what %s is for", name[1])
		}
	}
	if len(names) < 30 || removed[protocol.Rule(len(names))] {
		t.Errorf("%d rules are named, and others are removed", len(names))
	}
}

// TestTheReadmeCountsTheRules: how many are removed from the real code, in how many ways, and how many of these faults stories find.
func TestTheReadmeCountsTheRules(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	planted, err := os.ReadFile(filepath.Join(root, "idem", "sim", "testdata", "planted.txt"))
	if err != nil {
		t.Fatal(err)
	}
	faults, found, redundant := 0, 0, 0
	rules := map[protocol.Rule]bool{}
	for _, m := range Removals() {
		for rule := range protocol.Rule(128) {
			if m.Off.Has(rule) {
				rules[rule] = true
			}
		}
		faults++
		switch {
		case strings.Contains("\n"+string(planted), "\n"+m.Name+"\n"):
			found++
		case m.Redundant != "":
			redundant++
		}
	}
	said := regexp.MustCompile(`the\s+protocol's (\d+) rules are removed, each alone and some together: (\d+) faults\. The\s+stories\s+find (\d+) of\s+them\. (\w+) others\s+no\s+story\s+can\s+show,\s+and\s+a\s+test\s+says\s+why\. For\s+the\s+last\s+(\w+) another`)
	got := said.FindStringSubmatch(string(readme))
	if got == nil {
		t.Fatal("README.md does not count the rules")
	}
	// Which of the others has which reason, idem/sim says: a test there has a list of those that no story can find.
	want := []string{fmt.Sprint(len(rules)), fmt.Sprint(faults), fmt.Sprint(found), words[faults-found-redundant], words[redundant]}
	if got[4] = strings.ToLower(got[4]); !slices.Equal(got[1:], want) {
		t.Errorf("README.md counts %v, want %v", got[1:], want)
	}
}

// TestEachRemovalIsAnExperimentOfItsOwn: without the same rules the real code is the same, whatever the scenario.
func TestEachRemovalIsAnExperimentOfItsOwn(t *testing.T) {
	all := Removals()
	for i, m := range all {
		if slices.ContainsFunc(all[:i], func(other Mutation) bool { return other.Off == m.Off }) {
			t.Errorf("%s removes what another removal does", m.Name)
		}
	}
	for _, m := range Mutations() {
		if m.Off != (protocol.Rules{}) && !slices.ContainsFunc(all, func(other Mutation) bool { return other.Off == m.Off }) {
			t.Errorf("%s is not removed", m.Name)
		}
	}
}

var words = []string{"none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen"}
