package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// lanes look at each of what a run lists. What the same provider is asked about stands in one lane, and is looked at by as many
// goroutines as that lane has: a provider that hangs holds up its own lane, and no other.
type lanes[Ref any] struct {
	*round[Ref]
	laned[Ref]
	byName map[string]*lane[Ref]
	group  sync.WaitGroup
}

// laned says how a walk looks, and where.
type laned[Ref any] struct {
	// look does what a listed one asks for. It may say that it stands in another lane, with a [*laneError].
	look func(ctx context.Context, lane string, ref Ref) (Decision, error)
	// lane is where it stands; nil where all stand in one.
	lane func(Ref) string
	// width is how many looks of a lane run at the same time, and narrowest the least that it is of any lane.
	width     func(lane string) int
	narrowest int
}

// lane is what one lane still has to look at; round.mu guards it. taken is how many came into it in this run, and looking how
// many goroutines it has.
type lane[Ref any] struct {
	waiting        []listedRef[Ref]
	taken, looking int
}

type listedRef[Ref any] struct {
	ref Ref
	of  page[Ref]
}

// laneError says that what was looked at stands in another lane. Nothing was asked or written.
type laneError struct{ lane string }

func (e *laneError) Error() string { return fmt.Sprintf("outbox: stands in lane %q", e.lane) }

func (l laned[Ref]) begin(_ context.Context, r *round[Ref]) taker[Ref] {
	return &lanes[Ref]{round: r, laned: l, byName: map[string]*lane[Ref]{}}
}

// room is what Config.SweepMax leaves of the one lane. Where there are several, a full one must not hide what is listed after it.
func (l *lanes[Ref]) room(int) int {
	if l.lane != nil {
		return l.page
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg.SweepMax - l.named("").taken
}

// fits supposes that all stand in the narrowest lane, and that each look takes its whole time.
func (l *lanes[Ref]) fits(left time.Duration) int {
	width := l.narrowest
	if l.cfg.SweepConcurrency == 1 {
		width = 1
	}
	return width * int(left/l.lookTime)
}

func (l *lanes[Ref]) take(ctx context.Context, p page[Ref]) {
	for _, ref := range p.refs {
		name := ""
		if l.lane != nil {
			name = l.lane(ref)
		}
		l.put(ctx, name, listedRef[Ref]{ref, p})
	}
}

func (l *lanes[Ref]) wait() { l.group.Wait() }

// named is the lane of the name; round.mu must be held.
func (l *lanes[Ref]) named(name string) *lane[Ref] {
	one := l.byName[name]
	if one == nil {
		one = &lane[Ref]{}
		l.byName[name] = one
	}
	return one
}

// put has a lane look at what was listed, or leaves it where the lane has taken as many as one run may.
func (l *lanes[Ref]) put(ctx context.Context, name string, listed listedRef[Ref]) {
	l.mu.Lock()
	one := l.named(name)
	full, more := one.taken >= l.cfg.SweepMax, one.looking < l.width(name)
	if !full {
		one.taken++
		one.waiting = append(one.waiting, listed)
		if more {
			one.looking++
		}
	}
	if full {
		l.leaveIn(name, listed.of)
	}
	l.mu.Unlock()
	switch {
	case full || !more:
	case l.cfg.SweepConcurrency == 1: // everything in the caller's goroutine
		l.work(ctx, name, one)
	default:
		l.group.Go(func() { l.work(ctx, name, one) })
	}
}

// work looks at one after the other, until the lane is empty or the run's time is over.
func (l *lanes[Ref]) work(ctx context.Context, name string, one *lane[Ref]) {
	for {
		listed, ok := l.next(ctx, name, one)
		if !ok {
			return
		}
		decision, err := l.look(ctx, name, listed.ref)
		var other *laneError
		if errors.As(err, &other) {
			l.put(ctx, other.lane, listed)
			continue
		}
		if err != nil {
			l.failed(ctx, err, listed.ref)
		}
		l.count(decision, err)
	}
}

// next is what the lane looks at next. Where there is no time for it, everything that waits is left.
func (l *lanes[Ref]) next(ctx context.Context, name string, one *lane[Ref]) (listed listedRef[Ref], ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timeOver(ctx) {
		for _, left := range one.waiting {
			l.leaveIn(name, left.of)
		}
		one.waiting = nil
	}
	if len(one.waiting) == 0 {
		one.looking--
		return listed, false
	}
	listed, one.waiting = one.waiting[0], one.waiting[1:]
	return listed, true
}

// leaveIn leaves to the next run what a lane did not come to; round.mu must be held.
func (l *lanes[Ref]) leaveIn(name string, p page[Ref]) {
	if name != "" {
		l.hold(p)
		return
	}
	l.did.Unfinished = true
	l.stop(p)
}
