package outbox

import (
	"context"
	"errors"
	"fmt"
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

// index is a sparse index in which everything is always due: shards of numbers, in order. It keeps places too.
type index struct {
	shards [][]int
	// lists counts the listings; down are the shards that can't be listed.
	lists int
	down  []int
	// places are by name; unplaced says that they can't be read or set.
	places   map[string]string
	unplaced bool
}

func (x *index) Place(_ context.Context, name string) (string, error) {
	if x.unplaced {
		return "", errUnlisted
	}
	return x.places[name], nil
}

func (x *index) SetPlace(_ context.Context, name, cursor string) error {
	if x.unplaced {
		return errUnlisted
	}
	if x.places == nil {
		x.places = map[string]string{}
	}
	x.places[name] = cursor
	return nil
}

var errUnlisted = errors.New("down")

func (x *index) list(_ context.Context, _ string, shard int, until time.Time, limit int, cursor string) ([]int, string, error) {
	x.lists++
	if slices.Contains(x.down, shard) {
		return nil, "", errUnlisted
	}
	from, err := strconv.Atoi(cursor)
	if err != nil && cursor != "" {
		return nil, "", err
	}
	all := slices.DeleteFunc(slices.Clone(x.shards[shard][from:]), func(number int) bool { return place(number).After(until) })
	if len(all) <= limit {
		return all, "", nil
	}
	return all[:limit], strconv.Itoa(from + limit), nil
}

// place is when a number is due: long ago, in the order of the numbers.
func place(number int) time.Time { return time.UnixMilli(int64(1 + number)) }

// walk goes through the index, one look at a time unless the test says otherwise. Numbers stand in lanes by lane, where it is set.
func (x *index) walk(page, most int) *noted {
	n := &noted{index: x, takes: func(int) time.Duration { return 0 }, looked: map[int]int{}}
	n.how = laned[int]{look: n.look, width: func(string) int { return n.walk.cfg.SweepConcurrency }, narrowest: 1}
	n.walk = &walk[int]{
		cfg:  Config{SweepPage: page, SweepMax: most, SweepConcurrency: 1, StoreTimeout: time.Second, Now: time.Now},
		page: page, places: x, name: "numbers",
		list: x.list, at: place, wraps: true, lookTime: 2 * time.Second,
		begin: func(ctx context.Context, r *round[int]) taker[int] { return n.how.begin(ctx, r) },
		failed: func(_ context.Context, _ error, about any) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.failed = append(n.failed, about)
		},
	}
	return n
}

// anotherProcess has the next run be made by a process that knows nothing of those before.
func (n *noted) anotherProcess() {
	old := n.walk
	n.walk = &walk[int]{
		cfg: old.cfg, page: old.page, places: old.places, name: old.name, list: old.list, at: old.at, wraps: old.wraps, lookTime: old.lookTime,
		begin: old.begin, failed: old.failed,
	}
}

