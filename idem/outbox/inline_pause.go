package outbox

import (
	"context"
	"sync"
	"time"
)

// pausedTenantsMax bounds the memory of pauses: of more tenants the one whose pause ends first is forgotten, and called again.
const pausedTenantsMax = 1_000

// pauses is what an [Inline] has learnt of how long a provider holds requests: a pause of a topic for one tenant begins with a call
// that was slow, and a pause of a topic for everybody with slowMax of them in a row. It is this process's alone: nothing is
// written, and nobody is asked.
//
// When a pause is over one call is let through. It reserves the next pause, so a call that is let through and then not made, because
// its commit failed, has to be reported by nobody. A circuit breaker of a library counts such a call as under way for ever.
type pauses struct {
	slowMax int
	// draw draws the length of a pause, which is longest at most.
	draw    func() time.Duration
	longest time.Duration

	mu      sync.Mutex
	topics  map[string]topicPause
	tenants map[tenantTopic]time.Time
}

// topicPause is how many calls of a topic in a row were slow, and until when the topic is paused for everybody: zero where it is not.
type topicPause struct {
	slow  int
	until time.Time
}

type tenantTopic struct{ tenant, topic string }

// paused says for whom something begins or ends.
type paused struct{ tenant, topic bool }

func newPauses(d *desk) *pauses {
	pause := d.cfg.InlinePause
	draw := func() time.Duration { return between(pause/2, pause/2+pause, d.random()) }
	return &pauses{slowMax: d.cfg.InlineSlowMax, draw: draw, longest: pause/2 + pause, topics: map[string]topicPause{}, tenants: map[tenantTopic]time.Time{}}
}

// lasts says that a pause until then is not over. One that would last longer than any began before the clock was set back.
func (p *pauses) lasts(until, now time.Time) bool {
	return now.Before(until) && until.Sub(now) <= p.longest
}

// admits says whether a call of the topic may hold a request of the tenant.
func (p *pauses) admits(tenant, topic string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, key := p.topics[topic], tenantTopic{tenant, topic}
	until, own := p.tenants[key]
	if p.lasts(all.until, now) || p.lasts(until, now) {
		return false
	}
	if !all.until.IsZero() {
		all.until = now.Add(p.draw())
		p.topics[topic] = all
	}
	if own {
		p.tenants[key] = now.Add(p.draw())
	}
	return true
}

// slow begins the pauses that a slow call leads to.
func (p *pauses) slow(tenant, topic string, now time.Time) (begun paused) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, key := p.topics[topic], tenantTopic{tenant, topic}
	if _, kept := p.tenants[key]; !kept && len(p.tenants) >= pausedTenantsMax {
		delete(p.tenants, p.first())
	}
	p.tenants[key] = now.Add(p.draw())
	if all.slow++; all.slow >= p.slowMax {
		all.until = now.Add(p.draw())
	}
	p.topics[topic] = all
	return paused{tenant: true, topic: !all.until.IsZero()}
}

// quick ends the pauses that a quick call disproves: the topic's, and the tenant's.
func (p *pauses) quick(tenant, topic string) (ended paused) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := tenantTopic{tenant, topic}
	_, ended.tenant = p.tenants[key]
	ended.topic = !p.topics[topic].until.IsZero()
	delete(p.tenants, key)
	delete(p.topics, topic)
	return ended
}

// first is the tenant and topic whose pause ends first.
func (p *pauses) first() (first tenantTopic) {
	var ends time.Time
	for key, until := range p.tenants {
		if ends.IsZero() || until.Before(ends) {
			first, ends = key, until
		}
	}
	return first
}

// learn notes for inline deliveries how long the provider held the call that began at that time, and whether it was the context's
// end that ended it.
func (x *delivery) learn(ctx context.Context, began time.Time, timedOut bool) {
	if x.pauses == nil {
		return
	}
	now := x.desk.now()
	took, tenant, topic := now.Sub(began), x.row.Tenant, x.row.Topic
	if !timedOut && took < x.cfg.InlineSlowAfter {
		x.tellPauses(ctx, "outbox.inline_resumed", x.pauses.quick(tenant, topic), took)
		return
	}
	x.tellPauses(ctx, "outbox.inline_paused", x.pauses.slow(tenant, topic, now), took)
}

// tellPauses writes one line for the tenant's pause and one for the topic's.
func (x *delivery) tellPauses(ctx context.Context, event string, of paused, took time.Duration) {
	level := levelInfo
	if event == "outbox.inline_paused" {
		level = levelWarn
	}
	if of.tenant {
		x.log(ctx, level, event, x.row, "scope", "tenant", "call_ms", took.Milliseconds())
	}
	if of.topic {
		x.log(ctx, level, event, x.row, "scope", "topic", "call_ms", took.Milliseconds())
	}
}
