package quota

import (
	"context"
	"time"
)

// add adds to a shard's counter of a window, and returns the sum.
type add func(ctx context.Context, window int64, shard int, n int64) (int64, error)

// rate is an instance's part of a limit per second.
type rate struct {
	// window is the second that the rest is about.
	window int64
	// have are rights in hand; given were given out, and before were in the window before this.
	have, given, before int64
	// first is the shard that this window begins with, and empty how many shards were found used up.
	first, empty int
}

// take gives out one right, or says for how long there is none.
func (r *rate) take(ctx context.Context, now time.Time, limit int64, first func(int) int, more add) (time.Duration, error) {
	shards := int((limit + ShardRate - 1) / ShardRate)
	r.turn(now, shards, first)
	for r.have == 0 {
		if r.empty >= shards {
			return untilNextSecond(now), nil
		}
		shard, n := (r.first+r.empty)%shards, block(limit, max(r.before, r.given))
		sum, err := more(ctx, r.window, shard, n)
		if err != nil {
			return 0, err
		}
		if r.have = within(share(limit, shards, shard), sum, n); r.have < n {
			r.empty++
		}
	}
	r.have--
	r.given++
	return 0, nil
}

// turn begins the window of now. What was in hand is gone with its window.
func (r *rate) turn(now time.Time, shards int, first func(int) int) {
	window := now.Unix()
	if window == r.window {
		return
	}
	before := r.given
	if window != r.window+1 {
		before = 0
	}
	*r = rate{window: window, before: before, first: first(shards)}
}

// giveBack returns a right that was taken in the window.
func (r *rate) giveBack(window int64) {
	if r.window == window {
		r.have++
		r.given--
	}
}

// share divides a limit among its shards, to the last right.
func share(limit int64, shards, shard int) int64 {
	part := limit / int64(shards)
	if int64(shard) < limit%int64(shards) {
		part++
	}
	return part
}

func untilNextSecond(now time.Time) time.Duration {
	return now.Truncate(time.Second).Add(time.Second).Sub(now)
}
