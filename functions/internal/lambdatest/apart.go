package lambdatest

import (
	"fmt"
	"slices"
	"time"
)

// Apart measures how much later one tenant's calls are done because another tenant's hang.
type Apart struct {
	// Alone are how long each of a tenant's took, in rounds by itself; Beside are those in rounds beside calls that hang.
	Alone, Beside [][]time.Duration
	// Hang is for how long a call of the other tenant hangs.
	Hang time.Duration
}

// Rounds is how many rounds of each kind there are at the most, where isolation is to be shown; RoundsMin is enough where a fault is.
const (
	Rounds    = 6
	RoundsMin = 2
)

const (
	slowerAtMost = 2.0
	// noise is the least that a median counts as: what a busy machine takes for a request by itself.
	noise = 50 * time.Millisecond
	// hangShare is the part of a hang that the slowest call may take beside it: one that waits for a hang takes all of it.
	hangShare = 2
)

// Measure has both kinds of round, in turns, at least [RoundsMin] of each, and more while they are not isolated, but no more than most:
// where one tenant waits for another it does so in every round, and what else the machine does slows some only.
func Measure(most int, hang time.Duration, alone, beside func(round int) []time.Duration) (a Apart) {
	a.Hang = hang
	alone(-1) // connections are made
	for round := 0; round < RoundsMin || round < most && !a.Isolated(); round++ {
		a.Alone, a.Beside = append(a.Alone, alone(2*round)), append(a.Beside, beside(2*round+1))
	}
	return a
}

// Slower is by what factor the median is longer beside calls that hang, in the fastest round of each kind.
func (a Apart) Slower() float64 {
	return float64(fastest(a.Beside)) / float64(max(fastest(a.Alone), noise))
}

// Isolated says that the median is at most doubled, and that no call waited for one that hangs: of each kind in its best round.
func (a Apart) Isolated() bool {
	return a.Slower() <= slowerAtMost && slowest(a.Beside) <= a.Hang/hangShare
}

// String tells medians and slowest calls of the fastest rounds.
func (a Apart) String() string {
	return fmt.Sprintf("median %v alone, %v beside what hangs; the slowest %v and %v, of which at most %v is allowed; %d rounds of %d",
		fastest(a.Alone), fastest(a.Beside), slowest(a.Alone), slowest(a.Beside), a.Hang/hangShare, len(a.Alone), len(a.Alone[0]))
}

func fastest(rounds [][]time.Duration) time.Duration {
	return slices.Min(each(rounds, func(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] })).Round(time.Millisecond)
}

func slowest(rounds [][]time.Duration) time.Duration {
	return slices.Min(each(rounds, func(sorted []time.Duration) time.Duration { return sorted[len(sorted)-1] })).Round(time.Millisecond)
}

func each(rounds [][]time.Duration, of func([]time.Duration) time.Duration) (all []time.Duration) {
	for _, round := range rounds {
		all = append(all, of(slices.Sorted(slices.Values(round))))
	}
	return all
}
