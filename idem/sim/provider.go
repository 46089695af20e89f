package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// provider is where effects are made: what its books say is the truth that the story is judged by.
type provider struct {
	mu sync.Mutex
	// made are the effects by downstream key, each as often as it was made.
	made map[string]int
	// first is when a downstream key was first seen.
	first map[string]time.Time
}

// keysKept is how long the provider remembers keys, where it honours them.
const keysKept = 24 * time.Hour

// has says how often the effect was made.
func (b *provider) has(id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.made[id]
}

// charge makes an effect, unless its key is honoured and known.
func (b *provider) charge(id string, honoured bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, known := b.first[id]
	if !known {
		b.first[id] = time.Now()
	}
	if !known || !honoured || time.Since(first) > keysKept {
		b.made[id]++
	}
}

// What can go wrong with one call to the provider.
const (
	callUnsent = 1 + iota
	callThrottled
	callNeverArrives
	callHasNoReply
	callIsLate
	callRefused
	callersProcessDies
	calledAfterFreeze
	answeredIntoFreeze
	providerFaults = answeredIntoFreeze
)

var callFaultNames = [...]string{
	"", "is not sent", "is answered with 429", "never arrives", "has no reply", "arrives late", "is refused", "is made as its process dies",
	"is sent after a freeze", "is answered into a freeze",
}

var errProvider = errors.New("sim: the provider gave no answer")

// call is one call to the provider on its way.
type call struct {
	*process
	name string
	// wrong is what goes wrong with it.
	wrong int
	// arrive has the provider judge and execute it.
	arrive func(after time.Duration)
}

// ask is one call to the provider. effect is made once the request has arrived; what is declined makes none.
func (p *process) ask(ctx context.Context, name string, declined bool, effect func()) outbox.Outcome {
	w := p.world
	if w.over.Load() {
		return outbox.Ambiguous{Cause: errProvider}
	}
	c := call{process: p, name: w.numbered(actor(ctx, p.name) + " calls " + name), wrong: nothingWrong}
	p.thaw()
	if p.dead.Load() {
		_ = p.stay(ctx, nil)
		return outbox.Ambiguous{Cause: errProvider}
	}
	if way := w.fault(c.name, w.mood.provider, len(w.mood.callFaults)); way > 0 {
		c.wrong = w.mood.callFaults[way-1]
	}
	w.say("%s%s", c.name, spaced(callFaultNames[c.wrong]))
	c.arrive = func(after time.Duration) {
		time.Sleep(after)
		_ = w.land(c.name, func() error {
			if !declined {
				effect()
			}
			return nil
		})
	}
	if failed := c.leave(ctx); failed != nil {
		return failed
	}
	if declined {
		return outbox.Declined{Reference: "declined", Evidence: []byte(`{"declined":true}`)}
	}
	return outbox.Delivered{Reference: c.name, Evidence: []byte(`{"made":true}`)}
}

// leave sends the call, and returns what its caller knows where the provider's answer does not arrive; nil where it does.
func (c call) leave(ctx context.Context) outbox.Outcome {
	if c.wrong == calledAfterFreeze {
		c.freezeFor(c.name)
		c.thaw()
	}
	if ctx.Err() != nil || c.wrong == callUnsent { // the last check before the wire
		return outbox.NotExecuted{Unsent: true, Cause: ctx.Err()}
	}
	way := c.between(c.name+" there", 5*time.Millisecond, 900*time.Millisecond)
	switch c.wrong {
	case callThrottled:
		return outbox.NotExecuted{Cause: errProvider}
	case callRefused:
		return outbox.Refused{Cause: errProvider}
	case callNeverArrives:
		return c.unanswered(ctx)
	case callHasNoReply:
		c.arrive(way)
		return c.unanswered(ctx)
	case callIsLate, callersProcessDies:
		c.spawn(func() { c.arrive(c.between(c.name+" late", 2*time.Second, longestRequest)) })
		if c.wrong == callersProcessDies {
			c.die()
			_ = c.stay(ctx, nil)
		}
		return c.unanswered(ctx)
	}
	return c.answered(ctx, way)
}

