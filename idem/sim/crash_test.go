package sim

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

var (
	planned = flag.String("sim.plan", "", "the story of TestReplayPlan: a kind, and after each ; a fault's name, = and its way")
	deep    = flag.Int("sim.deep", 0, "in how many ways each second call is cut off as well; 2 are those that leave nothing on the wire, 8 are all")
	every   = flag.Int("sim.every", 1, "of the stories with a second cut, every n-th is played")
	skipped = flag.Int("sim.skipped", 0, "how many of them are left out before the first")
)

// Each way to protect a request is taken through every cut of every call that anybody makes to the store or the provider; and, with
// -sim.deep, through every cut of every later call as well. Clients come again, and the background runs; at each step and at the end
// the invariants hold.
func TestEveryKindSurvivesACutAtEveryCallAndThenAnother(t *testing.T) {
	var total cuts
	t.Cleanup(func() { t.Log(total.String()) })
	for _, k := range kinds {
		for name, under := range circumstances(t, k) {
			t.Run(fmt.Sprintf("%s, %s", k, name), func(t *testing.T) {
				t.Parallel()
				_, calls := under.told(t)
				if effects := k.topic() != "" || k.wrapped(); effects && !slices.ContainsFunc(calls, plannedCall.providers) || !under.acts(calls) {
					t.Fatalf("the provider is not called, or there is no %s: the test proves less than it says", under.by)
				}
				total.calls.Add(int64(len(calls)))
				under.cutEach(t, calls, &total)
			})
		}
	}
}

// cuts counts what was tried.
type cuts struct{ calls, one, two, seconds, steps atomic.Int64 }

func (c *cuts) String() string {
	return fmt.Sprintf("%d calls; %d stories with one cut, %d of %d with two; %d steps", c.calls.Load(), c.one.Load(), c.two.Load(), c.seconds.Load(), c.steps.Load())
}

// cutEach cuts each call off, and after it each later one. Where somebody must act, one of two cuts is of their calls.
func (c circumstance) cutEach(t *testing.T, calls []plannedCall, total *cuts) {
	seconds := -*skipped
	for _, call := range calls {
		for _, way := range call.ways {
			once := c.with(call.name, way)
			steps, later := once.told(t)
			total.one.Add(1)
			total.steps.Add(steps)
			at := slices.IndexFunc(later, func(c plannedCall) bool { return c.name == call.name })
			for _, another := range later[at+1:] {
				if !c.theirs(call) && !c.theirs(another) {
					continue
				}
				for n, way := range another.ways {
					if n == *deep {
						break
					}
					total.seconds.Add(1)
					if seconds++; (seconds-1)%*every != 0 {
						continue
					}
					steps, _ := once.with(another.name, way).told(t)
					total.two.Add(1)
					total.steps.Add(steps)
				}
			}
			if t.Failed() {
				return // one story is enough to read
			}
		}
	}
}

func (p plan) with(name string, way int) plan {
	faults := maps.Clone(p.faults)
	faults[name] = way
	return plan{p.kind, faults}
}

// told plays the story, and fails with all of it where it breaks an invariant.
func (p plan) told(t *testing.T) (steps int64, calls []plannedCall) {
	t.Helper()
	story, calls := p.tell(t, false)
	if len(story.Broken) > 0 {
		story, _ = p.tell(t, true)
		t.Errorf("%s\n%s\nagain: go test ./idem/sim -run TestReplayPlan -v -sim.plan '%s'", strings.Join(story.Broken, "; "), strings.Join(story.Lines, "\n"), p)
	}
	return int64(story.Steps), calls
}

// String is as -sim.plan takes it.
func (p plan) String() string {
	text := string(p.kind)
	for _, name := range slices.Sorted(maps.Keys(p.faults)) {
		text += fmt.Sprintf(";%s=%d", name, p.faults[name])
	}
	return text
}

// TestReplayPlan tells one story of a plan.
func TestReplayPlan(t *testing.T) {
	k, rest, _ := strings.Cut(*planned, ";")
	p := plan{kind(k), map[string]int{}}
	if k == "" {
		p.kind = atomicWrite
	}
	for _, fault := range strings.FieldsFunc(rest, func(r rune) bool { return r == ';' }) {
		name, way, _ := strings.Cut(fault, "=")
		n, err := strconv.Atoi(way)
		if err != nil {
			t.Fatal(err)
		}
		p.faults[name] = n
	}
	story, _ := p.tell(t, true)
	t.Log("\n" + strings.Join(story.Lines, "\n"))
	if len(story.Broken) > 0 {
		t.Error(strings.Join(story.Broken, "\n"))
	}
}
