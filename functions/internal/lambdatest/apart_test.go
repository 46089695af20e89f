package lambdatest

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// calls are rounds of ten calls of which each takes so many milliseconds, but the last one of each round.
func calls(rounds, each, last int) (all [][]time.Duration) {
	for range rounds {
		round := slices.Repeat([]time.Duration{time.Duration(each) * time.Millisecond}, 9)
		all = append(all, append(round, time.Duration(last)*time.Millisecond))
	}
	return all
}

// What waits for a hang is told from what the machine takes: by each call, or by one of each round.
func TestIsolationIsToldFromAMachineThatIsSlow(t *testing.T) {
	slowRounds := slices.Concat(calls(6, 20, 30), calls(4, 400, 400))
	for name, c := range map[string]struct {
		prompt, hanging [][]time.Duration
		isolated        bool
	}{
		"the same":                         {calls(10, 20, 30), calls(10, 20, 30), true},
		"twice":                            {calls(10, 20, 30), calls(10, 40, 60), true},
		"each call more than twice":        {calls(10, 20, 50), calls(10, 41, 50), false},
		"one of each round":                {calls(10, 20, 30), calls(10, 20, 61), false},
		"four of ten rounds":               {calls(10, 20, 30), slowRounds, true},
		"four of ten, with prompt ones":    {slowRounds, calls(10, 20, 61), false},
		"below what a timer is off by":     {calls(10, 1, 1), calls(10, 9, 9), true},
		"above what a timer is off by":     {calls(10, 1, 1), calls(10, 11, 11), false},
		"for a hang, on a slow machine":    {calls(10, 300, 400), calls(10, 400, 501), false},
		"one call in ten rounds":           {calls(10, 20, 30), slices.Concat(calls(9, 20, 30), calls(1, 20, 900)), true},
		"two calls in ten rounds":          {calls(10, 20, 30), slices.Concat(calls(8, 20, 30), calls(2, 20, 900)), false},
		"no more than where nothing hangs": {slices.Concat(calls(8, 20, 30), calls(2, 20, 900)), slices.Concat(calls(7, 20, 30), calls(3, 20, 900)), true},
		"two more than where none hangs":   {slices.Concat(calls(8, 20, 30), calls(2, 20, 900)), slices.Concat(calls(6, 20, 30), calls(4, 20, 900)), false},
		"half of the rounds, and one more": {calls(10, 20, 30), slices.Concat(calls(4, 20, 30), calls(6, 400, 400)), false},
	} {
		a := Apart{Prompt: c.prompt, Hanging: c.hanging, Hang: time.Second}
		if a.Isolated() != c.isolated {
			t.Errorf("%s: isolated is %v: %v", name, !c.isolated, a)
		}
	}
	if a := (Apart{Prompt: calls(10, 20, 30), Hanging: slowRounds}); !strings.Contains(a.String(), "p99 30ms and 400ms") {
		t.Errorf("the rounds that were slow are not told: %v", a)
	}
}

// Both kinds come first in turn, and a measurement that does not show isolation is made longer, unless it looks for a fault.
func TestRoundsTakeTurns(t *testing.T) {
	for _, c := range []struct {
		rounds, slow int
		want         string
	}{
		{4, 0, "p" + "phhpphhp"}, {2, 900, "p" + "phhp"},
		{Rounds, 0, "p" + strings.Repeat("phhp", Rounds/2)}, {Rounds, 900, "p" + strings.Repeat("phhp", 3*Rounds/2)},
	} {
		order := ""
		round := func(name string, took int) func() []time.Duration {
			return func() []time.Duration { order += name; return calls(1, took, took)[0] }
		}
		Measure(c.rounds, time.Second, round("p", 20), round("h", 20+c.slow))
		if order != c.want {
			t.Errorf("%d rounds: %s, want %s", c.rounds, order, c.want)
		}
	}
}
