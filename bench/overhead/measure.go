package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"
)

// concurrent is how many requests run at once in the second measurement of each path.
const concurrent = 32

// usage is what requests took.
type usage struct {
	cpu, wall time.Duration
	// bytes and objects are what was allocated.
	bytes, objects uint64
}

// plus is what both took.
func (u usage) plus(v usage) usage {
	return usage{u.cpu + v.cpu, u.wall + v.wall, u.bytes + v.bytes, u.objects + v.objects}
}

// each is the average over n requests.
func (u usage) each(n int) usage {
	return usage{u.cpu / time.Duration(n), u.wall / time.Duration(n), u.bytes / uint64(n), u.objects / uint64(n)}
}

// measure prints a table of all paths, one request at a time and many at once.
func measure(out io.Writer, all []*sides, requests, rounds int) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "path\tcalls\tc\tCPU idem\tby hand\tratio\twall idem\tby hand\tratio\tallocated\tby hand\tobjects\tby hand\n")
	for _, s := range all {
		for _, callers := range []int{1, concurrent} {
			f, err := s.compare(requests, rounds, callers)
			if err != nil {
				return fmt.Errorf("%s, %d at once: %w", s.path.name, callers, err)
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%.2f\t%s\t%s\t%.2f\t%d KB\t%d KB\t%d\t%d\n", s.path.name, strings.Join(s.calls, ", "), callers,
				micros(f.idem.cpu), micros(f.hand.cpu), f.cpuRatio, micros(f.idem.wall), micros(f.hand.wall), f.wallRatio,
				f.idem.bytes>>10, f.hand.bytes>>10, f.idem.objects, f.hand.objects)
		}
	}
	return table.Flush()
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.0f µs", float64(d)/float64(time.Microsecond))
}

// figure is the median of pairs of batches.
type figure struct {
	idem, hand          usage
	cpuRatio, wallRatio float64
}

// compare runs pairs of batches and returns the medians.
func (s *sides) compare(requests, rounds, callers int) (figure, error) {
	if _, _, err := s.pair(requests/10+1, callers); err != nil { // connections, and the runtime's first growth
		return figure{}, err
	}
	var idems, hands []usage
	var cpu, wall []float64
	for range rounds {
		one, other, err := s.pair(requests, callers)
		if err != nil {
			return figure{}, err
		}
		idems, hands = append(idems, one), append(hands, other)
		cpu = append(cpu, float64(one.cpu)/float64(other.cpu))
		wall = append(wall, float64(one.wall)/float64(other.wall))
	}
	return figure{medians(idems), medians(hands), median(cpu), median(wall)}, nil
}

// A slice is requests of one side that follow each other: so many for each caller, and so many at least. In a shorter one
// the garbage is collected once or never, and which of them decides more than what the sides allocate: 50 requests of
// 50 KB are collected once where 50 of 42 KB are not.
const (
	sliceRequests    = 50
	sliceRequestsMin = 400
)

// pair runs a batch of each side, in slices that take turns: what else the machine does meanwhile falls on both. Which side
// goes first changes from slice to slice, and so from batch to batch where a slice is all of one.
func (s *sides) pair(requests, callers int) (one, other usage, err error) {
	length := max(sliceRequests*callers, sliceRequestsMin)
	for done := 0; done < requests; done += length {
		slice := min(length, requests-done)
		turns := []struct {
			side http.Handler
			took *usage
		}{{s.idem, &one}, {s.hand, &other}}
		if s.slices++; s.slices%2 == 0 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			took, err := s.run(turn.side, slice, callers)
			if err != nil {
				return one, other, err
			}
			*turn.took = turn.took.plus(took)
		}
	}
	return one.each(requests), other.each(requests), nil
}

func medians(all []usage) usage {
	var cpu, wall []time.Duration
	var bytes, objects []uint64
	for _, u := range all {
		cpu, wall, bytes, objects = append(cpu, u.cpu), append(wall, u.wall), append(bytes, u.bytes), append(objects, u.objects)
	}
	return usage{median(cpu), median(wall), median(bytes), median(objects)}
}

// median is the middle one, the lower of two.
func median[T cmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)/2]
}

// run sends requests to one side. It returns the first errors of the callers.
func (s *sides) run(side http.Handler, requests, callers int) (usage, error) {
	keys := s.batch(requests)
	errs := make([]error, callers)
	var next atomic.Int64
	var running sync.WaitGroup
	runtime.GC() // each side pays for its own garbage
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, begun := cpuTime(), time.Now()
	for caller := range callers {
		running.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(keys)) || errs[caller] != nil {
					return
				}
				errs[caller] = post(side, keys[i])
			}
		})
	}
	running.Wait()
	took := usage{cpu: cpuTime() - cpu, wall: time.Since(begun)}
	runtime.ReadMemStats(&after)
	took.bytes, took.objects = after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
	return took, errors.Join(errs...)
}

// cpuTime is what this process has used of the CPU, in user and in system mode. The emulator is another process.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // only a bad argument can fail
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// profile writes a CPU profile of each side's requests, one at a time.
func profile(s *sides, requests int, name string) error {
	for _, side := range []struct {
		name    string
		handler http.Handler
	}{{"idem", s.idem}, {"hand", s.hand}} {
		file := name + "." + side.name + ".pprof"
		if err := s.profileSide(side.handler, requests, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func (s *sides) profileSide(side http.Handler, requests int, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	_, err = s.run(side, requests, 1)
	return err
}