// noted is a walk, and what it met.
type noted struct {
	index *index
	walk  *walk[int]
	how   laned[int]
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

func (n *noted) look(ctx context.Context, _ string, number int) (Decision, error) {
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
	did, err := n.walk.run(ctx, n.all(), len(n.index.shards), false)
	return n.seen, did, err
}

func (n *noted) all() (shards []int) {
	for shard := range n.index.shards {
		shards = append(shards, shard)
	}
	return shards
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

// Where a run stopped, the next one goes on, whichever process makes it. A shard of one page is looked at as a whole.
func TestAWalkGoesOnWhereTheLastOneStopped(t *testing.T) {
	for _, page := range []int{1, 2, 3, 100} {
		x := &index{shards: [][]int{{1, 2, 3, 4, 5}, {6, 7}, {8}}}
		w := x.walk(page, 3)
		for run, want := range [][]int{{1, 2, 3}, {6, 7, 8}, {4, 5, 6}} {
			seen, did, err := w.run(t.Context())
			if !did.Unfinished || err != nil || !slices.Equal(seen, want) {
				t.Errorf("pages of %d, run %d: %v, %+v, %v; want %v", page, run, seen, did, err, want)
			}
		}
		for range 2 {
			if _, did, err := w.run(t.Context()); !did.Unfinished || err != nil {
				t.Errorf("pages of %d: %+v, %v", page, did, err)
			}
		}
		for number := range 8 {
			if n := w.looked[number+1]; n == 0 || n > 3 {
				t.Errorf("pages of %d: %d was looked at %d times in 5 runs of 3", page, number+1, n)
			}
		}
	}
	x := &index{shards: [][]int{{1, 2, 3, 4, 5}}}
	w := x.walk(2, 3)
	for run, want := range [][]int{{1, 2, 3}, {4, 5, 1}, {2, 3, 4}, {5, 1, 2}} {
		if seen, did, err := w.run(t.Context()); !did.Unfinished || err != nil || !slices.Equal(seen, want) {
			t.Errorf("process %d: %v, %+v, %v; want %v", run, seen, did, err, want)
		}
		w.anotherProcess()
	}
	if x.lists != 11 { // each but the first lists one page in vain, which says that there are several
		t.Errorf("%d listings", x.lists)
	}
}

// A place that can't be read, can't be set, or is no cursor of this release costs looks that were made already, and no others.
func TestAWalkWhosePlaceIsLostBeginsWithTheOldest(t *testing.T) {
	for name, lose := range map[string]func(*index){
		"down": func(x *index) { x.unplaced = true }, "strange": func(x *index) { x.places = map[string]string{"numbers.0": "?"} },
		"over": func(x *index) { x.places = map[string]string{"numbers.0": "5"} },
	} {
		x := &index{shards: [][]int{{1, 2, 3, 4, 5}}}
		lose(x)
		w := x.walk(2, 3)
		if seen, did, err := w.run(t.Context()); !did.Unfinished || did.Errors > 0 || err != nil || !slices.Equal(seen, []int{1, 2, 3}) {
			t.Errorf("%s: %v, %+v, %v", name, seen, did, err)
		}
		if told := len(w.failed) > 0; told != (name != "over") {
			t.Errorf("%s: told of %v", name, w.failed)
		}
	}
}

// A run that did all clears the place: what is due next is looked at in its order.
func TestAWalkThatCameToTheEndKeepsNoPlace(t *testing.T) {
	x := &index{shards: [][]int{{1, 2, 3, 4, 5}}, places: map[string]string{"numbers.0": "3"}}
	w := x.walk(2, 100)
	seen, did, err := w.run(t.Context())
	if did.Unfinished || err != nil || !slices.Equal(seen, []int{4, 5, 1, 2, 3, 4}) { // what is due at the place's very instant twice
		t.Errorf("%v, %+v, %v", seen, did, err)
	}
	if x.places["numbers.0"] != "" {
		t.Errorf("it keeps %q", x.places["numbers.0"])
	}
}

// What a context cuts off comes first in the next run, with the page that it stands in.
func TestAWalkStopsInTimeForOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{shards: [][]int{{1, 2, 3, 4, 5, 6}}}
		w := x.walk(2, 100)
		w.takes = func(int) time.Duration { return 1001 * time.Millisecond }
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		if seen, did, err := w.run(ctx); !did.Unfinished || err != nil || !slices.Equal(seen, []int{1, 2, 3}) {
			t.Errorf("%v, %+v, %v", seen, did, err)
		}
		w.anotherProcess()
		if seen, did, err := w.run(t.Context()); did.Unfinished || err != nil || !slices.Equal(seen, []int{4, 5, 6, 1, 2, 3, 4}) {
			t.Errorf("%v, %+v, %v", seen, did, err)
		}
		lists := x.lists
		over, cancelOver := context.WithCancel(t.Context())
		cancelOver()
		if _, did, err := w.run(over); !did.Unfinished || err != nil || x.lists != lists {
			t.Errorf("no time at all: %+v, %v, %d listings", did, err, x.lists-lists)
		}
	})
}

