package sim

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var (
	firstSeed  = flag.Uint64("sim.seed", 0, "the first seed of TestStories, and the one of TestReplay")
	stepsLeast = flag.Int("sim.steps", 50_000, "TestStories plays stories until they have that many steps")
	only       = flag.String("sim.only", "", "the faults that happen in TestReplay, separated by |; all, if it is empty")
)

func TestStories(t *testing.T) {
	steps, seed := 0, *firstSeed
	for ; steps < *stepsLeast; seed++ {
		story := tell(t, seed, nil, false)
		steps += story.Steps
		if len(story.Broken) > 0 {
			small := shrink(t, story)
			t.Errorf("seed %d: %s\n%s\nagain: %s", seed, strings.Join(story.Broken, "; "), strings.Join(small.Lines, "\n"), again(small))
		}
	}
	t.Logf("%d stories, %d steps", seed-*firstSeed, steps)
}

// again is the command that tells a story again.
func again(s Story) string {
	return fmt.Sprintf("go test ./idem/sim -run TestReplay -v -sim.seed %d -sim.only '%s'", s.Seed, strings.Join(s.Faults, "|"))
}

// TestReplay tells the story of one seed, with all of its faults or with some.
func TestReplay(t *testing.T) {
	var faults []string
	if *only != "" {
		faults = strings.Split(*only, "|")
	}
	story := tell(t, *firstSeed, faults, true)
	t.Log("\n" + strings.Join(story.Lines, "\n"))
	if len(story.Broken) > 0 {
		t.Error(strings.Join(story.Broken, "\n"))
	}
}

func TestTheSameSeedIsTheSameStory(t *testing.T) {
	for seed := range uint64(20) {
		a, b := tell(t, seed, nil, true), tell(t, seed, nil, true)
		if !slices.Equal(a.Lines, b.Lines) {
			for i := range a.Lines {
				if i >= len(b.Lines) || a.Lines[i] != b.Lines[i] {
					t.Fatalf("seed %d, line %d:\n%s\n%s", seed, i, a.Lines[i], b.Lines[min(i, len(b.Lines)-1)])
				}
			}
		}
	}
}
