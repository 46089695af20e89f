// Package memqueue keeps the wake-ups and dead letters of package outbox in memory. Use it in tests and simulations,
// and in a service of one process. A restart loses the wake-ups, and the sweep then finds their messages.
//
// Use package sqsqueue where several processes deliver messages, or where dead letters must outlive the process.
package memqueue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// Queue implements [outbox.BatchWakeUps], [outbox.DeadLetters] and [outbox.Consumer]. It is safe for concurrent use.
type Queue struct {
	now func() time.Time

	mu      sync.Mutex
	waking  []wakeUp
	letters []outbox.DeadLetter
	// changed is closed when a wake-up comes.
	changed chan struct{}
}

type wakeUp struct {
	id idem.MessageID
	at time.Time
}

// New returns an empty queue whose delays are measured by the clock.
func New(now func() time.Time) *Queue { return &Queue{now: now, changed: make(chan struct{})} }

// Schedule implements [outbox.WakeUps]; it never fails. Tenants are served in the order in which wake-ups are due.
func (q *Queue) Schedule(_ context.Context, _ string, id idem.MessageID, delay time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waking = append(q.waking, wakeUp{id, q.now().Add(delay)})
	close(q.changed)
	q.changed = make(chan struct{})
	return nil
}

// Offer implements [outbox.BatchWakeUps]; it never fails.
func (q *Queue) Offer(ctx context.Context, wakeUps []outbox.WakeUp) []error {
	for _, w := range wakeUps {
		_ = q.Schedule(ctx, w.Tenant, w.Message, 0) // never fails
	}
	return make([]error, len(wakeUps))
}

// Waiting implements [outbox.BatchWakeUps]; it never fails.
func (q *Queue) Waiting(context.Context) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, n := q.now(), 0
	for _, w := range q.waking {
		if !w.at.After(now) {
			n++
		}
	}
	return n, nil
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
	return q.take(len(q.waking))
}

// take is Take for at most so many, the queue being locked.
func (q *Queue) take(most int) []idem.MessageID {
	now := q.now()
	slices.SortStableFunc(q.waking, func(a, b wakeUp) int { return a.at.Compare(b.at) })
	n := 0
	for n < min(most, len(q.waking)) && !q.waking[n].at.After(now) {
		n++
	}
	due := make([]idem.MessageID, n)
	for i := range due {
		due[i] = q.waking[i].id
	}
	q.waking = slices.Clone(q.waking[n:])
	return due
}

// comesAgain is after how long a wake-up comes again whose delivery failed.
const comesAgain = time.Second

// Receive implements [outbox.Consumer]; it never fails. It waits in the platform's time for what is due by the queue's clock.
func (q *Queue) Receive(ctx context.Context, most int) ([]outbox.Received, error) {
	for {
		q.mu.Lock()
		ids, changed := q.take(most), q.changed
		q.mu.Unlock()
		if len(ids) > 0 {
			return q.received(ids), nil
		}
		wait := comesAgain
		if at, ok := q.Next(); ok {
			wait = at.Sub(q.now())
		}
		waiting, stop := context.WithTimeout(ctx, wait)
		select {
		case <-changed:
		case <-waiting.Done():
		}
		if stop(); ctx.Err() != nil {
			return nil, nil
		}
	}
}

func (q *Queue) received(ids []idem.MessageID) []outbox.Received {
	received := make([]outbox.Received, len(ids))
	for i, id := range ids {
		received[i] = outbox.Received{Message: id, Hold: func(ctx context.Context, deliver func(context.Context) error) error {
			err := deliver(ctx)
			if err != nil {
				_ = q.Schedule(ctx, "", id, comesAgain) // never fails
			}
			return err
		}}
	}
	return received
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