// A lane whose looks hang holds up no other, whatever is listed first, and none has more looks at once than its own number. What it
// did not come to is the next run's.
func TestALaneThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{shards: [][]int{nil, nil}}
		for number := range 100 {
			x.shards[number%2] = append(x.shards[number%2], number)
		}
		w := x.walk(3, 1000)
		w.walk.cfg.SweepConcurrency = 4
		hangs := func(number int) bool { return number < 80 }
		w.how.lane = func(number int) string { return strconv.FormatBool(hangs(number)) }
		w.how.width = func(lane string) int { return map[string]int{"true": 3, "false": 4}[lane] }
		var mu sync.Mutex
		atOnce, most, ended := map[string]int{}, map[string]int{}, map[int]time.Duration{}
		began := time.Now()
		w.how.look = func(ctx context.Context, lane string, number int) (Decision, error) {
			mu.Lock()
			atOnce[lane]++
			most[lane] = max(most[lane], atOnce[lane])
			mu.Unlock()
			_ = idem.Pause(ctx, map[bool]time.Duration{true: 5 * time.Second, false: time.Second}[hangs(number)])
			mu.Lock()
			defer mu.Unlock()
			atOnce[lane]--
			ended[number] = time.Since(began)
			return DecisionNone, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		_, did, err := w.run(ctx)
		if !did.Unfinished || err != nil || most["true"] != 3 || most["false"] != 4 {
			t.Errorf("%+v, %v, at once %v", did, err, most)
		}
		for number := 80; number < 100; number++ {
			if after, looked := ended[number]; !looked || after > 5*time.Second { // 20 of a second each, 4 at once
				t.Errorf("%d ended after %v, %v", number, after, looked)
			}
		}
		if did.Skipped != 20+6 { // three at 0 and 5 s: at 10 s there is no time for a look and for keeping the place
			t.Errorf("%d looks", did.Skipped)
		}
		if got := x.places["numbers.0"]; got != "6" { // behind the six
			t.Errorf("the next run goes on at %q", got)
		}
	})
}

// A look may find that it stands in another lane, and is made there.
func TestALookGoesOnInItsLane(t *testing.T) {
	for _, concurrency := range []int{1, 4} {
		x := &index{shards: [][]int{{1, 2, 3, 4, 5}}}
		w := x.walk(2, 100)
		w.walk.cfg.SweepConcurrency = concurrency
		look := w.how.look
		w.how.look = func(ctx context.Context, lane string, number int) (Decision, error) {
			if of := strconv.Itoa(number % 2); lane != of {
				return DecisionNone, fmt.Errorf("elsewhere: %w", &laneError{of})
			}
			return look(ctx, lane, number)
		}
		if seen, did, err := w.run(t.Context()); did != (Counts{Skipped: 5}) || err != nil || len(seen) != 5 {
			t.Errorf("%v, %+v, %v", seen, did, err)
		}
	}
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
	x.down = []int{2}
	if did, err := w.walk.run(t.Context(), []int{1, 2}, len(x.shards), true); did != (Counts{Skipped: 1, Errors: 1}) || !errors.Is(err, errUnlisted) {
		t.Errorf("one down of those that must be listed: %+v, %v", did, err)
	}
}

func TestASlowLookHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{shards: [][]int{{0, 1, 2, 3}, {4, 5}, {6, 7, 8, 9}}}
		w, began, ended := x.walk(2, 100), time.Now(), map[int]time.Duration{}
		w.walk.cfg.SweepConcurrency = 2
		look := w.how.look
		w.how.look = func(ctx context.Context, lane string, number int) (Decision, error) {
			decision, err := look(ctx, lane, number)
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

// However runs are stopped, and whichever process makes them: nothing is starved. No run exceeds a bound, and its counts are those
// of its looks.
func TestAWalkThatIsStoppedAnywhereStarvesNothing(t *testing.T) {
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
				w.wantRun(t, ctx)
				cancel()
				if random.IntN(2) == 0 {
					first := w.walk.first
					w.anotherProcess()
					w.walk.first = first // which process looks into which shard is the caller's
				}
			}
			before, longest := maps.Clone(w.looked), 0
			for _, shard := range x.shards {
				longest = max(longest, len(shard))
			}
			// Shards take turns. A run that ends a shard may look twice.
			for range len(x.shards)*(2*((longest+w.walk.cfg.SweepMax-1)/w.walk.cfg.SweepMax)+1) + 1 {
				w.wantRun(t, t.Context())
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

// wantRun walks once, and compares what it did with its bounds.
func (n *noted) wantRun(t *testing.T, ctx context.Context) {
	t.Helper()
	seen, did, err := n.run(ctx)
	if err != nil || len(seen) > n.walk.cfg.SweepMax || did.Errors != len(n.failed) || did.Skipped+did.Errors != len(seen) {
		t.Errorf("%d looks, %d of them failed, %d allowed: counted %+v, %v", len(seen), len(n.failed), n.walk.cfg.SweepMax, did, err)
	}
}

// However little fits into a run that is over in time, and though no run ever comes to the end: everything is looked at.
func TestAWalkWhoseRunsAreAlwaysTooShortStarvesNothing(t *testing.T) {
	for seed := range Sized[uint64](200, 20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			x, total := &index{}, 0
			for range 1 + random.IntN(4) {
				var shard []int
				for range random.IntN(60) {
					shard = append(shard, total)
					total++
				}
				x.shards = append(x.shards, shard)
			}
			w := x.walk(1+random.IntN(100), 1+random.IntN(200))
			w.walk.cfg.SweepConcurrency = 1 + random.IntN(8)
			w.how.narrowest = w.walk.cfg.SweepConcurrency
			w.takes = func(int) time.Duration { return time.Duration(1+random.IntN(2000)) * time.Millisecond }
			if random.IntN(2) == 0 {
				w.takes = func(int) time.Duration { return w.walk.lookTime }
			}
			long := time.Duration(5000+random.IntN(30_000)) * time.Millisecond
			for range 2 * (total + len(x.shards)) { // a run does one look at least; one that ends a shard may look twice
				ctx, cancel := context.WithTimeout(t.Context(), long)
				w.wantRun(t, ctx)
				cancel()
			}
			for number := range total {
				if w.looked[number] == 0 {
					t.Errorf("seed %d: %d of %d is starved: pages of %d, %d at once, runs of %s",
						seed, number, total, w.walk.page, w.walk.cfg.SweepConcurrency, long)
				}
			}
		})
	}
}

