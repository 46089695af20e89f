package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/walk"
	"github.com/idem-go/idem-aws/idem/storage"
)

// rounds is how a queue of messages is gone through, run by run.
type rounds struct {
	desk  *desk
	walk  *walk.Walk[storage.MessageRef]
	event string
}

// newRounds goes through a queue whose looks need so much of the context's time; the event is the log's for what fails. It
// looks ahead by what the queue's places are later than somebody should look.
func newRounds(d *desk, queue string, lookTime, ahead time.Duration, event string) *rounds {
	return &rounds{desk: d, event: event, walk: walk.New(walk.Queue[storage.MessageRef]{
		Shards: d.store.Shards(), Page: d.cfg.SweepPage, Max: d.cfg.SweepMax,
		ListTimeout: d.cfg.StoreTimeout, LookTime: lookTime, Now: func() time.Time { return d.cfg.Now().Add(ahead) },
		List: func(ctx context.Context, shard int, until time.Time, limit int, cursor string) ([]storage.MessageRef, string, error) {
			return d.store.QueuedMessages(ctx, queue, shard, until, limit, cursor)
		},
	})}
}

// run looks once at everything that is due, within Config.SweepMax and the context's deadline. It returns whether it
// met one of them, the number of shards that could not be listed, and an error only where that was all of them.
func (r *rounds) run(ctx context.Context, look func(idem.MessageID)) (unfinished bool, failed int, err error) {
	unfinished, failed, err = r.walk.Run(ctx, func(ref storage.MessageRef) { look(ref.ID) }, func(shard int, err error) {
		r.desk.cfg.Logger.ErrorContext(ctx, r.event, "shard", shard, "error", err)
	})
	if err != nil {
		err = fmt.Errorf("outbox: %w", err)
	}
	return unfinished, failed, err
}
