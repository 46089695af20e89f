package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// walk goes through what is due in one queue of a sparse index, shard by shard and page by page, in bounded runs. Where a run
// stops within a shard is kept in the store, and the next run goes on there, whichever process makes it: so what is always due
// does not keep the rest from being looked at. It is safe for concurrent use. Every field must be set.
type walk[Ref any] struct {
	cfg Config
	// places keep where runs stopped, under the name and the shard.
	places places
	name   string
	list   list[Ref]
	queue  string
	// page is how many are listed at once.
	page int
	// lookTime is how much of the context's time one look, or one batch, needs; without it the run ends.
	lookTime time.Duration
	// ahead is by how much the queue's places are later than somebody should look.
	ahead time.Duration
	// wraps says that a run which began at a place goes on with what lies before it, once it is at the end.
	wraps bool
	// at is when a listed one has its place.
	at func(Ref) time.Time
	// begin makes what takes the pages of one run.
	begin func(context.Context, *round[Ref]) taker[Ref]
	// failed logs an error, of a shard or of a look. Looks call it concurrently.
	failed func(ctx context.Context, err error, about any)

	mu sync.Mutex
	// first is the shard that the next run begins with, if it is one of its shards.
	first int
}

// places are what a walk needs of a [Store] to go on.
type places interface {
	Place(ctx context.Context, name string) (string, error)
	SetPlace(ctx context.Context, name, cursor string) error
}

// list lists one page of a queue's shard: a store's QueuedMessages or QueuedRecords.
type list[Ref any] func(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []Ref, next string, err error)

// taker takes what a run lists.
type taker[Ref any] interface {
	// room is how many more of the shard are taken in this run, and fits how many are done in the time that is left, however
	// long each takes.
	room(shard int) int
	fits(left time.Duration) int
	// take takes a page. What it does not get done it leaves, with round.leave.
	take(ctx context.Context, p page[Ref])
	// wait returns when all that was taken is done, or left.
	wait()
}

// page is what one listing of a shard found. They are numbered from 0 within a run; from is the cursor that lists it again. behind
// says that it lies before the place with which the run began in its shard.
type page[Ref any] struct {
	shard, number int
	from          string
	behind        bool
	refs          []Ref
}

// round is one run of a walk.
type round[Ref any] struct {
	*walk[Ref]
	// of is how many shards the queue has.
	of int

	mu  sync.Mutex
	did Counts
	// stops are the first page of each shard that was not done to its end, held the first of which something waits for a lane
	// of its own, and kept what the store has of each shard's place, where it was read.
	stops, held map[int]page[Ref]
	kept        map[int]string
	// since is when the first one of the place was due with which the run began in a shard.
	since map[int]time.Time
	// unlisted are the errors of the shards of which nothing could be listed.
	unlisted []error
}

// run takes once what is due in the shards, of so many, within the bounds and the context's deadline: in each shard from where the last run
// stopped to the end and, where the walk wraps, what lies before. It returns an error where none of the shards could be listed, or, if each
// of them must be, where one could not.
func (w *walk[Ref]) run(ctx context.Context, shards []int, of int, each bool) (Counts, error) {
	r := &round[Ref]{walk: w, of: of, stops: map[int]page[Ref]{}, held: map[int]page[Ref]{}, kept: map[int]string{}, since: map[int]time.Time{}}
	shards = w.turned(shards)
	to := w.begin(ctx, r)
	var behind []page[Ref]
	for _, shard := range shards {
		// What becomes due from now on is the next run's.
		until := r.cfg.Now().Add(r.ahead).UTC().Truncate(time.Millisecond)
		if end, done := r.through(ctx, to, page[Ref]{shard: shard}, until); done && r.wraps && !r.since[shard].IsZero() {
			behind = append(behind, page[Ref]{shard: shard, number: end + 1, behind: true})
		}
	}
	for _, at := range behind {
		r.through(ctx, to, at, r.since[at.shard])
	}
	to.wait()
	r.stopAtHeld()
	r.keep(ctx)
	w.turn(shards, r.stops)
	if len(r.unlisted) == len(shards) || each {
		return r.did, errors.Join(r.unlisted...)
	}
	return r.did, nil
}

// turned are the shards in a run's order.
func (w *walk[Ref]) turned(shards []int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := max(0, slices.Index(shards, w.first))
	return slices.Concat(shards[at:], shards[:at])
}

// turn has the next run begin with the first shard that this one did not come to the end of, after the one that it began with: that
// one keeps its place, and must not hold up the others.
func (w *walk[Ref]) turn(shards []int, stops map[int]page[Ref]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = shards[0]
	for _, shard := range shards[1:] {
		if stop, stopped := stops[shard]; stopped && !stop.behind {
			w.first = shard
			return
		}
	}
}