// A shard whose first page does not fit into a run holds up neither its own end nor another shard.
func TestAPageThatDoesNotFitIntoARunIsNotBegunAgainForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{shards: [][]int{nil, {100}, {101}}}
		for number := range 100 {
			x.shards[0] = append(x.shards[0], number)
		}
		w := x.walk(100, 10_000)
		w.takes = func(int) time.Duration { return time.Second }
		for range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), 55*time.Second)
			w.wantRun(t, ctx)
			cancel()
		}
		if len(w.looked) != 102 {
			t.Errorf("%d of 102 were looked at in 6 runs of 55 s", len(w.looked))
		}
	})
}

// The last look of a run may take its whole time, and there is time to keep the place after it.
func TestAWalkLeavesTimeToKeepItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, milliseconds := range []int{5001, 6500, 7999, 8000, 9500} {
			x := &index{shards: [][]int{{1, 2, 3, 4, 5, 6}}}
			w := x.walk(1, 100)
			w.takes = func(int) time.Duration { return w.walk.lookTime }
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(milliseconds)*time.Millisecond)
			w.wantRun(t, ctx)
			if left, _ := remaining(ctx); left < w.walk.cfg.StoreTimeout {
				t.Errorf("%d ms: %s are left to keep the place", milliseconds, left)
			}
			cancel()
		}
	})
}

// An operation whose probe hangs, with more records than a run takes due before all others, hides no other operation's.
func TestMoreOfAHangingLaneThanARunTakesHideNoOtherLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{shards: [][]int{nil}}
		for number := range 400 {
			x.shards[0] = append(x.shards[0], number)
		}
		w := x.walk(100, 200)
		w.walk.cfg.SweepConcurrency, w.walk.lookTime = 8, 10*time.Second
		var mu sync.Mutex
		looked := map[int]int{}
		w.how.look = func(ctx context.Context, lane string, number int) (Decision, error) {
			hangs := number < 390
			if of := strconv.FormatBool(hangs); lane != of {
				return DecisionNone, &laneError{of}
			}
			mu.Lock()
			looked[number]++
			mu.Unlock()
			if hangs {
				_ = idem.Pause(ctx, 5*time.Second)
			}
			return DecisionNone, nil
		}
		for range 12 {
			ctx, cancel := context.WithTimeout(t.Context(), 55*time.Second)
			if _, _, err := w.run(ctx); err != nil {
				t.Error(err)
			}
			cancel()
		}
		for number := 390; number < 400; number++ {
			if looked[number] == 0 {
				t.Errorf("%d was not looked at in 12 runs", number)
			}
		}
		if looked[0] == 0 {
			t.Error("what hangs was not looked at")
		}
	})
}
