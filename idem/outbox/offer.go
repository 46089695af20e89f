package outbox

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

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

// offering offers messages from the index, without reading them: the worker that receives a wake-up reads the message, and decides.
//
// How many it offers follows from the queue: a run fills it up to Config.WakeUpsMax, and begins where the last one stopped. So a
// message is offered again only after everything else that is due, and while wake-ups wait no more are added than were
// received. A run that dies before it keeps its place, or whose replies are lost, is repeated: a doubled wake-up costs its receiver
// a read.
type offering struct {
	*round[storage.MessageRef]
	desk  *desk
	queue BatchWakeUps
	// each is how many messages of a shard are offered in this run, and offered how many were.
	each    int
	offered map[int]int
	// refused are the shards whose first page the queue did not take, and no later one since; ended those in which the run ends.
	refused, ended map[int]bool
}

// offering begins a run that offers.
func (d *desk) offering(queue BatchWakeUps) func(context.Context, *round[storage.MessageRef]) taker[storage.MessageRef] {
	return func(ctx context.Context, r *round[storage.MessageRef]) taker[storage.MessageRef] {
		o := &offering{round: r, desk: d, queue: queue, each: offerLeast, offered: map[int]int{}, refused: map[int]bool{}, ended: map[int]bool{}}
		asking, cancel := context.WithTimeout(ctx, d.cfg.StoreTimeout)
		defer cancel()
		waiting, err := queue.Waiting(asking)
		if err != nil {
			d.cfg.Logger.ErrorContext(ctx, sweepFailed, "queue", "waiting", "error", err)
			r.count(DecisionNone, err)
			return o
		}
		o.each = max(offerLeast, (d.cfg.WakeUpsMax-waiting)/r.of)
		return o
	}
}

func (o *offering) room(shard int) int {
	if o.ended[shard] {
		return 0
	}
	return o.each - o.offered[shard]
}

// fits supposes that each batch takes its whole time, and is sent once.
func (o *offering) fits(left time.Duration) int {
	return max(1, o.cfg.SweepConcurrency*int(left/o.lookTime)) * OfferBatchMax
}

// wait has the next run begin with the oldest where this one met nothing in a shard that the queue takes.
func (o *offering) wait() {
	for shard := range o.refused {
		if _, stopped := o.stops[shard]; stopped {
			o.stops[shard] = page[storage.MessageRef]{shard: shard}
		}
	}
}

// take offers a page. A wake-up that could not be sent is left to the next time that everything was offered, so that one that the
// queue never takes holds up nobody. Where the queue does not take half of a page, the run ends in this shard, and the next one
// begins with that page; a run that began with it goes on to one more.
func (o *offering) take(ctx context.Context, p page[storage.MessageRef]) {
	named := slices.DeleteFunc(slices.Clone(p.refs), func(ref storage.MessageRef) bool { return o.nameless(ctx, ref) })
	left, late := named, true
	var cause error
	for try := 0; try < offerTries && len(left) > 0 && !o.timeOver(ctx); try++ {
		if try > 0 && o.cfg.Pause(ctx, o.desk.pause(try)) != nil {
			break
		}
		rest, untried, why := o.send(ctx, left)
		left, late, cause = rest, late && untried, cmp.Or(why, cause)
	}
	sent := len(named) - len(left)
	o.offered[p.shard] += sent
	switch {
	case late && len(left) > 0:
		o.leave(p)
	case cause == nil || 2*sent >= len(named):
		delete(o.refused, p.shard)
	case p.number == 0:
		o.refused[p.shard] = true
	default:
		o.ended[p.shard] = true
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

// nameless says that nobody could read a message by its id, and tells of it: as a wake-up it would be a dead letter whose
// tenant is not known.
func (o *offering) nameless(ctx context.Context, ref storage.MessageRef) bool {
	_, _, err := ref.ID.Operation()
	return err != nil && o.desk.unknown(ctx, ref.ID, &storage.MalformedError{ID: ref.ID, Cause: err})
}

// send sends wake-ups in batches, Config.SweepConcurrency of them at once. It returns those that may not be in the queue, in their
// order, whether there was no time for some of them, and why, if it was the queue's doing.
func (o *offering) send(ctx context.Context, refs []storage.MessageRef) (left []storage.MessageRef, untried bool, cause error) {
	batches := slices.Collect(slices.Chunk(refs, OfferBatchMax))
	failed, causes, tried := make([][]storage.MessageRef, len(batches)), make([]error, len(batches)), make([]bool, len(batches))
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
				tried[i] = true
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
	return left, slices.Contains(tried, false), cause
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
