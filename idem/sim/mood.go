package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
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
	// tenants is how many have these keys: the second one has the same, for the same kinds.
	tenants int
	// expires is how late the native TTL is: DynamoDB says that it may be two days.
	expires time.Duration
	// most is how many operations the limit admits.
	most int
	// bodies is how many requests the clients of one key have: they differ in their body, method, path, query or media type.
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
	// instances is how many processes serve the requests: one after the other where the platform kills, side by side elsewhere. 0: each
	// request has a process of its own.
	instances int
	// rounds is how many the platform's schedule has at least, although nothing is left to do.
	rounds int
	// people decide now and then while clients are there, amenders change how long answers last, and some processes are of a
	// release that does not know the topics, or that only observes.
	people, amenders, older, observers bool

	engine idem.Config
	outbox outbox.Config
	topic  outbox.Topic
	// remembers is how long the provider remembers keys, longest how long a request to it is on its way at most, wire how long a
	// write to the store is, freeze how long a process is frozen before it sends something, and frozen how long before it decides
	// what to do next.
	remembers, longest, wire, freeze, frozen time.Duration
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
		tenants:  level(c, "tenants", 1, 1, 2),
		expires:  level(c, "TTL", 0, 0, c.between("TTL is late", 0, 48*time.Hour)),
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
		instances: level(c, "common processes", 0, 0, 0, 0, 0, 1, 2),

		storeFaults: some(c, "store faults", storeFaults),
		callFaults:  some(c, "call faults", providerFaults),
		kinds:       []kind{kinds[c.oneOf("mood/kind", len(kinds))], kinds[c.oneOf("mood/another kind", len(kinds))]},
	}
	m.longest = level[time.Duration](c, "longest", 12, 60) * time.Second
	m.wire = level(c, "wire", time.Minute, time.Minute, time.Minute, storage.WireMax)
	m.freeze = level[time.Duration](c, "freeze", 6, 60) * time.Second
	m.frozen = 275 * time.Second
	m.bounds(c)
	if theme := c.oneOf("mood/theme", 2*len(themes)); theme < len(themes) {
		themes[theme](c, &m)
	}
	m.engine.FreezeAllowance, m.engine.KillsAtDeadline, m.outbox.LongestRequest = m.freeze, m.kills, m.longest
	m.outbox.FreezeAllowance = m.freeze
	m.remembers = level(c, "remembers", 15*time.Second+m.freeze+m.longest+m.outbox.BackoffMax, 24*time.Hour)
	if m.older { // what it does not know it must not change, whatever befalls the store
		m.store, m.outages, m.crowds, m.fails, m.lies = 0, 0, 0, 0, 0
	}
	return m
}

