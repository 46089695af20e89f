package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	// backlogPage is the most that is counted in one shard of a queue.
	backlogPage = 100
	// backlogAhead is later than any place in a queue of what waits for a probe or for a reminder.
	backlogAhead = 365 * 24 * time.Hour
)

// Backlog is what waits in the sparse indexes: messages and wrapped records. At most 100 entries of each shard of each queue are
// counted.
type Backlog struct {
	// Due ones have their time to be offered behind them: nobody has delivered, settled or parked them yet.
	Due int
	// DueAge is how long ago the first of them had its place in its queue; 0 where nothing is due. A message has its place
	// Config.SweepGrace after it is due.
	DueAge time.Duration
	// Unknown ones wait for their next probe, and Dead messages for an operator.
	Unknown, Dead int
	// More says that at least one shard has more than were counted.
	More bool
}

// Backlog counts what waits, with one listing for each shard of each queue: it reads no row, and costs the same however much
// waits. Listings are stale by as much as the store's index is. It returns an error where one could not be listed: what was
// counted by then says too little.
func (r *Runner) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	of, err := r.shards(ctx)
	if err != nil {
		return b, err
	}
	now := r.now()
	everything := now.Add(backlogAhead)
	messages := []standing{
		{storage.QueueOffer, now, &b.Due, &b.DueAge}, {storage.QueueUnknown, everything, &b.Unknown, nil}, {storage.QueueDead, everything, &b.Dead, nil},
	}
	records := []standing{{storage.QueueLease, now, &b.Due, &b.DueAge}, {storage.QueueUnknown, everything, &b.Unknown, nil}}
	if r.engine == nil {
		records = nil
	}
	for shard := range of {
		for _, s := range messages {
			if err := stand(ctx, r, &b, s, shard, r.store.QueuedMessages, func(ref storage.MessageRef) time.Time { return ref.At }); err != nil {
				return Backlog{}, err
			}
		}
		for _, s := range records {
			if err := stand(ctx, r, &b, s, shard, r.store.QueuedRecords, func(ref storage.RecordRef) time.Time { return ref.At }); err != nil {
				return Backlog{}, err
			}
		}
	}
	return b, nil
}

// standing is one queue that is counted: what stands before until, and, where it is asked for, for how long the first of it has.
type standing struct {
	queue string
	until time.Time
	count *int
	age   *time.Duration
}

// stand counts one shard of a queue.
func stand[Ref any](ctx context.Context, r *Runner, b *Backlog, s standing, shard int, list list[Ref], at func(Ref) time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StoreTimeout)
	defer cancel()
	refs, next, err := list(ctx, s.queue, shard, s.until, backlogPage, "")
	if err != nil {
		return fmt.Errorf("outbox: count shard %d of %s: %w", shard, s.queue, err)
	}
	*s.count += len(refs)
	b.More = b.More || next != ""
	if s.age != nil && len(refs) > 0 {
		*s.age = max(*s.age, s.until.Sub(at(refs[0])))
	}
	return nil
}
