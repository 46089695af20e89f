package walk_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/walk"
)

// index is a sparse index in which everything is always due: shards of numbers, in order.
type index struct {
	shards [][]int
	// lists counts the listings; down are the shards that can't be listed.
	lists int
	down  []int
}

var errDown = errors.New("down")

func (x *index) list(_ context.Context, shard int, _ time.Time, limit int, cursor string) ([]int, string, error) {
	x.lists++
	if slices.Contains(x.down, shard) {
		return nil, "", errDown
	}
	from, _ := strconv.Atoi(cursor)
	all := x.shards[shard][from:]
	if len(all) <= limit {
		return all, "", nil
	}
	return all[:limit], strconv.Itoa(from + limit), nil
}

func (x *index) walk(page, most int) *walk.Walk[int] {
	return walk.New(walk.Queue[int]{
		Shards: len(x.shards), List: x.list, Page: page, Max: most, ListTimeout: time.Second, LookTime: 2 * time.Second, Now: time.Now,
	})
}

func look(seen *[]int) func(int) { return func(n int) { *seen = append(*seen, n) } }

func none(t *testing.T) func(int, error) {
	return func(shard int, err error) { t.Errorf("shard %d: %v", shard, err) }
}

func TestRunLooksAtEverythingOnce(t *testing.T) {
	x := &index{shards: [][]int{{1, 2, 3, 4, 5}, {}, {6}}}
	var seen []int
	unfinished, failed, err := x.walk(2, 100).Run(t.Context(), look(&seen), none(t))
	if unfinished || failed != 0 || err != nil || !slices.Equal(seen, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%v, unfinished %v, %d failed, %v", seen, unfinished, failed, err)
	}
	if x.lists != 5 { // three pages, an empty shard, one page
		t.Errorf("%d listings", x.lists)
	}
}

func TestRunGoesOnWhereTheLastOneStopped(t *testing.T) {
	for _, page := range []int{1, 2, 3, 100} {
		x := &index{shards: [][]int{{1, 2, 3, 4, 5}, {6, 7}, {8}}}
		w := x.walk(page, 3)
		for run, want := range [][]int{{1, 2, 3}, {4, 5, 6}, {7, 8, 1}, {2, 3, 4}} {
			var seen []int
			unfinished, _, err := w.Run(t.Context(), look(&seen), none(t))
			if !unfinished || err != nil || !slices.Equal(seen, want) {
				t.Errorf("pages of %d, run %d: %v, unfinished %v, %v; want %v", page, run, seen, unfinished, err, want)
			}
		}
	}
}

// What a context cuts off comes first in the next run, the rest of its page too.
func TestRunStopsInTimeForOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{shards: [][]int{{1, 2, 3}}}
		w := x.walk(10, 100)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var seen []int
		slow := func(n int) { seen = append(seen, n); time.Sleep(1001 * time.Millisecond) }
		if unfinished, _, err := w.Run(ctx, slow, none(t)); !unfinished || err != nil || !slices.Equal(seen, []int{1}) {
			t.Errorf("%v, unfinished %v, %v", seen, unfinished, err)
		}
		if unfinished, _, err := w.Run(t.Context(), slow, none(t)); unfinished || err != nil || !slices.Equal(seen, []int{1, 2, 3}) {
			t.Errorf("%v, unfinished %v, %v", seen, unfinished, err)
		}
		if x.lists != 1 {
			t.Errorf("%d listings, want one: the rest was listed already", x.lists)
		}
		over, cancelOver := context.WithCancel(t.Context())
		cancelOver()
		if unfinished, _, err := w.Run(over, slow, none(t)); !unfinished || err != nil || x.lists != 1 {
			t.Errorf("no time at all: unfinished %v, %v, %d listings", unfinished, err, x.lists)
		}
	})
}

func TestRunTellsOfShardsThatFail(t *testing.T) {
	x := &index{shards: [][]int{{1}, {2}, {3}}, down: []int{1}}
	w := x.walk(2, 100)
	var seen, told []int
	tell := func(shard int, err error) {
		if told = append(told, shard); !errors.Is(err, errDown) {
			t.Errorf("shard %d: %v", shard, err)
		}
	}
	unfinished, failed, err := w.Run(t.Context(), look(&seen), tell)
	if unfinished || failed != 1 || err != nil || !slices.Equal(seen, []int{1, 3}) || !slices.Equal(told, []int{1}) {
		t.Errorf("%v, told %v, %d failed, %v", seen, told, failed, err)
	}
	x.down = []int{0, 1, 2}
	if _, failed, err := w.Run(t.Context(), look(&seen), tell); failed != 3 || !errors.Is(err, errDown) {
		t.Errorf("all down: %d failed, %v", failed, err)
	}
}
