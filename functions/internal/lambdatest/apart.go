package lambdatest

import (
	"fmt"
	"slices"
	"time"
)

// Apart measures how much later one tenant's calls are done because another tenant's hang. Both kinds of round have the same calls of both
// tenants, so that what the other tenant's take of the machine is in both.
type Apart struct {
	// Prompt are how long each call of a tenant took, in rounds with another's that are answered at once; Hanging are those in rounds with
	// the same calls, which hang.
	Prompt, Hanging [][]time.Duration
	// Hang is for how long a call of the other tenant hangs.
	Hang time.Duration
}

// Rounds is how many rounds of each kind there are where isolation is to be shown; RoundsMin is enough where a fault is.
const (
	Rounds    = 6
	RoundsMin = 3
)

const (
	slowerAtMost = 2.0
	// noise is the least that a time counts as: timers, and one turn of another process on the core.
	noise = 5 * time.Millisecond
	// hangShare is the part of a hang from which on a call may have waited for one. The machine stops, too: beside one round in so many, as
	// many may have such a call as of those in which nothing hangs.
	hangShare    = 2
	stoppedOneIn = 10
)

// Measure has so many rounds of each kind, in turns in which each kind comes first every other time: what else the machine does meets both.
// Where they are as many as Rounds, and do not show isolation, it goes on, up to three times as many: what waits for another tenant does so
// in those, too.
func Measure(rounds int, hang time.Duration, prompt, hanging func() []time.Duration) (a Apart) {
	a.Hang = hang
	prompt() // connections are made
	most := rounds
	if rounds == Rounds {
		most = 3 * rounds
	}
	for n := 0; n < rounds || n < most && !a.Isolated(); n++ {
		if n%2 == 1 {
			a.Hanging = append(a.Hanging, hanging())
		}
		a.Prompt = append(a.Prompt, prompt())
		if n%2 == 0 {
			a.Hanging = append(a.Hanging, hanging())
		}
	}
	return a
}

// Isolated says that what hangs doubles neither the median call of a round nor its slowest one, each in the median of the rounds, and that
// no more calls take as long as a hang than do where nothing hangs.
func (a Apart) Isolated() bool {
	return factor(a.Hanging, a.Prompt, middle) <= slowerAtMost && factor(a.Hanging, a.Prompt, slices.Max[[]time.Duration]) <= slowerAtMost &&
		a.waiting(a.Hanging) <= a.waiting(a.Prompt)+len(a.Hanging)/stoppedOneIn
}

// waiting is how many of the rounds have a call that takes as long as one that waits for a hang.
func (a Apart) waiting(rounds [][]time.Duration) (slow int) {
	for _, round := range rounds {
		if slices.Max(round) > a.Hang/hangShare {
			slow++
		}
	}
	return slow
}

// String tells what was compared, and the 99th percentile of all calls besides: a single round that the machine was slow in is in that one.
func (a Apart) String() string {
	of := func(name string, value func([]time.Duration) time.Duration) string {
		return fmt.Sprintf("%s %v and %v (%.2f times)", name, shown(overRounds(a.Prompt, value)), shown(overRounds(a.Hanging, value)),
			factor(a.Hanging, a.Prompt, value))
	}
	return fmt.Sprintf("with calls that are prompt, and with calls that hang: %s, %s, p99 %v and %v; %d rounds of %d, %d and %d with a call of half a hang", of("median", middle),
		of("slowest of a round", slices.Max[[]time.Duration]), shown(p99(a.Prompt)), shown(p99(a.Hanging)), len(a.Prompt), len(a.Prompt[0]),
		a.waiting(a.Prompt), a.waiting(a.Hanging))
}

// factor is how much larger a round's value is in the median of the rounds.
func factor(hanging, prompt [][]time.Duration, value func([]time.Duration) time.Duration) float64 {
	return float64(max(overRounds(hanging, value), noise)) / float64(max(overRounds(prompt, value), noise))
}

func overRounds(rounds [][]time.Duration, value func([]time.Duration) time.Duration) time.Duration {
	var all []time.Duration
	for _, round := range rounds {
		all = append(all, value(round))
	}
	return middle(all)
}

func middle(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)/2] }

// p99 is that of all calls, by nearest rank.
func p99(rounds [][]time.Duration) time.Duration {
	all := slices.Sorted(slices.Values(slices.Concat(rounds...)))
	return all[(99*len(all)+99)/100-1]
}

func shown(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
