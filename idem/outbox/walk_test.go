package outbox

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// index is a sparse index in which everything is always due: shards of numbers, in order.
type index struct {
	shards [][]int
	// lists counts the listings; down are the shards that can't be listed.
	lists int
	down  []int
}

var errUnlisted = errors.New("down")

func (x *index) list(_ context.Context, _ string, shard int, _ time.Time, limit int, cursor string) ([]int, string, error) {
	x.lists++
	if slices.Contains(x.down, shard) {
		return nil, "", errUnlisted
	}
	from, _ := strconv.Atoi(cursor)
	all := x.shards[shard][from:]
	if len(all) <= limit {
		return all, "", nil
	}
	return all[:limit], strconv.Itoa(from + limit), nil
}

// walk goes through the index; what it looks at is noted in seen, and what could not be listed in failed.
func (x *index) walk(page, most int) *noted {
	n := &noted{}
	n.walk = &walk[int]{
		cfg:    Config{SweepPage: page, SweepMax: most, StoreTimeout: time.Second, Now: time.Now},
		shards: len(x.shards), list: x.list, lookTime: 2 * time.Second,
		look: func(_ context.Context, number int) (Decision, error) {
			n.seen = append(n.seen, number)
			time.Sleep(n.takes)
			return DecisionNone, nil
		},
		failed: func(_ context.Context, _ error, about any) { n.failed = append(n.failed, about) },
	}
	return n
}

// noted is a walk, and what it met.
type noted struct {
	walk   *walk[int]
	seen   []int
	failed []any
	takes  time.Duration
}

// run walks once, and returns what was seen in that run.
func (n *noted) run(ctx context.Context) ([]int, Counts, error) {
	n.seen = nil
	did, err := n.walk.run(ctx)
	return n.seen, did, err
}

func TestAWalkLooksAtEverythingOnce(t *testing.T) {
	x := &index{shards: [][]int{{1, 2, 3, 4, 5}, {}, {6}}}
	seen, did, err := x.walk(2, 100).run(t.Context())
	if did != (Counts{Skipped: 6}) || err != nil || !slices.Equal(seen, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%v, %+v, %v", seen, did, err)
	}
	if x.lists != 5 { // three pages, an empty shard, one page
		t.Errorf("%d listings", x.lists)
	}
}

func TestAWalkGoesOnWhereTheLastOneStopped(t *testing.T) {
	for _, page := range []int{1, 2, 3, 100} {
		x := &index{shards: [][]int{{1, 2, 3, 4, 5}, {6, 7}, {8}}}
		w := x.walk(page, 3)
		for run, want := range [][]int{{1, 2, 3}, {4, 5, 6}, {7, 8, 1}, {2, 3, 4}} {
			seen, did, err := w.run(t.Context())
			if !did.Unfinished || err != nil || !slices.Equal(seen, want) {
				t.Errorf("pages of %d, run %d: %v, %+v, %v; want %v", page, run, seen, did, err, want)
			}
		}
	}
}

// What a context cuts off comes first in the next run, the rest of its page too.
func TestAWalkStopsInTimeForOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{shards: [][]int{{1, 2, 3}}}
		w := x.walk(10, 100)
		w.takes = 1001 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if seen, did, err := w.run(ctx); !did.Unfinished || err != nil || !slices.Equal(seen, []int{1}) {
			t.Errorf("%v, %+v, %v", seen, did, err)
		}
		if seen, did, err := w.run(t.Context()); did.Unfinished || err != nil || !slices.Equal(seen, []int{2, 3}) {
			t.Errorf("%v, %+v, %v", seen, did, err)
		}
		if x.lists != 1 {
			t.Errorf("%d listings, want one: the rest was listed already", x.lists)
		}
		over, cancelOver := context.WithCancel(t.Context())
		cancelOver()
		if _, did, err := w.run(over); !did.Unfinished || err != nil || x.lists != 1 {
			t.Errorf("no time at all: %+v, %v, %d listings", did, err, x.lists)
		}
	})
}

func TestAWalkTellsOfShardsThatFail(t *testing.T) {
	x := &index{shards: [][]int{{1}, {2}, {3}}, down: []int{1}}
	w := x.walk(2, 100)
	seen, did, err := w.run(t.Context())
	if did != (Counts{Skipped: 2, Errors: 1}) || err != nil || !slices.Equal(seen, []int{1, 3}) || !slices.Equal(w.failed, []any{1}) {
		t.Errorf("%v, told %v, %+v, %v", seen, w.failed, did, err)
	}
	x.down = []int{0, 1, 2}
	if _, did, err := w.run(t.Context()); did.Errors != 3 || !errors.Is(err, errUnlisted) {
		t.Errorf("all down: %+v, %v", did, err)
	}
}
