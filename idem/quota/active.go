package quota

import (
	"context"
	"strconv"
	"time"
)

// active is an instance's part of a limit on keys that are remembered.
type active struct {
	// hour is the one that the rest is about, in hours since 1970.
	hour int64
	// have are rights in hand, given were given out in this hour.
	have, given int64
	// past is the sum of the hours before that still count, as it was read at readAt.
	past   int64
	readAt time.Time
	// fullUntil is until when nobody needs to ask again.
	fullUntil time.Time
}

const (
	// pastFor is how long the sum of the past is believed. It only shrinks, but for the last blocks of other instances.
	pastFor = time.Minute
	// fullFor is for how long an instance that has met the limit asks nobody.
	fullFor     = 10 * time.Second
	hoursPerDay = 24
)

// counters are how an instance reaches a tenant's counters.
type counters struct {
	// read sums the hours [from, to).
	read func(ctx context.Context, from, to int64) (int64, error)
	// add adds to an hour and returns its sum.
	add func(ctx context.Context, hour, n int64) (int64, error)
}

// take gives out one right, or says for how long there is none.
func (a *active) take(ctx context.Context, now time.Time, limit, horizon int64, c counters) (time.Duration, error) {
	if hour := now.Unix() / 3600; hour != a.hour {
		*a = active{hour: hour}
	}
	if a.have == 0 {
		if now.Before(a.fullUntil) {
			return untilNextHour(now), nil
		}
		if err := a.ask(ctx, now, limit, horizon, c); err != nil {
			return 0, err
		}
		if a.have == 0 {
			a.fullUntil = now.Add(fullFor)
			return untilNextHour(now), nil
		}
	}
	a.have--
	a.given++
	return 0, nil
}

// ask gets a block of rights. What lies beyond the limit is given back, because the hour's counter says later how many
// keys there are; that failing, it counts too many for a while.
func (a *active) ask(ctx context.Context, now time.Time, limit, horizon int64, c counters) error {
	if now.Sub(a.readAt) >= pastFor || a.readAt.IsZero() {
		past, err := c.read(ctx, a.hour-horizon, a.hour)
		if err != nil {
			return err
		}
		a.past, a.readAt = past, now
	}
	left := limit - a.past
	if left <= 0 {
		return nil
	}
	n := block(limit, a.given)
	sum, err := c.add(ctx, a.hour, n)
	if err != nil {
		return err
	}
	if a.have = within(left, sum, n); a.have < n {
		_, _ = c.add(ctx, a.hour, a.have-n)
	}
	return nil
}

func (a *active) giveBack(hour int64) {
	if a.hour == hour {
		a.have++
		a.given--
	}
}

// untilNextHour is when the oldest hour stops counting.
func untilNextHour(now time.Time) time.Duration {
	return now.Truncate(time.Hour).Add(time.Hour).Sub(now)
}

// dayOf and fieldOf say where an hour is counted: its day's counter, a field for each hour.
func dayOf(hour int64) int64 { return hour / hoursPerDay }

func fieldOf(hour int64) string { return "h" + strconv.FormatInt(hour%hoursPerDay, 10) }
