// Package walk goes through one queue of a sparse index, shard by shard and page by page, in bounded runs.
package walk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Walk goes through what is due in a queue. Each run begins where the one before stopped, so that what is always due does
// not keep the rest from being looked at. It is safe for concurrent use.
type Walk[Ref any] struct {
	queue Queue[Ref]

	mu   sync.Mutex
	next place[Ref]
}

// Queue is what is walked, and within which bounds. Every field must be set.
type Queue[Ref any] struct {
	Shards int
	// List lists one page of a shard, as a store's QueuedMessages and QueuedRecords do.
	List func(ctx context.Context, shard int, until time.Time, limit int, cursor string) (refs []Ref, next string, err error)
	// Page is how many are listed at once, Max how many are looked at in one run.
	Page, Max int
	// ListTimeout bounds one listing.
	ListTimeout time.Duration
	// LookTime is how much of the context's time one look needs; without it the run ends.
	LookTime time.Duration
	// Now is the clock.
	Now func() time.Time
}

// place is where a run goes on.
type place[Ref any] struct {
	shard  int
	cursor string
	// rest was listed and not looked at yet; it lies before the cursor.
	rest []Ref
	// listed says that the shard has no more than the rest.
	listed bool
}

// New returns a walk through the queue.
func New[Ref any](queue Queue[Ref]) *Walk[Ref] { return &Walk[Ref]{queue: queue} }

// Run looks once at everything that is due, within the queue's bounds and the context's deadline. It returns whether it
// met one of them, the number of shards that could not be listed, each of which was told of, and an error only where that
// was all of them.
func (w *Walk[Ref]) Run(ctx context.Context, look func(Ref), failed func(shard int, err error)) (unfinished bool, failures int, err error) {
	w.mu.Lock()
	at := w.next
	w.mu.Unlock()
	var errs []error
	room, first, shards := w.queue.Max, at.shard, w.queue.Shards
	for i := range shards {
		if i > 0 {
			at = place[Ref]{shard: (first + i) % shards}
		}
		unfinished, err := w.shard(ctx, &at, &room, look)
		if err != nil {
			errs = append(errs, fmt.Errorf("list shard %d: %w", at.shard, err))
			failed(at.shard, err)
		}
		if unfinished {
			w.resumeAt(at)
			return true, len(errs), nil
		}
	}
	w.resumeAt(place[Ref]{})
	if len(errs) == shards {
		return false, len(errs), errors.Join(errs...)
	}
	return false, len(errs), nil
}

func (w *Walk[Ref]) resumeAt(at place[Ref]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = at
}

// shard goes through one shard from the place on, and moves it along.
func (w *Walk[Ref]) shard(ctx context.Context, at *place[Ref], room *int, look func(Ref)) (unfinished bool, err error) {
	until := w.queue.Now().UTC().Truncate(time.Millisecond)
	for {
		for len(at.rest) > 0 {
			if *room <= 0 || w.timeOver(ctx) {
				return true, nil
			}
			ref := at.rest[0]
			at.rest = at.rest[1:]
			*room--
			look(ref)
		}
		if at.listed {
			return false, nil
		}
		if *room <= 0 || w.timeOver(ctx) {
			return true, nil
		}
		at.rest, at.cursor, err = w.list(ctx, at, until, min(w.queue.Page, *room))
		if err != nil {
			return false, err
		}
		at.listed = at.cursor == ""
	}
}

// timeOver says whether the context leaves no time for a look; context deadlines are in the platform's time, whatever
// clock is injected.
func (w *Walk[Ref]) timeOver(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && time.Until(deadline) < w.queue.LookTime
}

func (w *Walk[Ref]) list(ctx context.Context, at *place[Ref], until time.Time, limit int) ([]Ref, string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.queue.ListTimeout)
	defer cancel()
	return w.queue.List(ctx, at.shard, until, limit, at.cursor)
}
