package lambdatest

import (
	"fmt"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// Apart is how long each call of a tenant took in rounds beside the same calls of another tenant, so that both kinds of round have the same
// work: in Prompt those are answered at once, in Hanging they hang until the tenant's own calls are over.
type Apart struct {
	Prompt, Hanging [][]time.Duration
}

// Patience is for how long a call is waited for that nothing holds up: only one that is held up, or a machine that stands, takes so long.
const Patience = 20 * time.Second

const (
	// rounds is how many of each kind there are, and roundsMax how many while the machine has not yet had an undisturbed one of each.
	rounds, roundsMax = 3, 20
	// recent is how many of the last rounds of each kind are compared: one in a quiet moment says nothing of those minutes later, when the
	// machine has other work.
	recent       = 5
	slowerAtMost = 2.0
	// noise is the least that a time counts as: timers, and one turn of another process on the core.
	noise = 5 * time.Millisecond
)

// Measure has rounds of both kinds in turns.
func Measure(prompt, hanging func() []time.Duration) (a Apart) {
	prompt() // connections are made
	for n := 0; n < rounds || n < roundsMax && !a.Isolated(); n++ {
		a.Prompt, a.Hanging = append(a.Prompt, prompt()), append(a.Hanging, hanging())
	}
	return a
}

// Isolated says that another tenant's calls do not double a tenant's median by hanging.
func (a Apart) Isolated() bool { return a.slower() <= slowerAtMost }

// slower is how many times as long the median call of a round takes. Of the last rounds of each kind the fastest one counts: what else the
// machine does makes rounds slower, and none faster.
func (a Apart) slower() float64 {
	return float64(max(fastest(last(a.Hanging)), noise)) / float64(max(fastest(last(a.Prompt)), noise))
}

// Enough is for how long a call is waited for that should be held up: twenty times the median of those that are not, and 1 to 3 s.
func (a Apart) Enough() time.Duration {
	return min(max(time.Second, 20*fastest(last(a.Hanging))), 3*time.Second)
}

func (a Apart) String() string {
	shown := func(value func([][]time.Duration) time.Duration) string {
		return fmt.Sprint(value(a.Prompt).Round(100*time.Microsecond), " and ", value(a.Hanging).Round(100*time.Microsecond))
	}
	return fmt.Sprintf("with calls that are prompt, and with calls that hang: median of the fastest of the last rounds %s (%.2f times), p99 %s, slowest %s; "+
		"%d rounds of %d, whose medians are %v and %v",
		shown(func(all [][]time.Duration) time.Duration { return fastest(last(all)) }), a.slower(), shown(p99),
		shown(func(all [][]time.Duration) time.Duration { return slices.Max(slices.Concat(all...)) }),
		len(a.Prompt), len(a.Prompt[0]), medians(a.Prompt), medians(a.Hanging))
}

func last(all [][]time.Duration) [][]time.Duration { return all[max(0, len(all)-recent):] }

// fastest is the least of the rounds' medians.
func fastest(rounds [][]time.Duration) time.Duration { return slices.Min(medians(rounds)) }

func medians(rounds [][]time.Duration) (all []time.Duration) {
	for _, round := range rounds {
		all = append(all, slices.Sorted(slices.Values(round))[len(round)/2].Round(100*time.Microsecond))
	}
	return all
}

// p99 is that of all calls, by nearest rank.
func p99(rounds [][]time.Duration) time.Duration {
	all := slices.Sorted(slices.Values(slices.Concat(rounds...)))
	return all[(99*len(all)+99)/100-1]
}

// Hanging is how many of the provider's objects from a source or to a destination were made by a call that waits for its answer.
func Hanging(objects []provider.Object, party string) (n int) {
	for _, o := range objects {
		if o.Open > 0 && (o.Source == party || o.Destination == party) {
			n++
		}
	}
	return n
}
