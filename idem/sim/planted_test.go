//go:build prove

package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/protocol/check"
)

var (
	search = flag.String("sim.search", "", "look for stories that find the planted rules whose names match, and write them into the table")
	within = flag.Int("sim.within", stepsMost, "after how many steps the search gives a rule up")
	from   = flag.Uint64("sim.from", 0, "the seed of the search's first story")
)

// stepsMost is how many steps the stories may have together by which a rule is found: what one make simulate plays. A rule that takes more
// is one that nobody would find.
const stepsMost = 1_000_000

// beyond are rules whose removal no story finds, and why. Those that the checker calls redundant may be missing here.
var beyond = map[string]string{
	"a try leaves after its own deadline":                                  "the rule is the checker's own: in the real code package dynamo looks at both clocks before it sends, and its tests show that",
	"a call leaves after its own claim":                                    "package outbox makes no call either that has too little of its lease left",
	"a message of another release is judged":                               "package outbox keeps no row of such a message, so that it has nothing to write",
	"absence counts from the answer":                                       "it takes a call that is frozen and late for as long as both may be, and a probe that was asked some seconds before it lands",
	"what was restored counts as never called":                             "no story loses data",
	"what follows a restored message counts as never called":               "no story loses data",
	"absence of what was restored counts from its own lease":               "no story loses data",
	"what was lost in a call, or while the topic was asked, is not heeded": "no story loses data",
	"nobody knows what was lost, and it ends":                              "no story loses data",
	"a decline that outlived its claim settles after a loss":               "no story loses data",
	"a kept decline settles after a loss":                                  "no story loses data",
	"a decision from before a loss is carried out":                         "no story loses data",
	"a rejection lives as long as a resource that was not made":            "no story has records that live as long as their resources",
}

// found is a story that finds a planted rule.
type found struct {
	seed uint64
	// steps are those of the stories before it and its own, faults and lines its length once it is shrunk.
	steps, faults, lines int
	says                 string
}

func (f found) String() string {
	return fmt.Sprintf("seed %d, after %d steps, %d faults in %d lines: %s", f.seed, f.steps, f.faults, f.lines, f.says)
}

var table = filepath.Join("testdata", "planted.txt")

// TestPlantedRulesAreFound: with a rule removed from the real engine and worker, the story that found it once does so again. If it does
// not, because stories have changed, the rule is searched for:
//
//	go test -tags prove ./idem/sim -run TestPlanted -v -timeout 3h -sim.search .
func TestPlantedRulesAreFound(t *testing.T) {
	if *search != "" {
		look(t, regexp.MustCompile(*search))
		return
	}
	told := rows(t)
	for name, row := range told {
		var seed uint64
		var steps int
		if _, err := fmt.Sscanf(row, "seed %d, after %d steps", &seed, &steps); err != nil || steps > stepsMost {
			t.Errorf("%s takes %d steps to find, at most %d are allowed: %q, %v", name, steps, stepsMost, row, err)
		}
	}
	seeds := read(t)
	for _, m := range check.Removals() {
		seed, ok := seeds[m.Name]
		if _, not := beyond[m.Name]; ok == not && m.Redundant == "" {
			t.Errorf("%s: a story finds it: %v; it is said that none does: %v", m.Name, ok, not)
		}
		if !ok {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			if story := Tell(t, Begin{}, seed, nil, false); len(story.Broken) > 0 {
				t.Fatalf("the story of seed %d breaks by itself: %s", seed, story.Broken[0])
			}
			plant(t, m)
			promise := promiseOf(t, told[m.Name])
			story := Tell(t, Begin{}, seed, nil, false)
			if !slices.ContainsFunc(story.Broken, func(broken string) bool { return strings.HasPrefix(broken, promise) }) {
				t.Errorf("the story of seed %d does not find it any more: it breaks %q, want %q", seed, story.Broken, promise)
			}
		})
	}
	for name := range seeds {
		if !slices.ContainsFunc(check.Removals(), func(m check.Mutation) bool { return m.Name == name }) {
			t.Errorf("%s: no removal has that name, or another row removes the same rules", name)
		}
	}
	if len(seeds) < 60 {
		t.Errorf("stories find %d rules only", len(seeds))
	}
}

// promiseOf is the promise that the row's story breaks, as in "quota:". Another one that breaks instead is no witness of the rule: it
// may be the symptom of something else.
func promiseOf(t *testing.T, row string) string {
	t.Helper()
	_, says, _ := strings.Cut(row, " lines: ")
	promise, _, ok := strings.Cut(says, ":")
	if !ok {
		t.Fatalf("%q names no promise", row)
	}
	return promise + ":"
}

// look looks for the planted rules without a hint. Those of which it is said that no story finds them get less time.
func look(t *testing.T, names *regexp.Regexp) {
	for _, m := range check.Removals() {
		if !names.MatchString(m.Name) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			plant(t, m)
			_, not := beyond[m.Name]
			not = not || m.Redundant != ""
			most := *within
			if not {
				most /= 20
			}
			if f, ok := seek(t, most); ok {
				t.Log(f)
				write(t, m.Name, f)
			} else if !not {
				t.Errorf("not found within %d steps", most)
			}
		})
	}
}

// plant removes the rules of a mutation from everything, for as long as a test runs.
func plant(t *testing.T, m check.Mutation) {
	protocol.Planted = m.Off
	t.Cleanup(func() { protocol.Planted = protocol.Rules{} })
}

// seek plays stories of so many steps together, until one is broken.
func seek(t *testing.T, most int) (f found, ok bool) {
	for f.seed = *from; f.steps < most; f.seed++ {
		story := Tell(t, Begin{}, f.seed, nil, false)
		if f.steps += story.Steps; len(story.Broken) > 0 && !breaksByItself(t, f.seed) {
			small := Shrink(t, Begin{}, story)
			f.faults, f.lines, f.says = len(small.Faults), len(small.Lines), small.Broken[0]
			return f, true
		}
	}
	return f, false
}

// breaksByItself says that a story breaks with nothing removed: it finds something, and not the rule.
func breaksByItself(t *testing.T, seed uint64) bool {
	planted := protocol.Planted
	protocol.Planted = protocol.Rules{}
	defer func() { protocol.Planted = planted }()
	story := Tell(t, Begin{}, seed, nil, false)
	if len(story.Broken) > 0 {
		t.Errorf("the story of seed %d breaks by itself: %s", seed, story.Broken[0])
	}
	return len(story.Broken) > 0
}

// read returns the seeds in the table.
func read(t *testing.T) map[string]uint64 {
	t.Helper()
	seeds := map[string]uint64{}
	for name, row := range rows(t) {
		number, _, _ := strings.Cut(strings.TrimPrefix(row, "seed "), ",")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatalf("%s: %q: %v", table, row, err)
		}
		seeds[name] = seed
	}
	return seeds
}

// rows returns the rows of the table, by the names of the rules.
func rows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		all[lines[i]] = strings.TrimSpace(lines[i+1])
	}
	return all
}

// write writes a row of the table.
func write(t *testing.T, name string, f found) {
	t.Helper()
	all := rows(t)
	all[name] = f.String()
	var text bytes.Buffer
	for _, m := range check.Removals() {
		if row, ok := all[m.Name]; ok {
			fmt.Fprintf(&text, "%s\n    %s\n", m.Name, row)
		}
	}
	if err := os.WriteFile(table, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
