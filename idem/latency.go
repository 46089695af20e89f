package idem

import (
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// latencyEstimate is how long an operation takes, as this process has seen it: the median of the last nine, from the third on. So
// one that waited for an operator tells nothing about the others. It is what Retry-After is derived from.
type latencyEstimate struct {
	mu   sync.Mutex
	took []time.Duration
	next int // where the next one goes, once there are latencySamples
}

const (
	latencySamples    = 9
	latencySamplesMin = 3
)

func (l *latencyEstimate) observe(took time.Duration) {
	if took < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.took) < latencySamples {
		l.took = append(l.took, took)
		return
	}
	l.took[l.next] = took
	l.next = (l.next + 1) % latencySamples
}

// expected is 0 where too little was seen. Of an even number it is the shorter of the two in the middle.
func (l *latencyEstimate) expected() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.took) < latencySamplesMin {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l.took))
	return sorted[(len(sorted)-1)/2]
}

// Bounds of a derived Retry-After: clients count in seconds, and ask at least that often.
const (
	retryAfterMin = time.Second
	retryAfterMax = 30 * time.Second
)

// learnMax is how long after its end an operation still tells how long one takes now. A client may ask for an old answer any
// number of times.
const learnMax = time.Minute

// replayed learns from a final record how long its settlement took.
func (o *Registered) replayed(r storage.Record, now time.Time) {
	if r.Kind == KindDeferred && r.State.Final() && now.Sub(r.DoneAt) < learnMax {
		o.settles.observe(r.DoneAt.Sub(r.CreatedAt))
	}
}

// retryInProgress is when a duplicate should ask again: when the holder is expected to be done, and by the end of its
// lease in any case, for then the duplicate can take over. A key that nobody holds any more, and that is not free yet, is by then.
func (o *Registered) retryInProgress(r storage.Record, now time.Time) time.Duration {
	left := r.LeaseUntil.Sub(now)
	switch {
	case left <= 0:
		return retryAfterMin
	case r.State == storage.StateFailedRetryable:
		return clamp(left, retryAfterMin, retryAfterMax)
	}
	return clamp(o.executes.expected()-heldFor(r, now), retryAfterMin, max(retryAfterMin, min(left, retryAfterMax)))
}

// heldFor is how long the present holder has been at it, where that can be told: a take-over leaves no trace of its start.
func heldFor(r storage.Record, now time.Time) time.Duration {
	if r.Attempts > 1 {
		return 0
	}
	return now.Sub(r.CreatedAt)
}

// retryPending is when a pending operation is expected to be final.
func (o *Registered) retryPending(createdAt, now time.Time) time.Duration {
	return clamp(o.settles.expected()-now.Sub(createdAt), retryAfterMin, retryAfterMax)
}

func clamp(d, least, most time.Duration) time.Duration { return min(max(d, least), most) }
