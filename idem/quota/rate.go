package quota

import (
	"context"
	"time"
)

// rate is an instance's part of a limit per second.
type rate struct {
	// window counts what was given out in the present window, which is its span.
	window rateWindow
	// have are rights in hand, of the present window.
	have int64
	// first is the shard that this window begins with, and empty how many shards were found used up.
	first, empty int
	// lookUntil is until when the counters are looked at before anything is added to them.
	lookUntil time.Time
}

const (
	// lookFor is for how long an instance that found a counter used up looks first: looking is cheaper than adding without success,
	// and takes nothing of what a partition can write.
	lookFor = time.Minute
	// lookMax is how many shards are looked at in one call, once one of the window was found used up.
	lookMax = 10
)

// windows are how an instance reaches the counters of a rate.
type windows struct {
	// limit is how many rights a window has, seconds how long it is.
	limit, seconds int64
	// draw returns a number below n at random: the shard to begin with.
	draw func(n int) int
	// add adds to a shard of a window and returns its sum.
	add func(ctx context.Context, window int64, shard int, n int64) (int64, error)
	// look returns the sums of shards of a window.
	look func(ctx context.Context, window int64, shards []int) ([]int64, error)
}

// shards is how many counters a window has: none where nothing is admitted.
func (w windows) shards() int { return int((w.limit + ShardRate - 1) / ShardRate) }

// share divides the limit among the shards, to the last right.
func (w windows) share(shard int) int64 {
	shards := int64(w.shards())
	part := w.limit / shards
	if int64(shard) < w.limit%shards {
		part++
	}
	return part
}

// take gives out one right, or says for how long there is none.
func (r *rate) take(ctx context.Context, now time.Time, w windows) (time.Duration, error) {
	if r.window.turn(now.Unix() / w.seconds) { // what was in hand is gone with its window
		r.have, r.empty, r.first = 0, 0, w.draw(w.shards())
	}
	for r.have == 0 && r.empty < w.shards() {
		if err := r.ask(ctx, now, w); err != nil {
			return 0, err
		}
	}
	if r.have == 0 {
		return time.Unix((r.window.span+1)*w.seconds, 0).Sub(now), nil
	}
	r.have--
	r.window.given++
	return 0, nil
}

// ask gets a block of rights, or finds shards used up.
func (r *rate) ask(ctx context.Context, now time.Time, w windows) error {
	if now.Before(r.lookUntil) {
		if room, err := r.look(ctx, now, w); err != nil || !room {
			return err
		}
	}
	shard, n := (r.first+r.empty)%w.shards(), r.window.block(w.limit)
	sum, err := w.add(ctx, r.window.span, shard, n)
	if err != nil {
		return err
	}
	if r.have = within(w.share(shard), sum, n); r.have < n {
		r.usedUp(now)
	}
	return nil
}

// look passes over the shards that are used up, and says whether it met one that is not: of the next one alone at first,
// so that looking is spread like adding.
func (r *rate) look(ctx context.Context, now time.Time, w windows) (bool, error) {
	shards := make([]int, 1)
	if r.empty > 0 {
		shards = make([]int, min(lookMax, w.shards()-r.empty))
	}
	for i := range shards {
		shards[i] = (r.first + r.empty + i) % w.shards()
	}
	sums, err := w.look(ctx, r.window.span, shards)
	if err != nil {
		return false, err
	}
	for i, sum := range sums {
		if sum < w.share(shards[i]) {
			return true, nil
		}
		r.usedUp(now)
	}
	return false, nil
}

func (r *rate) usedUp(now time.Time) {
	r.empty++
	r.lookUntil = now.Add(lookFor)
}

// giveBack returns a right that was taken in the window.
func (r *rate) giveBack(window int64) {
	if r.window.span == window {
		r.have++
		r.window.given--
	}
}
