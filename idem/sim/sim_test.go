package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var (
	firstSeed = flag.Uint64("sim.seed", 0, "the first seed of TestStories, and the one of TestReplay")
	atLeast   = flag.Int("sim.steps", 100_000, "TestStories plays stories until they have that many steps together")
	only      = flag.String("sim.only", "", "the faults that happen in TestReplay, separated by |; all, if it is empty")
)

// progressEvery is after how many steps TestStories says how far it is.
const progressEvery = 250_000

// One goroutine runs at a time: where two wake up at the same instant, they do so in the same order each time.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

func TestStories(t *testing.T) {
	least := *atLeast
	if testing.Short() {
		least = min(least, 20_000)
	}
	steps, seed := 0, *firstSeed
	for ; steps < least && !t.Failed(); seed++ {
		story := tell(t, seed, nil, false)
		if steps/progressEvery != (steps+story.Steps)/progressEvery {
			t.Logf("%d stories, %d steps so far", seed-*firstSeed, steps)
		}
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
	for seed := range uint64(50) {
		a, b := tell(t, seed, nil, true), tell(t, seed, nil, true)
		if slices.Equal(a.Lines, b.Lines) {
			continue
		}
		a.Lines, b.Lines = append(a.Lines, "the end of one"), append(b.Lines, "the end of the other")
		for i, line := range a.Lines {
			if line != b.Lines[i] {
				t.Fatalf("seed %d, line %d:\n%s\n%s", seed, i, line, b.Lines[i])
			}
		}
	}
}
