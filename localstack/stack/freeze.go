package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// freezing stops processes for a while, as they stand on a machine on which too much runs: a test, an emulator, a function, a browser,
// each at a moment that nobody chose. A test that fails by that has a budget of real time that is too small, or takes a retry for a fault.
type freezing struct {
	// most is how long a process stands at most; the least is half of it. The pauses until the next one are as long as half of most on
	// average, so several stand at once now and then.
	most time.Duration
	rand *rand.Rand
	of   int       // the process whose descendants they are
	out  io.Writer // is told of each
}

// run stops processes until the context ends, and none is left standing.
func (f freezing) run(ctx context.Context) error {
	var standing sync.WaitGroup
	defer standing.Wait()
	var (
		mu     sync.Mutex
		frozen = map[int]bool{}
	)
	free := func(pid int) {
		mu.Lock()
		defer mu.Unlock()
		delete(frozen, pid)
	}
	for sleep(ctx, f.upTo(f.most)) {
		found, err := descendants(f.of)
		if err != nil {
			return err
		}
		mu.Lock()
		maps.DeleteFunc(found, func(pid int, _ process) bool { return frozen[pid] })
		pid, name := f.choose(found)
		frozen[pid] = true
		mu.Unlock()
		if pid == 0 {
			continue
		}
		long := f.most/2 + f.upTo(f.most/2)
		if _, err := fmt.Fprintf(f.out, "%s %s (%d) stands for %v\n", time.Now().Format(time.TimeOnly), name, pid, long.Round(time.Millisecond)); err != nil {
			return err
		}
		standing.Go(func() {
			defer free(pid)
			_ = syscall.Kill(pid, syscall.SIGSTOP) // an error says that it is gone
			sleep(ctx, long)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		})
	}
	return nil
}

// choose draws a program first, and then a process of it: there may be one emulator and forty functions. It is 0 where there is none.
func (f freezing) choose(found map[int]process) (pid int, name string) {
	byName := map[string][]int{}
	for _, pid := range slices.Sorted(maps.Keys(found)) {
		byName[found[pid].name] = append(byName[found[pid].name], pid)
	}
	if len(byName) == 0 {
		return 0, ""
	}
	names := slices.Sorted(maps.Keys(byName))
	name = names[f.rand.IntN(len(names))]
	return byName[name][f.rand.IntN(len(byName[name]))], name
}

func (f freezing) upTo(most time.Duration) time.Duration {
	return time.Duration(f.rand.Int64N(int64(most) + 1))
}

// sleep says that the time has passed, and not that the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// frozen does something while processes that this one has started stand now and then. With most 0 none does.
func frozen(ctx context.Context, most time.Duration, seed uint64, name string, do func()) (err error) {
	if most == 0 {
		do()
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- freezing{most: most, rand: rand.New(rand.NewPCG(seed, 0)), of: os.Getpid(), out: file}.run(ctx)
	}()
	defer func() { // after a panic too: what stands would stand for ever
		stop()
		err = errors.Join(<-ended, file.Close())
	}()
	do()
	return nil
}
