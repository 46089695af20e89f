package main

import (
	"context"
	"slices"
	"testing"
	"time"
)

// Nearest rank: the smallest value that p per cent of all do not exceed.
func TestPercentilesAreNearestRank(t *testing.T) {
	upTo := func(n int) (all []time.Duration) {
		for i := n; i >= 1; i-- { // unsorted
			all = append(all, time.Duration(i))
		}
		return all
	}
	for name, row := range map[string]struct {
		all  []time.Duration
		p    int
		want time.Duration
	}{
		"none":                       {nil, 50, 0},
		"one":                        {upTo(1), 99, 1},
		"median of two is the lower": {upTo(2), 50, 1},
		"median of three":            {upTo(3), 50, 2},
		"p99 of 99 is the largest":   {upTo(99), 99, 99},
		"p99 of 100":                 {upTo(100), 99, 99},
		"p99 of 101":                 {upTo(101), 99, 100},
		"p99 of 200":                 {upTo(200), 99, 198},
		"p100":                       {upTo(7), 100, 7},
	} {
		if got := percentile(row.all, row.p); got != row.want {
			t.Errorf("%s: got %d, want %d", name, got, row.want)
		}
	}
}

func TestDriveSendsEachRequestOnceAndCountsErrorsByCode(t *testing.T) {
	sent := make(chan int, 40)
	s := drive(t.Context(), 10, 40, 8, func(_ context.Context, n int) string {
		sent <- n
		if n%4 == 0 {
			return "503 planted"
		}
		return ""
	})
	close(sent)
	var got []int
	for n := range sent {
		got = append(got, n)
	}
	slices.Sort(got)
	if len(got) != 40 || got[0] != 10 || got[39] != 49 || len(slices.Compact(got)) != 40 {
		t.Errorf("sent %v", got)
	}
	sum := s.plus(s)
	if len(s.latencies) != 40 || s.errors["503 planted"] != 10 || len(sum.latencies) != 80 || sum.errors["503 planted"] != 20 || sum.wall != 2*s.wall {
		t.Errorf("%d latencies, %v; twice: %d, %v", len(s.latencies), s.errors, len(sum.latencies), sum.errors)
	}
	if f := sum.figure("path", 8); f.Requests != 80 || f.Errors["503 planted"] != 20 || f.PerSecond <= 0 {
		t.Errorf("%+v", f)
	}
}
