package payments_test

import (
	"flag"
	"runtime"
	"testing"

	"github.com/idem-go/idem-aws/idem/sim"
)

// The simulator of idem/sim plays this application's own code: clients who retry, ask twice and with another payload, two tenants with
// the same keys, lost and late calls, processes that die and freeze, sweeps, the reconciler, people and webhooks, from a seed.

var (
	simSeed  = flag.Uint64("sim.seed", 0, "the first seed of TestSimulatedStories, and the one of TestSimulatedReplay")
	simSteps = flag.Int("sim.steps", 20_000, "TestSimulatedStories plays stories until they have that many steps together")
	simOnly  = flag.String("sim.only", "", "the faults that happen in TestSimulatedReplay, separated by |; all, if it is empty")
)

// alone has one goroutine run at a time: where two wake up at the same instant, they do so in the same order each time.
func alone(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestSimulatedStories(t *testing.T) {
	alone(t)
	sim.Stories(t, beginSimulated(), "go test ./functions/internal/payments -run TestSimulatedReplay -v", *simSeed, *simSteps)
}

// TestSimulatedReplay tells the story of one seed, with all of its faults or with some.
func TestSimulatedReplay(t *testing.T) {
	alone(t)
	sim.Replay(t, beginSimulated(), *simSeed, *simOnly)
}

func TestTheSameSeedIsTheSameSimulation(t *testing.T) {
	alone(t)
	sim.Twice(t, beginSimulated(), 30)
}
