package quota

import (
	"context"
	"time"

	"github.com/idem-go/idem-aws/internal/clock"
)

// active is an instance's part of a limit on keys that are remembered.
type active struct {
	// limit is the one that everything below was asked for under.
	limit int64
	// have are rights in hand until haveUntil, counted in the hour, in hours since 1970.
	have, hour int64
	haveUntil  time.Time
	// window counts by minutes: an instance holds what it gives out in seconds, so little is lost with it, and how often a
	// counter is added to grows with instances, not with keys.
	window rateWindow
	// past is the sum of the hours before readHour that still count, as it was at readAt.
	past, readHour int64
	readAt         time.Time
	// met says that the limit was met when last asked; for fullFor after fullAt, and within readHour, nobody needs to ask again.
	met    bool
	fullAt time.Time
}

const (
	// pastFor is how long the sum of the past is believed: by then it has what clocks that are behind added to it, and
	// what came back.
	pastFor = 5 * time.Minute
	// fullFor is for how long an instance that has met the limit asks nobody.
	fullFor = 10 * time.Second
	// Rights outlive their hour by outliveMin to outliveMax, at random, so that not all instances ask in its first second.
	// Their keys count so much too short.
	outliveMin = time.Minute
	outliveMax = 10 * time.Minute
)

// hours are how an instance reaches the counters of a tenant's active keys.
type hours struct {
	// limit bounds the keys of the present hour and of so many before it.
	limit, before int64
	// draw returns a number below n at random.
	draw func(n int) int
	// read sums the hours [from, to), and to itself apart.
	read func(ctx context.Context, from, to int64) (past, present int64, err error)
	// add adds to an hour and returns its sum.
	add func(ctx context.Context, hour, n int64) (int64, error)
}

// take gives out one right, or says for how long there is none.
func (a *active) take(ctx context.Context, now time.Time, h hours) (time.Duration, error) {
	hour := now.Unix() / secondsPerHour
	a.window.turn(now.Unix() / 60)
	changed := a.limit != h.limit
	if a.have > 0 && (changed || !now.Before(a.haveUntil)) {
		a.bringBack(ctx, hour, h)
	}
	if changed {
		a.limit, a.met, a.fullAt = h.limit, false, time.Time{}
	}
	if untilNext := startOf(hour + 1).Sub(now); a.have == 0 {
		if a.readHour == hour && clock.Within(now, a.fullAt, fullFor) {
			return untilNext, nil
		}
		if err := a.ask(ctx, now, hour, h); err != nil {
			a.window.given, a.window.before = 0, 0 // what is asked for and refused may count: no more than one by one
			return 0, err
		}
		if a.have == 0 {
			a.fullAt = now
			return untilNext, nil
		}
	}
	a.have--
	a.window.given++
	return 0, nil
}

// bringBack returns the rights in hand to their hour, unless that counts no longer and its counter may be gone. That
// failing, the hour counts too many until it is over.
func (a *active) bringBack(ctx context.Context, hour int64, h hours) {
	if a.hour >= hour-h.before {
		_, _ = h.add(ctx, a.hour, -a.have)
	}
	a.have = 0
}

// ask gets a block of rights. What lies beyond the limit goes back, because the counter says later how many keys there
// are; that failing, it counts too many.
func (a *active) ask(ctx context.Context, now time.Time, hour int64, h hours) error {
	if a.met || a.readHour != hour || !clock.Within(now, a.readAt, pastFor) {
		past, present, err := h.read(ctx, hour-h.before, hour)
		if err != nil {
			return err
		}
		a.past, a.readHour, a.readAt, a.met = past, hour, now, past+present >= h.limit
	}
	if a.met {
		return nil
	}
	n := a.window.block(h.limit)
	n -= int64(h.draw(int(n/2 + 1))) // instances that began together don't ask together for long
	sum, err := h.add(ctx, hour, n)
	if err != nil {
		return err
	}
	a.hour, a.have = hour, within(h.limit-a.past, sum, n)
	a.haveUntil = startOf(hour + 1).Add(outliveMin + time.Duration(h.draw(int(outliveMax-outliveMin))))
	if a.met = a.have < n; a.met {
		_, _ = h.add(ctx, hour, a.have-n)
	}
	return nil
}

func (a *active) giveBack(hour int64) {
	if a.hour == hour {
		a.have++
		a.window.given--
	}
}
