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

// Calls that take more than twice as long in each round are told from a machine that is slow in most rounds.
func TestIsolationIsToldFromAMachineThatIsSlow(t *testing.T) {
	for name, c := range map[string]struct {
		prompt, hanging [][]time.Duration
		isolated        bool
	}{
		"the same":                       {calls(3, 20, 30), calls(3, 20, 30), true},
		"twice":                          {calls(3, 20, 30), calls(3, 40, 60), true},
		"more than twice":                {calls(3, 20, 50), calls(3, 41, 50), false},
		"one call of each round":         {calls(3, 20, 30), calls(3, 20, 900), true},
		"two of three rounds":            {calls(3, 20, 30), slices.Concat(calls(2, 400, 400), calls(1, 20, 30)), true},
		"quiet in the first round alone": {slices.Concat(calls(1, 20, 30), calls(5, 60, 90)), calls(6, 60, 90), true},
		"each of many rounds":            {calls(6, 20, 30), calls(6, 41, 50), false},
		"each round, beside slow ones":   {slices.Concat(calls(2, 400, 400), calls(1, 20, 30)), calls(3, 41, 50), false},
		"below what a timer is off by":   {calls(3, 1, 1), calls(3, 9, 9), true},
		"above what a timer is off by":   {calls(3, 1, 1), calls(3, 11, 11), false},
	} {
		if a := (Apart{c.prompt, c.hanging}); a.Isolated() != c.isolated {
			t.Errorf("%s: isolated is %v: %v", name, !c.isolated, a)
		}
	}
	a := Apart{calls(3, 20, 30), slices.Concat(calls(2, 80, 90), calls(1, 80, 400))}
	if got := a.String(); !strings.Contains(got, "20ms and 80ms (4.00 times), p99 30ms and 400ms, slowest 30ms and 400ms; 3 rounds of 10") || a.Enough() != 1600*time.Millisecond {
		t.Errorf("%s, enough %v", got, a.Enough())
	}
}

// A measurement goes on while it does not show isolation, and not for ever.
func TestRoundsTakeTurns(t *testing.T) {
	for _, c := range []struct {
		slow []int // milliseconds that calls take in each round that hangs; the last one in all that follow
		want int
	}{{[]int{20}, rounds}, {[]int{900, 900, 900, 900, 30}, 5}, {[]int{900}, roundsMax}} {
		order, hung := "", 0
		Measure(func() []time.Duration {
			order += "p"
			return calls(1, 20, 20)[0]
		}, func() []time.Duration {
			order += "h"
			took := c.slow[min(hung, len(c.slow)-1)]
			hung++
			return calls(1, took, took)[0]
		})
		if want := "p" + strings.Repeat("ph", c.want); order != want {
			t.Errorf("%v: %s, want %s", c.slow, order, want)
		}
	}
}
