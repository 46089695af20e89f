package timers_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/internal/clock"
)

// Whatever is set, reset and stopped in whatever order, each timer fires at its last time, once, unless it was stopped before.
func TestEachTimerFiresAtItsTimeUnlessItIsStopped(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "timers")
		type step struct {
			timer int
			reset time.Duration // 0 stops
			pause time.Duration
		}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{
				timer: rapid.IntRange(0, n-1).Draw(rt, "timer"),
				reset: time.Duration(rapid.IntRange(0, 9).Draw(rt, "reset")) * time.Second,
				pause: time.Duration(rapid.IntRange(0, 4).Draw(rt, "pause"))*time.Second + 500*time.Millisecond,
			}
		}), 0, 40).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			var set timers.Set
			begun := time.Now()
			fired, want := make([][]time.Duration, n), make([][]time.Duration, n)
			var mu sync.Mutex
			all, due := make([]*timers.Timer, n), make([]time.Duration, n)
			settle := func(until time.Duration) {
				for i, at := range due {
					if at != 0 && at <= until {
						want[i], due[i] = append(want[i], at), 0
					}
				}
			}
			for i := range all {
				due[i] = time.Duration(i+1) * time.Second
				all[i] = set.AfterFunc(due[i], func() {
					mu.Lock()
					defer mu.Unlock()
					fired[i] = append(fired[i], time.Since(begun))
				})
			}
			for _, s := range steps {
				time.Sleep(s.pause)
				synctest.Wait()
				settle(time.Since(begun))
				if s.reset > 0 {
					all[s.timer].ResetAt(time.Now().Add(s.reset))
					due[s.timer] = time.Since(begun) + s.reset
					continue
				}
				if stopped := all[s.timer].Stop(); stopped != (due[s.timer] != 0) {
					rt.Fatalf("timer %d: stopped %v, due at %v", s.timer, stopped, due[s.timer])
				}
				due[s.timer] = 0
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			settle(time.Since(begun))
			for i := range all {
				if len(fired[i]) != len(want[i]) {
					rt.Fatalf("timer %d fired at %v, want %v", i, fired[i], want[i])
				}
				for j := range fired[i] {
					if fired[i][j] != want[i][j] {
						rt.Fatalf("timer %d fired at %v, want %v", i, fired[i], want[i])
					}
				}
			}
		})
	})
}

func TestAContextEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set timers.Set
		begun := time.Now()
		ctx, cancel := set.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if deadline, ok := ctx.Deadline(); !ok || !deadline.Equal(begun.Add(5*time.Second)) || ctx.Err() != nil {
			t.Fatalf("deadline %v, %v; error %v", deadline, ok, ctx.Err())
		}
		child, end := context.WithCancel(context.WithValue(ctx, struct{ int }{}, 1))
		defer end()
		<-child.Done()
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("it ended after %v, want 5s", took)
		}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) || !errors.Is(context.Cause(child), context.DeadlineExceeded) {
			t.Errorf("error %v, cause %v, its child's %v; want DeadlineExceeded", ctx.Err(), context.Cause(ctx), context.Cause(child))
		}
	})
}

// A deadline is counted from when the watch began, by both clocks: a process that is frozen before the deadline is made gains nothing.
func TestADeadlineIsCountedFromWhenTheWatchBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set timers.Set
		watch, begun := timers.Begin(), time.Now()
		time.Sleep(4 * time.Second)
		deadline := watch.Deadline(5 * time.Second)
		ctx, cancel := set.WithDeadline(t.Context(), deadline)
		defer cancel()
		if at, ok := ctx.Deadline(); !ok || !at.Equal(begun.Add(5*time.Second)) || clock.Over(at, time.Now()) || !clock.Over(at, begun.Round(0).Add(5*time.Second)) || ctx.Err() != nil {
			t.Fatalf("deadline %v, %v; error %v", at, ok, ctx.Err())
		}
		<-ctx.Done()
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("it ended after %v, want 5s", took)
		}
		time.Sleep(time.Second)
		over, cancel := set.WithDeadline(t.Context(), deadline)
		defer cancel()
		if !errors.Is(over.Err(), context.DeadlineExceeded) {
			t.Errorf("a context whose deadline has passed: %v", over.Err())
		}
	})
}

func TestACancelledContextSaysSoAndWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set timers.Set
		ctx, cancel := set.WithTimeout(t.Context(), 5*time.Second)
		cancel()
		cancel()
		time.Sleep(10 * time.Second)
		if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("error %v, cause %v; want Canceled", ctx.Err(), context.Cause(ctx))
		}
	})
}

func TestAContextEndsWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set timers.Set
		for name, c := range map[string]struct {
			timeout time.Duration
			end     func(context.Context) (context.Context, context.CancelFunc)
			want    error
			after   time.Duration
		}{
			"whose deadline is earlier": {5 * time.Second, func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}, context.DeadlineExceeded, time.Second},
			"whose deadline is later": {time.Second, func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 5*time.Second)
			}, context.DeadlineExceeded, time.Second},
			"which is cancelled": {5 * time.Second, func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(2*time.Second, cancel)
				return ctx, cancel
			}, context.Canceled, 2 * time.Second},
			"or at once, without any time": {0, context.WithCancel, context.DeadlineExceeded, 0},
		} {
			begun := time.Now()
			parent, end := c.end(t.Context())
			ctx, cancel := set.WithTimeout(parent, c.timeout)
			<-ctx.Done()
			if took := time.Since(begun); took != c.after || !errors.Is(ctx.Err(), c.want) {
				t.Errorf("%s: %v after %v, want %v after %v", name, ctx.Err(), took, c.want, c.after)
			}
			cancel()
			end()
		}
	})
}

// A context that ends with a set's own says what that one says, where the set has made it. What package context makes of one says that it was
// cancelled, whatever ended it: Cancelled tells.
func TestAContextWhoseTimeIsOverIsToldFromACancelledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set timers.Set
		for _, cancelled := range []bool{false, true} {
			parent, cancel := set.WithTimeout(t.Context(), 2*time.Second)
			child, end := set.WithTimeout(parent, 5*time.Second)
			made, stop := context.WithTimeout(parent, 5*time.Second)
			want, ends := context.DeadlineExceeded, time.Now().Add(2*time.Second)
			if at, ok := child.Deadline(); !ok || !at.Equal(ends) || timers.Cancelled(child) {
				t.Errorf("the child's deadline is %v, %v; want %v", at, ok, ends)
			}
			if cancelled {
				want = context.Canceled
				cancel()
			}
			<-child.Done()
			<-made.Done()
			if !errors.Is(child.Err(), want) || !errors.Is(context.Cause(child), want) {
				t.Errorf("the child's error %v, cause %v; want %v", child.Err(), context.Cause(child), want)
			}
			for name, ctx := range map[string]context.Context{"the parent": parent, "the child": child, "what package context made": made} {
				if timers.Cancelled(ctx) != cancelled {
					t.Errorf("%s counts as cancelled: %v, want %v", name, !cancelled, cancelled)
				}
			}
			stop()
			end()
			cancel()
		}
	})
}

// Many goroutines that set and stop, for the race detector.
func TestASetIsSafeForConcurrentUse(t *testing.T) {
	var set timers.Set
	var fired atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				ctx, cancel := set.WithTimeout(t.Context(), time.Minute)
				timer := set.AfterFunc(time.Duration(i%3)*time.Millisecond, func() { fired.Add(1) })
				if i%2 == 0 {
					timer.ResetAt(time.Now().Add(time.Millisecond))
				}
				if ctx.Err() != nil {
					t.Error(ctx.Err())
				}
				cancel()
			}
		})
	}
	all.Wait()
	for deadline := time.Now().Add(20 * time.Second); fired.Load() < 1600 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := fired.Load(); n < 1600 {
		t.Errorf("%d of 1600 fired", n)
	}
}

// What the package is for: a deadline later than another one costs the runtime nothing. The other figure is the runtime's own.
func BenchmarkWithTimeout(b *testing.B) {
	var set timers.Set
	b.Run("shared", func(b *testing.B) { benchmark(b, set.WithTimeout) })
	b.Run("own", func(b *testing.B) { benchmark(b, context.WithTimeout) })
}

func benchmark(b *testing.B, with func(context.Context, time.Duration) (context.Context, context.CancelFunc)) {
	b.ReportAllocs()
	for b.Loop() {
		_, cancel := with(b.Context(), 5*time.Second)
		cancel()
	}
}
