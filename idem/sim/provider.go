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
	// remembers is how long it remembers keys, where it honours them.
	remembers time.Duration
}

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
	if !known || !honoured || time.Since(first) > b.remembers {
		b.first[id] = time.Now()
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
	by   *act
	name string
	// wrong is what goes wrong with it.
	wrong int
	// arrive has the provider judge and execute it.
	arrive func(after time.Duration)
}

// ask is one call to the provider: made has it execute the call once it has arrived, and declined say no.
func (p *process) ask(ctx context.Context, name string, declines bool, made, declined func()) outbox.Outcome {
	name, failed := p.reach(ctx, name, func() {
		if declines {
			declined()
		} else {
			made()
		}
	})
	switch {
	case failed != nil:
		return failed
	case declines:
		return outbox.Declined{Reference: "declined", Evidence: []byte(`{"declined":true}`)}
	}
	return outbox.Delivered{Reference: name, Evidence: []byte(`{"made":true}`)}
}

// reach is one call to the provider, which arrive has it execute. It returns the call's own name, and nil where its caller gets the
// answer.
func (p *process) reach(ctx context.Context, name string, arrive func()) (string, outbox.Outcome) {
	w := p.world
	if w.over.Load() {
		return name, outbox.Ambiguous{Cause: errProvider}
	}
	c := call{process: p, by: actOf(ctx), wrong: nothingWrong}
	c.name = w.numbered(c.by.name + " in " + p.name + " calls " + name)
	p.thaw()
	if p.dead.Load() {
		_ = p.stay(ctx, nil)
		return c.name, outbox.Ambiguous{Cause: errProvider}
	}
	w.noteCall(c.name, cutsOfCalls)
	if way := w.fault(c.name, w.weather(c.by.name, w.mood.provider), len(w.mood.callFaults)); way > 0 {
		c.wrong = w.mood.callFaults[way-1]
	}
	w.say("%s%s", c.name, spaced(callFaultNames[c.wrong]))
	c.arrive = func(after time.Duration) {
		time.Sleep(after)
		_ = w.land(c.by, c.name, false, func() error {
			arrive()
			return nil
		})
	}
	return c.name, c.leave(ctx)
}

// leave sends the call, and returns what its caller knows where the provider's answer does not arrive; nil where it does.
func (c call) leave(ctx context.Context) outbox.Outcome {
	if c.wrong == calledAfterFreeze {
		d := c.atMost(c.name+" freeze", c.mood.freeze)
		c.freeze(d)
		time.Sleep(d) // and not beyond, whatever else freezes the process meanwhile
	}
	// The last look is before the freeze, which FreezeAllowance is for, or after it. What a wrapped handler sends has none after it.
	looks := c.wrong != calledAfterFreeze || (c.by.key == nil || !c.by.key.wrapped) && c.oneOf(c.name+" looks after its freeze", 2) == 1
	if ctx.Err() != nil && looks || c.wrong == callUnsent {
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
		c.spawn(func() { c.arrive(c.atMost(c.name+" late", c.mood.longest-time.Second)) })
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
		c.freezeFor(c.name, c.mood.frozen)
	}
	time.Sleep(c.between(c.name+" back", time.Millisecond, 300*time.Millisecond))
	c.thaw()
	if c.dead.Load() {
		_ = c.stay(ctx, nil)
	}
	return nil
}

func spaced(text string) string {
	if text == "" {
		return ""
	}
	return " and " + text
}

// look is one look into the provider's books: has says what stands in them when it arrives.
func (p *process) look(ctx context.Context, name string, has func() bool) (found, known bool) {
	w := p.world
	if w.over.Load() {
		return has(), true
	}
	name = w.numbered(actOf(ctx).name + " in " + p.name + " asks about " + name)
	p.thaw()
	if p.dead.Load() {
		_ = p.stay(ctx, nil)
	}
	switch w.fault(name, w.mood.provider, 2) {
	case 1:
		_ = p.wait(ctx, name)
		return false, false
	case 2: // its books are read soon after it was asked, and its answer takes its time
		found = has()
		time.Sleep(w.between(name+" back", time.Second, 5*time.Second))
	default:
		time.Sleep(w.between(name, 5*time.Millisecond, 900*time.Millisecond))
		found = has()
	}
	p.thaw()
	return found, ctx.Err() == nil && !p.dead.Load()
}

// topics are those of the story: with keys, with a look-up, and with neither. A release that is older knows none of them.
func (p *process) topics() []outbox.Topic {
	if p.older {
		return []outbox.Topic{p.topic("sim.other", false, false)}
	}
	return []outbox.Topic{
		p.topic(withKeys, true, true), p.topic(withKeysAlone, true, false), p.topic(withLookUp, false, true), p.topic(withNothing, false, false),
		p.topic(first, true, true), p.topic(second, true, true), p.topic(undo, true, true),
	}
}

func (p *process) topic(name string, honoured, probed bool) outbox.Topic {
	t := p.mood.topic
	t.Name, t.Settle = name, p.settle
	t.Call = func(ctx context.Context, m storage.Message) outbox.Outcome { return p.deliver(ctx, m, honoured) }
	if honoured {
		t.Keys = outbox.Keys{Honoured: true, Retention: p.mood.remembers}
	}
	if probed {
		t.Probe = func(ctx context.Context, m storage.Message) outbox.Finding { return p.probe(ctx, m) }
	}
	return t
}

// deliver is a topic's call.
func (p *process) deliver(ctx context.Context, m storage.Message, honoured bool) outbox.Outcome {
	outcome := p.ask(ctx, m.Topic+" of "+string(m.Payload), p.declines(honoured, m), func() {
		p.provider.charge(string(m.ID), honoured)
		p.effected(m, true)
	}, func() { p.webhook(m, false) })
	if _, refused := outcome.(outbox.Refused); refused {
		p.refuted(m)
	}
	return outcome
}

// Topics of the story.
const (
	withKeys      = "sim.keys"
	withKeysAlone = "sim.keys.alone"
	withLookUp    = "sim.lookup"
	withNothing   = "sim.nothing"
	first         = "sim.first"  // of a chain
	second        = "sim.second" // and what follows
	undo          = "sim.undo"   // undoes the first
)

// honours says whether the provider executes what a topic's message asks for once only.
func honours(topic string) bool { return topic != withLookUp && topic != withNothing }

// declines says whether the provider declines what the message asks for. Where it knows keys it says the same each time; elsewhere
// another call may succeed. What undoes is never declined.
func (w *world) declines(honoured bool, m storage.Message) bool {
	name := "provider declines " + m.Topic + " of " + string(m.Payload)
	if !honoured {
		name = w.numbered(name)
	}
	return m.Topic != undo && w.fault(name, w.mood.declines, 1) != nothingWrong
}

// probe looks a message's effect up.
func (p *process) probe(ctx context.Context, m storage.Message) outbox.Finding {
	switch found, known := p.look(ctx, m.Topic+" of "+string(m.Payload), func() bool { return p.provider.has(string(m.ID)) > 0 }); {
	case !known:
		return outbox.Unclear{Cause: errProvider}
	case found:
		return outbox.Found{Outcome: outbox.Delivered{Reference: string(m.ID), Evidence: []byte(`{"made":true}`)}}
	default:
		return outbox.Absent{}
	}
}
