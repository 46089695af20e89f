package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// plan is a story in which nothing goes wrong but what it says: one client, one key, and all that works in the background.
type plan struct {
	kind kind
	// faults are by the name of a call, or of another decision, in which way it goes wrong.
	faults map[string]int
}

// plannedCall is a call that reached the wire, and the ways in which it can be cut off.
type plannedCall struct {
	name string
	ways []int
}

// providers says whether the call is one to the provider.
func (c plannedCall) providers() bool { return &c.ways[0] == &cutsOfCalls[0] }

// The ways in which calls can be cut off, before and after they happened, with their process or without it, or refused; the first are
// those of a second cut, too. A read changes nothing, so what was lost of it makes no difference.
var (
	cutsOfWrites = []int{diedBefore, diedAfter, replyLost, requestLost, diedLate, requestLate, refusedByContention, refusedByThrottle}
	cutsOfReads  = []int{diedBefore, replyLost}
	cutsOfCalls  = []int{callersProcessDies, callHasNoReply, callNeverArrives}
)

// noteCall notes a call for the stories of a plan.
func (w *world) noteCall(name string, ways []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.planned {
		w.noted = append(w.noted, plannedCall{name, ways})
	}
}

// What a plan may force of its mood: that people change how long answers last, and that a message has one attempt only.
const (
	thereAreAmenders = "there are amenders"
	oneAttempt       = "messages have one attempt"
)

// calm is the mood in which nothing goes wrong by chance.
func calm(k kind, c *choices) mood {
	m := mood{
		tenants: 1, keys: 1, clients: 1, bodies: 1, most: 1, kinds: []kind{k}, period: 20 * time.Second, hurry: time.Second, handler: 50 * time.Millisecond,
		after: 50 * time.Millisecond, limit: 30 * time.Second, invoked: time.Minute, remembers: 24 * time.Hour, longest: time.Minute, wire: time.Minute,
		freeze: time.Minute,
		topic:  outbox.Topic{AttemptsMax: 10, AgeMax: 6 * time.Hour, UnknownMax: 12 * time.Hour, AbandonAfter: 2 * time.Hour},
	}
	for way := 1; way <= storeFaults; way++ {
		m.storeFaults = append(m.storeFaults, way)
	}
	for way := 1; way <= providerFaults; way++ {
		m.callFaults = append(m.callFaults, way)
	}
	if c.forced[thereAreAmenders] != 0 {
		m.amenders, m.rounds = true, amendersCome+1
	}
	if c.forced[oneAttempt] != 0 {
		m.topic.AttemptsMax = 1
	}
	m.engine = idem.Config{FreezeAllowance: m.freeze}
	m.outbox = outbox.Config{SweepConcurrency: 1, LongestRequest: m.longest, FreezeAllowance: m.freeze}
	return m
}

// tell plays the plan's story, and says which calls were made.
func (p plan) tell(t *testing.T, lines bool) (story Story, calls []plannedCall) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(beginning))
		c := newChoices(0, []string{})
		c.forced = p.faults
		w := newWorldIn(t, Begin{}, calm(p.kind, c), c, lines)
		w.planned = true
		w.play()
		story, calls = Story{Steps: int(w.steps.Load()), Broken: w.wrong, Lines: w.lines}, w.noted
	})
	return story, calls
}