// through lists a shard from a page on, and says whether it came to the end, and with which page. A shard that can't be listed is left
// until the next run.
func (r *round[Ref]) through(ctx context.Context, to taker[Ref], at page[Ref], until time.Time) (number int, done bool) {
	for {
		room := to.room(at.shard)
		if room <= 0 || r.timeOver(ctx) {
			r.leave(at)
			return at.number, false
		}
		found, next, err := r.listed(ctx, at, until, r.limit(ctx, to, room))
		switch {
		case err != nil && ctx.Err() != nil:
			r.leave(at)
			return at.number, false
		case err != nil:
			r.unlistable(ctx, at, err)
			return at.number, false
		}
		to.take(ctx, found)
		if next == "" {
			return found.number, true
		}
		at = page[Ref]{shard: at.shard, number: found.number + 1, from: next, behind: at.behind}
	}
}

// limit is how many are listed at once: no more than are done in the time that is left. A page that is not done is listed again
// from its start by the next run, so that one which never fits would be begun again for ever.
func (r *round[Ref]) limit(ctx context.Context, to taker[Ref], room int) int {
	most := min(r.page, room)
	left, bounded := remaining(ctx)
	if !bounded {
		return most
	}
	listing := 2 * r.cfg.StoreTimeout
	return max(1, min(most, to.fits(left-listing-r.cfg.StoreTimeout)))
}

// listed lists a page. The first one of a shard with more than one is that where the last run stopped: only then its place is read.
func (r *round[Ref]) listed(ctx context.Context, at page[Ref], until time.Time, limit int) (found page[Ref], next string, err error) {
	listing, cancel := context.WithTimeout(ctx, r.cfg.StoreTimeout)
	defer cancel()
	at.refs, next, err = r.list(listing, r.queue, at.shard, until, limit, at.from)
	if err != nil || next == "" || at.number > 0 {
		return at, next, err
	}
	going, cancel := context.WithTimeout(ctx, r.cfg.StoreTimeout)
	defer cancel()
	place, err := r.places.Place(going, r.placeOf(at.shard))
	if err != nil { // what was listed is as good a beginning
		r.failed(ctx, err, at.shard)
		return at, next, nil
	}
	r.kept[at.shard] = place
	if place == "" {
		return at, next, nil
	}
	refs, further, err := r.list(going, r.queue, at.shard, until, limit, place)
	if err != nil { // the store is down, or it is another release's cursor
		r.failed(ctx, err, at.shard)
	}
	if len(refs) == 0 { // there is nothing behind it any more
		return at, next, nil
	}
	r.since[at.shard] = r.at(refs[0])
	return page[Ref]{shard: at.shard, from: place, refs: refs}, further, nil
}

func (r *round[Ref]) placeOf(shard int) string { return r.name + "." + strconv.Itoa(shard) }

// leave says that the page was not done to its end: the next run goes on there.
func (r *round[Ref]) leave(p page[Ref]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did.Unfinished = true
	r.stop(p)
}

func (r *round[Ref]) stop(p page[Ref]) {
	if stop, stopped := r.stops[p.shard]; !stopped || p.number < stop.number {
		p.refs = nil
		r.stops[p.shard] = p
	}
}

// hold says that something of the page waits for a lane of its own. round.mu must be held.
func (r *round[Ref]) hold(p page[Ref]) {
	r.did.Unfinished = true
	if first, held := r.held[p.shard]; !held || p.number < first.number {
		p.refs = nil
		r.held[p.shard] = p
	}
}

// stopAtHeld has the next run go on where something waits for a lane of its own, but not where this run did not come to the
// shard's end: a provider that hangs must not hide what is listed after its own. What it holds comes once the run is round.
func (r *round[Ref]) stopAtHeld() {
	for shard, held := range r.held {
		if _, stopped := r.stops[shard]; !stopped {
			r.stops[shard] = held
		}
	}
}

func (r *round[Ref]) unlistable(ctx context.Context, at page[Ref], err error) {
	r.failed(ctx, err, at.shard)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did.Errors++
	if at.number == 0 {
		r.unlisted = append(r.unlisted, fmt.Errorf("outbox: list shard %d: %w", at.shard, err))
	}
	r.stop(at)
}

func (r *round[Ref]) count(decision Decision, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.did.fail(err)
		return
	}
	r.did.count(decision)
}

// keep keeps where each shard stopped, if that has changed. A place that is not kept costs looks that were made already.
func (r *round[Ref]) keep(ctx context.Context) {
	for shard, kept := range r.kept {
		if place := r.stops[shard].from; place != kept {
			keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.StoreTimeout)
			if err := r.places.SetPlace(keeping, r.placeOf(shard), place); err != nil {
				r.failed(ctx, err, shard)
			}
			cancel()
		}
	}
}

// timeOver says whether the context leaves no time for a look, and for keeping the place after it.
func (w *walk[Ref]) timeOver(ctx context.Context) bool {
	left, bounded := remaining(ctx)
	return ctx.Err() != nil || bounded && left < w.lookTime+w.cfg.StoreTimeout
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