// themes are what half of the stories are about: in each of them things come together that seldom do where all are drawn apart.
var themes = [...]func(*choices, *mood){
	func(c *choices, m *mood) { // many compete for little, and some of what they send is late
		m.kinds = ofKinds(c, atomicWrite, optimistic, deferredKeys, inlineKeys, inlineNothing, besides, inlineChain)
		m.keys, m.clients, m.most, m.again = level(c, "rivals", 1, 3), 4, 1, false
		m.handler, m.hurry = level[time.Duration](c, "quick", 50, 400)*time.Millisecond, time.Second
		m.store, m.storeFaults = level(c, "rivals' store", 150, 400), ofFaults(c, refusedByContention, requestLate, replyLost, notJudged)
	},
	func(c *choices, m *mood) { // what a wrapped handler asks for happens late, and others look for it soon
		m.kinds = ofKinds(c, wrappedProbed, wrappedOperator, wrappedReleased)
		m.provider, m.callFaults, m.period = 400, ofFaults(c, callIsLate, callersProcessDies, calledAfterFreeze, callHasNoReply), 5*time.Second
		m.longest, m.freeze = 12*time.Second, 6*time.Second
	},
	func(c *choices, m *mood) { // handlers run for longer than their leases are renewed
		m.kinds = ofKinds(c, wrappedProbed, wrappedOperator, wrappedReleased)
		m.handler, m.after, m.declines = level[time.Duration](c, "long", 1, 60)*time.Second, 5*time.Minute, 400
		m.kills, m.engine.RunMax, m.period, m.people = false, level(c, "long run", 25*time.Second, 2*time.Minute), 5*time.Second, true
		m.provider = level(c, "long provider", 0, 60)
	},
	func(c *choices, m *mood) { // one call of a message after the other is in doubt
		m.kinds = ofKinds(c, deferredKeys, deferredLookUp, deferredNothing, keysAlone, inlineKeys, besides, besidesKeys)
		m.provider, m.period, m.people, m.again = 400, 5*time.Second, true, false
		m.callFaults = ofFaults(c, callIsLate, callHasNoReply, callersProcessDies, answeredIntoFreeze, callThrottled)
		m.longest, m.freeze, m.declines = 12*time.Second, 6*time.Second, level(c, "in doubt", 0, 400)
	},
	func(c *choices, m *mood) { // chains are refused and undone, and people start again what has died
		m.kinds = ofKinds(c, chain, inlineChain)
		m.provider, m.callFaults = level(c, "refused", 200, 400), ofFaults(c, callRefused, callThrottled, callUnsent, callHasNoReply)
		m.declines, m.people, m.period = level(c, "undone", 100, 400), true, 20*time.Second
		m.topic.AttemptsMax, m.topic.AgeMax = level(c, "few", 1, 2), time.Minute
		m.topic.AbandonAfter = time.Minute
	},
	func(c *choices, m *mood) { // evidence meets a store in trouble, and other evidence
		m.kinds = ofKinds(c, deferredKeys, deferredLookUp, deferredNothing, keysAlone, inlineNothing, besides, chain)
		m.outages, m.crowds, m.lies = level(c, "evidence", 0, 250), level(c, "crowd", 0, 500), level(c, "lie", 0, 500)
		m.outbox.KeepMax, m.outbox.SettleMax = 4*time.Second, level[time.Duration](c, "settle", 2, 20)*time.Second
		m.declines, m.fails = level(c, "say no", 0, 400), level(c, "mean nothing", 0, 300)
		m.people, m.period = true, 5*time.Second
		m.invoked = level[time.Duration](c, "evidence in time", 0, 14, 60) * time.Second
	},
	func(c *choices, m *mood) { // where each call counts, one follows another that was declined or is in doubt
		m.kinds = ofKinds(c, deferredLookUp, deferredLookUp, inlineNothing)
		m.provider, m.callFaults, m.store, m.declines = 1000, []int{answeredIntoFreeze, callHasNoReply}, 0, 400
		m.outages, m.crowds, m.period, m.people, m.again, m.amenders = 0, 0, 5*time.Second, false, false, false
		m.keys, m.hurry, m.handler, m.frozen = 3, time.Second, 50*time.Millisecond, time.Minute
		m.longest, m.freeze = 12*time.Second, 2*time.Second
		m.outbox.ProbeBackoffMin, m.invoked = 5*time.Second, level[time.Duration](c, "each call", 0, 60)*time.Second
		m.topic.AttemptsMax, m.topic.AgeMax, m.topic.UnknownMax = 10, 6*time.Hour, 12*time.Hour
	},
	func(c *choices, m *mood) { // the store answers late, or not, and there is little time
		m.kinds = ofKinds(c, atomicWrite, pure, wrappedProbed, wrappedReleased, wrappedSafe)
		m.store, m.storeFaults = 400, ofFaults(c, replyLost, frozenAfter, refusedByContention, requestLate)
		m.limit, m.hurry, m.kills, m.handler = level[time.Duration](c, "little time", 8, 30)*time.Second, time.Second, false, 50*time.Millisecond
		if c.oneOf("mood/found late", 2) == 0 { // what had no reply is found when it is too late for it
			m.store, m.storeFaults, m.limit = 700, []int{replyLost, frozenAfter}, 8*time.Second
		}
		if c.oneOf("mood/amended late", 3) == 0 { // people change answers meanwhile, and what they send is late
			m.kinds, m.amenders, m.storeFaults, m.handler = []kind{pure, wrappedSafe}, true, []int{diedLate, requestLate}, 50*time.Millisecond
			m.store, m.hurry, m.limit = level(c, "amended", 60, 250), 3*time.Second, 30*time.Second
		}
	},
	func(c *choices, m *mood) { // requests deliver for themselves, and lose locks
		m.kinds = ofKinds(c, inlineKeys, inlineNothing, inlineChain)
		m.store, m.storeFaults = 250, ofFaults(c, refusedByContention, requestLate, replyLost, notJudged)
		m.declines, m.handler, m.limit = 0, 400*time.Millisecond, 30*time.Second
		m.keys, m.clients, m.hurry = level(c, "deliver together", 1, 3), 4, time.Second
	},
	func(c *choices, m *mood) { // what is given up with a call under way is declined after that
		m.kinds = ofKinds(c, besidesKeys, besides, keysAlone, deferredKeys, chain)
		m.provider, m.callFaults, m.declines = 400, ofFaults(c, callIsLate, callHasNoReply), 400
		m.store, m.outages, m.crowds, m.fails, m.lies, m.period = 0, 0, level(c, "in the way", 0, 500), 0, 0, 5*time.Second
		m.topic.AttemptsMax, m.topic.AgeMax, m.topic.AbandonAfter = level(c, "given up", 1, 2), time.Minute, time.Minute
		m.longest, m.handler, m.again, m.people = 12*time.Second, 400*time.Millisecond, false, level(c, "nobody", false, true)
	},
	func(c *choices, m *mood) { // answers are extended, or taken out of use
		m.kinds = ofKinds(c, pure, atomicWrite)
		m.amenders, m.again, m.clients, m.hurry, m.period = true, level(c, "amended and expired", false, true), 4, 10*time.Second, 5*time.Second
		m.store = level(c, "amended", 0, 100)
	},
}