// unanswered waits for an answer that does not come.
func (c call) unanswered(ctx context.Context) outbox.Outcome {
	if !c.dead.Load() {
		_ = c.wait(ctx, c.name)
	}
	return outbox.Ambiguous{Cause: errProvider}
}

// answered waits for the answer, which its caller may have no time for.
func (c call) answered(ctx context.Context, way time.Duration) outbox.Outcome {
	landed := make(chan struct{})
	c.spawn(func() { c.arrive(way); close(landed) })
	select {
	case <-landed:
	case <-ctx.Done():
		return outbox.Ambiguous{Cause: errProvider}
	}
	if c.wrong == answeredIntoFreeze {
		c.freezeFor(c.name)
	}
	time.Sleep(c.between(c.name+" back", time.Millisecond, 300*time.Millisecond))
	c.thaw()
	if c.dead.Load() {
		_ = c.stay(ctx, nil)
	}
	return nil
}

// longestRequest is how long a request may be on its way: a second less than Config.LongestRequest, for the way back.
const longestRequest = 59 * time.Second

func spaced(text string) string {
	if text == "" {
		return ""
	}
	return " and " + text
}

// look is one look into the provider's books.
func (p *process) look(ctx context.Context, name string) bool {
	w := p.world
	if w.over.Load() {
		return true
	}
	name = w.numbered(actor(ctx, p.name) + " asks about " + name)
	p.thaw()
	if p.dead.Load() {
		_ = p.stay(ctx, nil)
	}
	if w.fault(name, w.mood.provider, 1) != 0 {
		_ = p.wait(ctx, name)
		return false
	}
	time.Sleep(w.between(name, 5*time.Millisecond, 900*time.Millisecond))
	return ctx.Err() == nil
}

// topics are those of the story: with keys, with a look-up, and with neither.
func (p *process) topics() []outbox.Topic {
	topic := func(name string, honoured, probed bool) outbox.Topic {
		t := outbox.Topic{
			Name: name, Settle: p.settle, AgeMax: 6 * time.Hour, AbandonAfter: 2 * time.Hour, UnknownMax: 12 * time.Hour,
			Call: func(ctx context.Context, m storage.Message) outbox.Outcome {
				outcome := p.ask(ctx, name+" of "+string(m.Payload), p.declines(name, honoured, m), func() {
					p.provider.charge(string(m.ID), honoured)
					p.effected(m)
				})
				if _, made := outcome.(outbox.Delivered); made {
					p.learnt(m.ID, p)
				}
				return outcome
			},
		}
		if honoured {
			t.Keys = outbox.Keys{Honoured: true, Retention: keysKept}
		}
		if probed {
			t.Probe = func(ctx context.Context, m storage.Message) outbox.Finding { return p.probe(ctx, name, m) }
		}
		return t
	}
	return []outbox.Topic{
		topic(withKeys, true, true), topic(withLookUp, false, true), topic(withNothing, false, false),
		topic(first, true, true), topic(second, true, true), topic(undo, true, true),
	}
}

// Topics of the story.
const (
	withKeys    = "sim.keys"
	withLookUp  = "sim.lookup"
	withNothing = "sim.nothing"
	first       = "sim.first"  // of a chain
	second      = "sim.second" // and what follows
	undo        = "sim.undo"   // undoes the first
)

// declines says whether the provider declines what the message asks for. Where it knows keys it says the same each time; elsewhere
// another call may succeed. What undoes is never declined.
func (w *world) declines(topic string, honoured bool, m storage.Message) bool {
	name := "provider declines " + topic + " of " + string(m.Payload)
	if !honoured {
		name = w.numbered(name)
	}
	return topic != undo && w.fault(name, w.mood.declines, 1) != nothingWrong
}

// probe looks a message's effect up.
func (p *process) probe(ctx context.Context, topic string, m storage.Message) outbox.Finding {
	switch known := p.look(ctx, topic+" of "+string(m.Payload)); {
	case !known:
		return outbox.Unclear{Cause: errProvider}
	case p.provider.has(string(m.ID)) > 0:
		return outbox.Found{Outcome: outbox.Delivered{Reference: string(m.ID), Evidence: []byte(`{"made":true}`)}}
	default:
		return outbox.Absent{}
	}
}
