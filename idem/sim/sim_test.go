package sim

import (
	"flag"
	"os"
	"runtime"
	"testing"
)

var (
	firstSeed = flag.Uint64("sim.seed", 0, "the first seed of TestStories, and the one of TestReplay")
	atLeast   = flag.Int("sim.steps", 100_000, "TestStories plays stories until they have that many steps together")
	only      = flag.String("sim.only", "", "the faults that happen in TestReplay, separated by |; all, if it is empty")
)

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
	Stories(t, Begin{}, "go test ./idem/sim -run TestReplay -v", *firstSeed, least)
}

// TestReplay tells the story of one seed, with all of its faults or with some.
func TestReplay(t *testing.T) { Replay(t, Begin{}, *firstSeed, *only) }

func TestTheSameSeedIsTheSameStory(t *testing.T) { Twice(t, Begin{}, 50) }