// ofKinds draws two of the kinds, or one twice.
func ofKinds(c *choices, kinds ...kind) []kind {
	return []kind{level(c, "kind of the theme", kinds...), level(c, "another kind of the theme", kinds...)}
}

// ofFaults draws some of the ways, at least one.
func ofFaults(c *choices, ways ...int) (drawn []int) {
	for _, i := range some(c, fmt.Sprint("faults of the theme ", len(ways)), len(ways)) {
		drawn = append(drawn, ways[i-1])
	}
	return drawn
}

// bounds draws the configuration: narrow bounds are met in short stories.
func (m *mood) bounds(c *choices) {
	m.engine = idem.Config{
		ContentionTries: level(c, "contention", 1, 2, 6), RunsMax: level(c, "runs", 2, 5),
		RunMax: level(c, "run max", 25*time.Second, 15*time.Minute), CallTimeout: level(c, "store time-out", time.Second, 5*time.Second),
	}
	m.outbox = outbox.Config{
		SweepConcurrency: 1, BackoffMax: level[time.Duration](c, "backoff", 2, 30) * time.Second,
		ContentionTries: level(c, "message contention", 1, 6), CallTimeout: level[time.Duration](c, "call time-out", 2, 5) * time.Second,
		SettleMax: level[time.Duration](c, "settle max", 2, 10) * time.Second, KeepMax: level[time.Duration](c, "keep max", 4, 600) * time.Second,
		ProbeBackoffMin: level[time.Duration](c, "probe backoff", 5, 60) * time.Second, ProbeBackoffMax: 10 * time.Minute,
		StoreTimeout: level(c, "message time-out", time.Second, 3*time.Second),
	}
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

// weather says how many of a thousand calls of an actor go wrong now: trouble comes in spells, and some actors have more of it. Those
// who change how long an answer lasts come seldom, and with two calls: they have always more.
func (w *world) weather(who string, usual int) int {
	if strings.HasPrefix(who, amender) || w.oneOf("trouble of "+who, 10) < w.mood.troubled {
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
