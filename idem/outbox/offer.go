package outbox

import (
	"context"
	"slices"
	"sync"

	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	// offerPage is how many messages are listed at once where none is read: some 150 KB of the index.
	offerPage = 1000
	// offerLeast is how many messages of a shard each run offers, however many wake-ups wait: so that what waits for one tenant
	// does not keep others from being offered. While nothing is received, a run a minute adds 100 wake-ups for each shard.
	offerLeast = 100
	// offerTries is how often a wake-up is sent in a run.
	offerTries = 3
)

// offering offers messages from the index, without reading them: whoever receives a wake-up reads the message, and decides.
//
// How many it offers follows from the queue: a run fills it up to Config.WakeUpsMax, and begins where the last one stopped. So a
// message is offered again only after everything else that is due, and while wake-ups wait no more are added than were
// received. A run that dies before it keeps its place, or whose replies are lost, is repeated: a doubled wake-up costs its receiver
// a read.
type offering struct {
	*round[storage.MessageRef]
	desk  *desk
	queue BatchWakeUps
	// each is how many messages of a shard are offered in this run, and offered how many were; down that the queue takes nothing.
	each    int
	offered map[int]int
	down    bool
}

// offering begins a run that offers.
func (d *desk) offering(queue BatchWakeUps) func(context.Context, *round[storage.MessageRef]) taker[storage.MessageRef] {
	return func(ctx context.Context, r *round[storage.MessageRef]) taker[storage.MessageRef] {
		o := &offering{round: r, desk: d, queue: queue, each: offerLeast, offered: map[int]int{}}
		asking, cancel := context.WithTimeout(ctx, d.cfg.StoreTimeout)
		defer cancel()
		waiting, err := queue.Waiting(asking)
		if err != nil {
			d.cfg.Logger.ErrorContext(ctx, sweepFailed, "queue", "waiting", "error", err)
			r.count(DecisionNone, err)
			return o
		}
		o.each = max(offerLeast, (d.cfg.WakeUpsMax-waiting)/r.shards)
		return o
	}
}

func (o *offering) room(shard int) int {
	if o.down {
		return 0
	}
	return o.each - o.offered[shard]
}

func (o *offering) wait() {}

// take offers a page. A wake-up that could not be sent is left to the next time that everything was offered, so that one that the
// queue never takes holds up nobody; but where it takes none at all, the next run begins with this page.
func (o *offering) take(ctx context.Context, p page[storage.MessageRef]) {
	left := p.refs
	var cause error
	for try := 0; try < offerTries && len(left) > 0 && !o.timeOver(ctx); try++ {
		if try > 0 && o.cfg.Pause(ctx, o.desk.pause(try)) != nil {
			break
		}
		left, cause = o.send(ctx, left)
	}
	sent := len(p.refs) - len(left)
	o.offered[p.shard] += sent
	late := o.timeOver(ctx)
	if o.down = cause != nil && sent == 0; len(left) > 0 && (o.down || late) {
		o.leave(p)
	}
	o.mu.Lock()
	o.did.Offered += sent
	if len(left) > 0 && !late {
		o.did.Errors += len(left)
	}
	o.mu.Unlock()
	if cause != nil && len(left) > 0 {
		o.cfg.Logger.WarnContext(ctx, "outbox.wake_ups_lost", "shard", p.shard, "messages", len(left), "first", left[0].ID, "error", cause)
	}
}

// send sends wake-ups in batches, Config.SweepConcurrency of them at once. It returns those that may not be in the queue, in their
// order, and why, if it was the queue's doing.
func (o *offering) send(ctx context.Context, refs []storage.MessageRef) (left []storage.MessageRef, cause error) {
	batches := slices.Collect(slices.Chunk(refs, OfferBatchMax))
	failed, causes := make([][]storage.MessageRef, len(batches)), make([]error, len(batches))
	var mu sync.Mutex
	next := 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	work := func() {
		for i := take(); i < len(batches); i = take() {
			if failed[i] = batches[i]; !o.timeOver(ctx) {
				failed[i], causes[i] = o.batch(ctx, batches[i])
			}
		}
	}
	var beside sync.WaitGroup
	for range min(o.cfg.SweepConcurrency, len(batches)) - 1 {
		beside.Go(work)
	}
	work()
	beside.Wait()
	for i := range batches {
		if left = append(left, failed[i]...); cause == nil {
			cause = causes[i]
		}
	}
	return left, cause
}

// batch sends one batch, and returns what of it may not be in the queue.
func (o *offering) batch(ctx context.Context, refs []storage.MessageRef) (left []storage.MessageRef, cause error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.StoreTimeout)
	defer cancel()
	wakeUps := make([]WakeUp, len(refs))
	for i, ref := range refs {
		wakeUps[i] = WakeUp{Tenant: ref.Tenant, Message: ref.ID}
	}
	for i, err := range o.queue.Offer(ctx, wakeUps) {
		if err != nil {
			left, cause = append(left, refs[i]), err
		}
	}
	return left, cause
}
