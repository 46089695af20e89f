package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// walk goes through one queue of the sparse index, shard by shard and page by page, in bounded runs: each begins where
// the one before stopped, so that what is always due does not keep the rest from being looked at.
type walk struct {
	queue string
	// lookTime is how much of the context's time one look needs; without it the run ends.
	lookTime time.Duration

	mu   sync.Mutex
	next place
}

// place is where a run goes on.
type place struct {
	shard  int
	cursor string
	// rest was listed and not looked at yet; it lies before the cursor.
	rest []idem.MessageRef
	// listed says that the shard has no more than the rest.
	listed bool
}

// run looks once at everything that is due, within Config.SweepMax and the context's deadline. It returns whether it
// met one of them, the number of shards that could not be listed, and an error only where that was all of them.
func (w *walk) run(ctx context.Context, d *desk, failedEvent string, look func(idem.MessageID)) (unfinished bool, failed int, err error) {
	w.mu.Lock()
	at := w.next
	w.mu.Unlock()
	var (
		errs   []error
		shards = d.store.Shards()
		room   = d.cfg.SweepMax
	)
	first := at.shard
	for i := range shards {
		if i > 0 {
			at = place{shard: (first + i) % shards}
		}
		unfinished, err := w.shard(ctx, d, &at, &room, look)
		if err != nil {
			errs = append(errs, fmt.Errorf("outbox: list shard %d: %w", at.shard, err))
			d.cfg.Logger.ErrorContext(ctx, failedEvent, "shard", at.shard, "error", err)
		}
		if unfinished {
			w.resumeAt(at)
			return true, len(errs), nil
		}
	}
	w.resumeAt(place{})
	if len(errs) == shards {
		return false, len(errs), errors.Join(errs...)
	}
	return false, len(errs), nil
}

func (w *walk) resumeAt(at place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = at
}

// shard goes through one shard from the place on, and moves it along.
func (w *walk) shard(ctx context.Context, d *desk, at *place, room *int, look func(idem.MessageID)) (unfinished bool, err error) {
	until := d.now()
	for {
		for len(at.rest) > 0 {
			if *room <= 0 || w.timeOver(ctx) {
				return true, nil
			}
			id := at.rest[0].ID
			at.rest = at.rest[1:]
			*room--
			look(id)
		}
		if at.listed {
			return false, nil
		}
		if *room <= 0 || w.timeOver(ctx) {
			return true, nil
		}
		at.rest, at.cursor, err = w.list(ctx, d, at, until, min(d.cfg.SweepPage, *room))
		if err != nil {
			return false, err
		}
		at.listed = at.cursor == ""
	}
}

func (w *walk) timeOver(ctx context.Context) bool {
	left, ok := remaining(ctx)
	return ctx.Err() != nil || ok && left < w.lookTime
}

func (w *walk) list(ctx context.Context, d *desk, at *place, until time.Time, limit int) ([]idem.MessageRef, string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.StoreTimeout)
	defer cancel()
	return d.store.QueuedMessages(ctx, w.queue, at.shard, until, limit, at.cursor)
}
