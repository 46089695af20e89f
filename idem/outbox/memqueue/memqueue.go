// Package memqueue keeps an outbox's wake-ups and dead letters in memory: for simulations, tests, and single processes
// that can do without hints after a restart, because the sweep finds what was lost.
package memqueue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// Queue implements [outbox.WakeUps] and [outbox.DeadLetters]. It is safe for concurrent use.
type Queue struct {
	now func() time.Time

	mu      sync.Mutex
	waking  []wakeUp
	letters []outbox.DeadLetter
}

type wakeUp struct {
	id idem.MessageID
	at time.Time
}

// New returns an empty queue whose delays are measured by the clock.
func New(now func() time.Time) *Queue { return &Queue{now: now} }

// Schedule implements [outbox.WakeUps]; it never fails. Tenants are served in the order in which wake-ups are due.
func (q *Queue) Schedule(_ context.Context, _ string, id idem.MessageID, delay time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waking = append(q.waking, wakeUp{id, q.now().Add(delay)})
	return nil
}

// Bury implements [outbox.DeadLetters]; it never fails.
func (q *Queue) Bury(_ context.Context, letter outbox.DeadLetter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.letters = append(q.letters, letter)
	return nil
}

// Take removes and returns the messages whose wake-up is due, in the order in which they became due.
func (q *Queue) Take() []idem.MessageID {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	slices.SortStableFunc(q.waking, func(a, b wakeUp) int { return a.at.Compare(b.at) })
	n := 0
	for n < len(q.waking) && !q.waking[n].at.After(now) {
		n++
	}
	due := make([]idem.MessageID, n)
	for i := range due {
		due[i] = q.waking[i].id
	}
	q.waking = slices.Clone(q.waking[n:])
	return due
}

// Next is when the earliest wake-up is due, and whether there is one.
func (q *Queue) Next() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waking) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(q.waking, func(a, b wakeUp) int { return a.at.Compare(b.at) }).at, true
}

// Letters returns the dead letters, oldest first.
func (q *Queue) Letters() []outbox.DeadLetter {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.letters)
}
