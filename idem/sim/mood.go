package sim

import (
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// mood is what a story is about: which faults, actors and bounds there are at all, and how often things go wrong. Stories differ in
// it as much as they can, because what needs many faults of one kind does not happen where all kinds are equally rare.
type mood struct {
	// In so many of a thousand cases.
	store, provider, declines, wakeUps, outages, crowds, lies, fails int
	// troubled of ten actors meet four times as many faults as the others.
	troubled int
	// What goes wrong with calls to the store and to the provider: some ways in each story, so that some stories are about
	// nothing but two of them.
	storeFaults, callFaults []int
	// kinds are those of the story's keys; keys is how many there are, clients how many each has at most.
	kinds         []kind
	keys, clients int
	// most is how many operations the limit admits.
	most int
	// bodies is how many payloads the clients of one key have.
	bodies int
	// again says that clients come back when their key expires.
	again bool
	// period is how often the sweep and the reconciler run at first, hurry how long clients wait at most before they ask again.
	period, hurry time.Duration
	// skew is how much a clock differs from the story's, handler how long a handler takes at most, and after how long a wrapped one
	// takes after its call.
	skew, handler, after time.Duration
	// limit is how long a request may take at most.
	limit time.Duration
	// kills says that the platform ends a process at a request's deadline, invoked is how long other invocations may take; 0 is that
	// they are goroutines of a container, which have no deadline.
	kills   bool
	invoked time.Duration
	// people decide now and then while clients are there, amenders change how long answers last, and some processes are of a
	// release that does not know the topics, or that only observes.
	people, amenders, older, observers bool

	engine idem.Config
	outbox outbox.Config
	topic  outbox.Topic
	// remembers is how long the provider remembers keys, longest how long a request is on its way at most, and freeze how long
	// a process is frozen before it sends something.
	remembers, longest, freeze time.Duration
}

// level draws one of the levels.
func level[T any](c *choices, name string, levels ...T) T {
	return levels[c.oneOf("mood/"+name, len(levels))]
}

// newMood draws the mood of a story.
func newMood(c *choices) mood {
	m := mood{
		store:    level(c, "store", 0, 30, 100, 250, 400),
		provider: level(c, "provider", 0, 60, 200, 400),
		declines: level(c, "declines", 0, 100, 400),
		wakeUps:  level(c, "wake-ups", 0, 100, 500),
		outages:  level(c, "outages", 0, 0, 60, 250),
		crowds:   level(c, "crowds", 0, 0, 300),
		lies:     level(c, "lies", 0, 0, 0, 500),
		fails:    level(c, "fails", 0, 0, 0, 300),
		troubled: level(c, "troubled", 0, 2, 5),
		keys:     level(c, "keys", 1, 1, 2, 3),
		clients:  level(c, "clients", 1, 2, 4),
		most:     level(c, "most", 1, 2),
		bodies:   level(c, "bodies", 1, 1, 1, 2),
		again:    level(c, "again", false, false, true),
		period:   level[time.Duration](c, "period", 5, 20, 60, 240) * time.Second,
		hurry:    level[time.Duration](c, "hurry", 1, 3, 10, 60) * time.Second,
		skew:     level[time.Duration](c, "skew", 0, 300, 990) * time.Millisecond,
		handler:  level[time.Duration](c, "handler", 50, 2_000, 12_000, 90_000) * time.Millisecond,
		after:    level[time.Duration](c, "after", 50, 2_000, 300_000) * time.Millisecond,
		limit:    level[time.Duration](c, "limit", 3, 8, 30) * time.Second,
		kills:    level(c, "kills", false, true),
		invoked:  level[time.Duration](c, "invoked", 0, 14, 60) * time.Second,
		people:   level(c, "people", false, true),
		amenders: level(c, "amenders", false, false, true),
		older:    level(c, "older", false, false, false, true),

		observers: level(c, "observers", false, false, false, true),

		storeFaults: some(c, "store faults", storeFaults),
		callFaults:  some(c, "call faults", providerFaults),
		kinds:       []kind{kinds[c.oneOf("mood/kind", len(kinds))], kinds[c.oneOf("mood/another kind", len(kinds))]},
	}
	m.bounds(c)
	if m.older { // what it does not know it must not change, whatever befalls the store
		m.store, m.outages, m.crowds, m.fails, m.lies = 0, 0, 0, 0, 0
	}
	return m
}

// bounds draws the configuration: narrow bounds are met in short stories.
func (m *mood) bounds(c *choices) {
	m.longest = level[time.Duration](c, "longest", 12, 60) * time.Second
	m.freeze = level[time.Duration](c, "freeze", 6, 60) * time.Second
	m.engine = idem.Config{
		ContentionTries: level(c, "contention", 1, 2, 6), RunsMax: level(c, "runs", 2, 5), FreezeAllowance: m.freeze,
		RunMax: level(c, "run max", 25*time.Second, 15*time.Minute), CallTimeout: level(c, "store time-out", time.Second, 5*time.Second),
		KillsAtDeadline: m.kills, Logger: silent,
	}
	backoff := level[time.Duration](c, "backoff", 2, 30) * time.Second
	m.outbox = outbox.Config{
		SweepConcurrency: 1, Logger: silent, LongestRequest: m.longest, BackoffMax: backoff,
		ContentionTries: level(c, "message contention", 1, 6), CallTimeout: level[time.Duration](c, "call time-out", 2, 5) * time.Second,
		SettleMax: level[time.Duration](c, "settle max", 2, 10) * time.Second, KeepMax: level[time.Duration](c, "keep max", 4, 600) * time.Second,
		ProbeBackoffMin: level[time.Duration](c, "probe backoff", 5, 60) * time.Second, ProbeBackoffMax: 10 * time.Minute,
		StoreTimeout: level(c, "message time-out", time.Second, 3*time.Second),
	}
	m.remembers = level(c, "remembers", 15*time.Second+m.longest+backoff, 24*time.Hour)
	m.topic = outbox.Topic{
		AttemptsMax: level(c, "attempts", 1, 2, 10), AgeMax: level(c, "age", time.Minute, 6*time.Hour),
		UnknownMax: max(m.outbox.ProbeBackoffMin, level(c, "unknown", 10*time.Second, 12*time.Hour)),
	}
	m.topic.AbandonAfter = min(m.topic.AgeMax, level(c, "abandon", 20*time.Second, 2*time.Hour))
}

// some are some of the numbers from 1 to n: at least one.
func some(c *choices, name string, n int) (drawn []int) {
	share := 1 + c.oneOf("mood/share of "+name, 5)
	for i := 1; i <= n; i++ {
		if c.oneOf(fmt.Sprintf("mood/%s %d", name, i), share) == 0 {
			drawn = append(drawn, i)
		}
	}
	return drawn
}

// weather says how many of a thousand calls of an actor go wrong now: trouble comes in spells, and some actors have more of it.
func (w *world) weather(who string, usual int) int {
	if w.oneOf("trouble of "+who, 10) < w.mood.troubled {
		usual *= 3
	}
	if w.oneOf("weather "+spell(5*time.Second), 4) == 0 {
		return min(4*usual, 700)
	}
	return usual / 2
}

// spell names the present part of the story's time.
func spell(length time.Duration) string {
	return fmt.Sprint(int64(time.Since(beginning) / length))
}

// Outages of the store: all writes fail in one way.
const (
	throttlesAll = 1 + iota
	downForAll
	refusesAll
	outages = refusesAll
)

// outage says what the store refuses all writes with now; 0 is that it does not.
func (w *world) outage() int {
	return w.fault("outage "+spell(12*time.Second), w.mood.outages, outages)
}

// crowded says that other transactions are in the way of every settlement now.
func (w *world) crowded() bool {
	return w.fault("crowd "+spell(20*time.Second), w.mood.crowds, 1) != nothingWrong
}
