// Package timers has timers and deadlines that share one timer of the runtime.
//
// Arming a timer of the runtime wakes a thread where the process is idle otherwise, and nearly every timer of a request is
// stopped long before it would fire: the calls of a request are fast, their time-outs are long. Here only the one that is
// due first has a timer of the runtime, which stays armed when it is stopped. So a busy process arms one a few times a
// minute, and an idle one none.
package timers

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
)

// Set is timers that share one of the runtime's. The zero value is ready, and safe for concurrent use.
type Set struct {
	mu      sync.Mutex
	waiting queue
	shared  *time.Timer
	// fires is when the shared timer does; zero where it does not. It is never later than what is due first.
	fires time.Time
}

// Watch counts the time from Begin. A process that is frozen between the reading of its clock and the wire has that much less time.
type Watch struct{ began time.Time }

// Begin starts a watch.
func Begin() Watch { return Watch{time.Now()} }

// Deadline is when d is over, by the monotonic clock and by the wall clock. A deadline that is d from a later reading is too late by
// as long as the process was frozen in between.
func (w Watch) Deadline(d time.Duration) time.Time { return w.began.Add(d) }

// Timer calls its function once, when it is due. Stop and ResetAt may be called from any goroutine.
type Timer struct {
	set  *Set
	call func()
	at   time.Time
	// place is where the timer is in the queue, from 1; 0 where it waits for nothing.
	place int
}

// AfterFunc calls f in a goroutine of its own when d is over.
func (s *Set) AfterFunc(d time.Duration, f func()) *Timer { return s.AtFunc(time.Now().Add(d), f) }

// AtFunc calls f in a goroutine of its own at that time.
func (s *Set) AtFunc(at time.Time, f func()) *Timer {
	t := &Timer{set: s, call: func() { go f() }}
	t.ResetAt(at)
	return t
}

// ResetAt has the function called at that time, whether it was called, is waited for, or was stopped.
func (t *Timer) ResetAt(at time.Time) {
	s := t.set
	s.mu.Lock()
	defer s.mu.Unlock()
	t.remove()
	t.at = at
	heap.Push(&s.waiting, t)
	if s.fires.IsZero() || t.at.Before(s.fires) {
		s.arm(t.at)
	}
}

// Stop says whether the function is not called any more for the last ResetAt: it was not called before.
func (t *Timer) Stop() bool {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	return t.remove()
}

// remove takes the timer out of its queue, and says whether it was there.
func (t *Timer) remove() bool {
	if t.place == 0 {
		return false
	}
	heap.Remove(&t.set.waiting, t.place-1)
	return true
}

// arm has the shared timer fire at that time.
func (s *Set) arm(at time.Time) {
	s.fires = at
	if s.shared == nil {
		s.shared = time.AfterFunc(time.Until(at), s.fire)
		return
	}
	s.shared.Reset(time.Until(at))
}

// fire calls what is due, and arms the shared timer for what is due next.
func (s *Set) fire() {
	var due []*Timer
	s.mu.Lock()
	for now := time.Now(); len(s.waiting) > 0 && !s.waiting[0].at.After(now); {
		due = append(due, heap.Pop(&s.waiting).(*Timer))
	}
	s.fires = time.Time{}
	if len(s.waiting) > 0 {
		s.arm(s.waiting[0].at)
	}
	s.mu.Unlock()
	for _, t := range due {
		t.call()
	}
}

// deadlined is a context with a deadline. It is a context of the standard library's besides, so that its children need no
// goroutine of their own.
type deadlined struct {
	context.Context
	timer Timer
	end   context.CancelCauseFunc
}

// WithTimeout is context.WithTimeout. A context that package context makes of this one says [context.Canceled] when the time is over:
// [Cancelled] tells that apart. [context.Cause] says [context.DeadlineExceeded] of either.
func (s *Set) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return s.WithDeadline(parent, time.Now().Add(d))
}

// WithDeadline is context.WithDeadline, as WithTimeout is context.WithTimeout.
func (s *Set) WithDeadline(parent context.Context, at time.Time) (context.Context, context.CancelFunc) {
	deadline, bounded := parent.Deadline()
	withParent := bounded && !at.Before(deadline)
	if !withParent && time.Until(at) <= 0 {
		return context.WithDeadline(parent, at) // is over
	}
	c := &deadlined{timer: Timer{set: s}}
	c.Context, c.end = context.WithCancelCause(parent)
	if withParent { // it arms nothing
		c.timer.at = deadline
		return c, c.cancel
	}
	c.timer.call = c.over
	c.timer.ResetAt(at)
	return c, c.cancel
}

func (c *deadlined) over() { c.end(context.DeadlineExceeded) }

func (c *deadlined) cancel() {
	c.timer.Stop()
	c.end(context.Canceled)
}

// Deadline implements context.Context.
func (c *deadlined) Deadline() (time.Time, bool) { return c.timer.at, true }

// Err implements context.Context.
func (c *deadlined) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// Cancelled says that somebody cancelled the context: its time is not over, nor that of a context of a [Set] that it was made of.
func Cancelled(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled) && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// queue is a heap of timers: what is due first comes first.
type queue []*Timer

// Len implements sort.Interface.
func (q queue) Len() int { return len(q) }

// Less implements sort.Interface.
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

// Swap implements sort.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (q *queue) Push(t any) {
	*q = append(*q, t.(*Timer))
	t.(*Timer).place = len(*q)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	t.place = 0
	return t
}
