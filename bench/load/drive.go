package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sender sends the n-th request. It returns "" for the answer that is expected, and else what came instead: the code of a
// problem, for example.
type sender func(ctx context.Context, n int) (unexpected string)

// sample is what requests took, those with unexpected answers included.
type sample struct {
	latencies []time.Duration
	wall      time.Duration
	errors    map[string]int
}

// drive sends the requests from to from+requests. So many callers each send the next one as soon as they have an answer.
func drive(ctx context.Context, from, requests, callers int, send sender) sample {
	s := sample{latencies: make([]time.Duration, requests), errors: map[string]int{}}
	var mu sync.Mutex
	var next atomic.Int64
	var running sync.WaitGroup
	begun := time.Now()
	for range callers {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < requests; i = int(next.Add(1)) - 1 {
				sent := time.Now()
				unexpected := send(ctx, from+i)
				s.latencies[i] = time.Since(sent)
				if unexpected != "" {
					mu.Lock()
					s.errors[unexpected]++
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	s.wall = time.Since(begun)
	return s
}

// plus is both samples as one.
func (s sample) plus(other sample) sample {
	sum := sample{latencies: slices.Concat(s.latencies, other.latencies), wall: s.wall + other.wall, errors: map[string]int{}}
	for _, errors := range []map[string]int{s.errors, other.errors} {
		for code, n := range errors {
			sum.errors[code] += n
		}
	}
	return sum
}

// figure is the sample's.
func (s sample) figure(path string, callers int) Figure {
	f := Figure{
		Path: path, Callers: callers, Requests: len(s.latencies), PerSecond: float64(len(s.latencies)) / s.wall.Seconds(),
		P50: milliseconds(percentile(s.latencies, 50)), P99: milliseconds(percentile(s.latencies, 99)),
	}
	if len(s.errors) > 0 {
		f.Errors = maps.Clone(s.errors)
	}
	return f
}

// percentile is the smallest latency that p per cent of all do not exceed (nearest rank); 0 of none.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
