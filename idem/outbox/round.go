package outbox

import (
	"context"
	"fmt"
	"time"
)

// round is one run of a walk. Config.SweepConcurrency goroutines take what is listed, in its order, and look at it: a look
// that hangs holds up the goroutine that looks, and nobody else.
type round[Ref any] struct {
	*walk[Ref]
	// turn guards the fields below: it is full while somebody takes, lists or counts.
	turn chan struct{}
	// at is what is taken next, until when it must be due, left how many shards are not done yet, and room how many more may
	// be looked at.
	at    place[Ref]
	until time.Time
	left  int
	room  int
	did   Counts
	// unlisted are the errors of the shards that could not be listed.
	unlisted []error
}

// work looks at one after the other, until nothing is left to take.
func (r *round[Ref]) work(ctx context.Context) {
	for {
		ref, ok := r.take(ctx)
		if !ok {
			return
		}
		decision, err := r.look(ctx, ref)
		if err != nil {
			r.failed(ctx, err, ref)
		}
		r.count(decision, err)
	}
}

// take takes the next one that is to be looked at, and lists where none is left. It says whether there is one: everything may
// be done, or the run be over.
func (r *round[Ref]) take(ctx context.Context) (ref Ref, ok bool) {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	for r.left > 0 && !r.did.Unfinished {
		switch {
		case len(r.at.rest) == 0 && r.at.listed:
			r.leave()
		case r.room == 0 || r.timeOver(ctx):
			r.did.Unfinished = true
		case len(r.at.rest) == 0:
			r.listMore(ctx)
		default:
			ref, r.at.rest = r.at.rest[0], r.at.rest[1:]
			r.room--
			return ref, true
		}
	}
	return ref, false
}

func (r *round[Ref]) count(decision Decision, err error) {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if err != nil {
		r.did.Errors++
		return
	}
	r.did.count(decision)
}

// listMore lists the next page of the shard. A shard that can't be listed is left until the next run.
func (r *round[Ref]) listMore(ctx context.Context) {
	listing, cancel := context.WithTimeout(ctx, r.cfg.StoreTimeout)
	defer cancel()
	refs, next, err := r.list(listing, r.queue, r.at.shard, r.until, min(r.cfg.SweepPage, r.room), r.at.cursor)
	switch {
	case err == nil:
		r.at.rest, r.at.cursor, r.at.listed = refs, next, next == ""
	case ctx.Err() != nil:
		r.did.Unfinished = true
	default:
		r.failed(ctx, err, r.at.shard)
		r.did.Errors++
		r.unlisted = append(r.unlisted, fmt.Errorf("outbox: list shard %d: %w", r.at.shard, err))
		r.leave()
	}
}

// leave goes on to the next shard. Once all are done, that is the one with which the next run begins.
func (r *round[Ref]) leave() {
	r.left--
	r.enter(place[Ref]{shard: (r.at.shard + 1) % r.shards})
}

// enter goes to the place. What becomes due in its shard from now on is the next run's.
func (r *round[Ref]) enter(at place[Ref]) {
	r.at, r.until = at, r.cfg.Now().Add(r.ahead).UTC().Truncate(time.Millisecond)
}
