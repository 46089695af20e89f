package outbox

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
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

// walk goes through the index, one look at a time unless the test says otherwise.
func (x *index) walk(page, most int) *noted {
	n := &noted{takes: func(int) time.Duration { return 0 }, looked: map[int]int{}}
	n.walk = &walk[int]{
		cfg:    Config{SweepPage: page, SweepMax: most, SweepConcurrency: 1, StoreTimeout: time.Second, Now: time.Now},
		shards: len(x.shards), list: x.list, lookTime: 2 * time.Second, look: n.look,
		failed: func(_ context.Context, _ error, about any) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.failed = append(n.failed, about)
		},
	}
	return n
}

// noted is a walk, and what it met.
type noted struct {
	walk *walk[int]
	// takes is how long the look at a number takes; errs says that it fails.
	takes func(number int) time.Duration
	errs  func(number int) bool

	mu sync.Mutex
	// seen and failed are in the order of a run's looks, looked counts those of all runs. atOnce is how many looks are under
	// way, and most the most there were.
	seen         []int
	failed       []any
	looked       map[int]int
	atOnce, most int
}

func (n *noted) look(ctx context.Context, number int) (Decision, error) {
	n.mu.Lock()
	n.seen = append(n.seen, number)
	n.looked[number]++
	n.atOnce++
	n.most = max(n.most, n.atOnce)
	takes, fails := n.takes(number), n.errs != nil && n.errs(number)
	n.mu.Unlock()
	_ = idem.Pause(ctx, takes) // a look that is cut short is a look
	n.mu.Lock()
	n.atOnce--
	n.mu.Unlock()
	if fails {
		return DecisionNone, errors.New("not to be looked at")
	}
	return DecisionNone, nil
}

// run walks once, and returns what was seen in that run.
func (n *noted) run(ctx context.Context) ([]int, Counts, error) {
	n.seen, n.failed = nil, nil
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
		w.takes = func(int) time.Duration { return 1001 * time.Millisecond }
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

func TestASlowLookHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{shards: [][]int{{0, 1, 2, 3}, {4, 5}, {6, 7, 8, 9}}}
		w, began, ended := x.walk(2, 100), time.Now(), map[int]time.Duration{}
		w.walk.cfg.SweepConcurrency = 2
		look := w.walk.look
		w.walk.look = func(ctx context.Context, number int) (Decision, error) {
			decision, err := look(ctx, number)
			w.mu.Lock()
			defer w.mu.Unlock()
			ended[number] = time.Since(began)
			return decision, err
		}
		w.takes = func(number int) time.Duration {
			if number == 1 {
				return time.Hour
			}
			return time.Second
		}
		if _, did, err := w.run(t.Context()); did != (Counts{Skipped: 10}) || err != nil || ended[1] != time.Hour {
			t.Errorf("%+v, %v, the slow one ended after %v", did, err, ended[1])
		}
		for number, after := range ended {
			if number != 1 && after > 9*time.Second {
				t.Errorf("%d ended after %v, want 9 s at most: one after the other beside the slow one", number, after)
			}
		}
	})
}

// However runs are stopped, the next one goes on exactly there: no item is looked at twice more often than another. No run
// exceeds a bound, and its counts are those of its looks.
func TestAWalkThatIsStoppedAnywhereSkipsNothing(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			x, total := &index{}, 0
			for range 1 + random.IntN(4) {
				var shard []int
				for range random.IntN(20) {
					shard = append(shard, total)
					total++
				}
				x.shards = append(x.shards, shard)
			}
			w := x.walk(1+random.IntN(7), 1+random.IntN(12))
			w.walk.cfg.SweepConcurrency = 1 + random.IntN(8)
			w.takes = func(int) time.Duration { return time.Duration(random.IntN(2000)) * time.Millisecond }
			w.errs = func(number int) bool { return number%3 == 0 }
			for range 20 {
				ctx, cancel := stopped(t, random)
				w.wantRun(t, ctx, total)
				cancel()
			}
			before := maps.Clone(w.looked)
			for range (total+w.walk.cfg.SweepMax-1)/w.walk.cfg.SweepMax + 1 {
				w.wantRun(t, t.Context(), total)
			}
			for number := range total {
				if w.looked[number] == before[number] {
					t.Errorf("seed %d: %d is starved by %d others, %d in a run", seed, number, total-1, w.walk.cfg.SweepMax)
				}
			}
			if w.most > w.walk.cfg.SweepConcurrency {
				t.Errorf("seed %d: %d looks at once, want %d at most", seed, w.most, w.walk.cfg.SweepConcurrency)
			}
		})
	}
}

// stopped is a context that is over at a random time, is cancelled then, or neither.
func stopped(t *testing.T, random *rand.Rand) (context.Context, context.CancelFunc) {
	after := time.Duration(random.IntN(8000)) * time.Millisecond
	switch random.IntN(3) {
	case 0:
		return context.WithTimeout(t.Context(), after)
	case 1:
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(after, cancel)
		return ctx, cancel
	}
	return context.WithCancel(t.Context())
}

// wantRun walks once, and compares what it did with its bounds and with what all runs looked at, of so many items.
func (n *noted) wantRun(t *testing.T, ctx context.Context, total int) {
	t.Helper()
	seen, did, err := n.run(ctx)
	if err != nil || len(seen) > n.walk.cfg.SweepMax || did.Errors != len(n.failed) || did.Skipped+did.Errors != len(seen) {
		t.Errorf("%d looks, %d of them failed, %d allowed: counted %+v, %v", len(seen), len(n.failed), n.walk.cfg.SweepMax, did, err)
	}
	least, most := n.looked[0], n.looked[0]
	for number := range total {
		least, most = min(least, n.looked[number]), max(most, n.looked[number])
	}
	if most-least > 1 {
		t.Errorf("looked at one %d times, and at another %d times", most, least)
	}
}
