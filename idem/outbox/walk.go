package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// walk goes through what is due in one queue of a sparse index, shard by shard and page by page, in bounded runs. Each run
// begins where the one before stopped, so that what is always due does not keep the rest from being looked at. It is safe
// for concurrent use. Every field must be set.
type walk[Ref any] struct {
	cfg    Config
	shards int
	list   list[Ref]
	queue  string
	// lookTime is how much of the context's time one look needs; without it the run ends.
	lookTime time.Duration
	// ahead is by how much the queue's places are later than somebody should look.
	ahead time.Duration
	// look does what a listed one asks for. Up to Config.SweepConcurrency looks run at the same time.
	look func(context.Context, Ref) (Decision, error)
	// failed logs an error, of a shard or of a look. Looks call it concurrently.
	failed func(ctx context.Context, err error, about any)

	mu   sync.Mutex
	next place[Ref]
}

// list lists one page of a queue's shard: a store's QueuedMessages or QueuedRecords.
type list[Ref any] func(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []Ref, next string, err error)

// walkOf is a walk through a queue with the desk's bounds; what fails is logged under the event.
func walkOf[Ref any](
	d *desk, event string, lookTime, ahead time.Duration, list list[Ref], queue string, look func(context.Context, Ref) (Decision, error),
) *walk[Ref] {
	return &walk[Ref]{
		cfg: d.cfg, shards: d.store.Shards(), list: list, queue: queue, lookTime: lookTime, ahead: ahead, look: look,
		failed: func(ctx context.Context, err error, about any) { d.unlooked(ctx, event, err, about) },
	}
}

// unlooked tells what could not be listed, or looked at.
func (d *desk) unlooked(ctx context.Context, event string, err error, about any) {
	switch about := about.(type) {
	case storage.MessageRef:
		if !d.unknown(ctx, about.ID, err) {
			d.cfg.Logger.ErrorContext(ctx, event, "message", about.ID, "error", err)
		}
	case storage.RecordRef:
		if !d.unreadable(ctx, about, err) {
			d.cfg.Logger.ErrorContext(ctx, event, "operation_id", about.OperationID, "tenant", about.Tenant, "error", err)
		}
	default:
		d.cfg.Logger.ErrorContext(ctx, event, "shard", about, "error", err)
	}
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

// run looks once at everything that is due, within the bounds and the context's deadline, and returns when every look that
// it began has ended. It returns an error only where no shard could be listed.
func (w *walk[Ref]) run(ctx context.Context) (Counts, error) {
	r := w.begin()
	var others sync.WaitGroup
	for range w.cfg.SweepConcurrency - 1 {
		others.Go(func() { r.work(ctx) })
	}
	r.work(ctx)
	others.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = r.at
	if len(r.unlisted) == w.shards {
		return r.did, errors.Join(r.unlisted...)
	}
	return r.did, nil
}

func (w *walk[Ref]) begin() *round[Ref] {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &round[Ref]{walk: w, turn: make(chan struct{}, 1), room: w.cfg.SweepMax, left: w.shards}
	r.enter(w.next)
	return r
}

// timeOver says whether the context leaves no time for a look.
func (w *walk[Ref]) timeOver(ctx context.Context) bool {
	left, bounded := remaining(ctx)
	return ctx.Err() != nil || bounded && left < w.lookTime
}
