package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Runner brings to an end what nobody holds any more: messages of the outbox, and records of wrapped operations. It executes
// no operation, and asks providers without calling them. What a run costs is proportional to what is due, not to the tables.
// Any number of runners may work beside each other, and beside workers and requests: the fences decide.
//
// Of the records only wrapped ones need it. Any other dead lease, and that of a wrapped operation that is safe to run again,
// is taken over by the next request with its key, and harms nobody meanwhile.
type Runner struct {
	*desk
	worker *Worker
	engine *idem.Engine
	probes map[string]Probe
	// kept tells how many shards rows lie in; nil: as many as the store has.
	kept func(context.Context) (int, error)

	offers, deaths, doubts *walk[storage.MessageRef]
	leases, unknowns       *walk[storage.RecordRef]
	// begun is how many runs have begun.
	begun atomic.Uint32
}

const (
	sweepFailed     = "idempotency.sweep_failed"
	reconcileFailed = "idempotency.reconcile_failed"
)

// NewRunner returns a runner with the worker's store, topics, queues and configuration, or an [*idem.ConfigError].
//
// The engine is that of the wrapped operations, on the same store; without one only messages are looked at. Probes go by the
// name that records bear: an operation's own, or its first released one where it was renamed (idem.Operation.RenamedFrom). An
// operation without one is left to a person, who is told once a day; one that is registered with Operation.Probed is refused then.
func NewRunner(worker *Worker, engine *idem.Engine, probes map[string]Probe) (*Runner, error) {
	if worker == nil {
		return nil, &idem.ConfigError{Field: "worker", Value: nil, Rule: "must be given"}
	}
	if engine == nil && len(probes) > 0 {
		return nil, &idem.ConfigError{Field: "engine", Value: nil, Rule: "must be given, where there are probes"}
	}
	if engine != nil && worker.cfg.ClockSkew < engine.ClockSkew() {
		return nil, &idem.ConfigError{
			Field: "Config.ClockSkew", Value: worker.cfg.ClockSkew,
			Rule: fmt.Sprintf("must be at least the engine's Config.ClockSkew = %v, or the key of what a worker settles is free while others still replay it", engine.ClockSkew()),
		}
	}
	for name, probe := range probes {
		if name == "" || probe == nil {
			return nil, &idem.ConfigError{Field: "probes", Value: name, Rule: "must have a name and a function each"}
		}
	}
	if err := promised(engine, probes); err != nil {
		return nil, err
	}
	r := &Runner{desk: worker.desk, worker: worker, engine: engine, probes: maps.Clone(probes)}
	if err := r.walks(); err != nil {
		return nil, err
	}
	return r, nil
}

// AdoptShards has the runner ask at the start of [Runner.Run], and before each run, how many shards rows lie in, and look into as many
// where they are more than the store has: a release that has raised the number may have been gone back from. Each named shard of a run
// then stands also for those that follow it in steps of the store's number, so that the runs of one schedule together miss none. kept is
// dynamo.Store.CheckShards, or does what it does; a run whose call fails looks at nothing, and returns the error. Call AdoptShards before
// the first run.
func (r *Runner) AdoptShards(kept func(context.Context) (int, error)) { r.kept = kept }

// shards is how many shards rows lie in.
func (r *Runner) shards(ctx context.Context) (int, error) {
	own := r.store.Shards()
	if r.kept == nil {
		return own, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StoreTimeout)
	defer cancel()
	kept, err := r.kept(ctx)
	if err != nil {
		return 0, fmt.Errorf("outbox: how many shards there are: %w", err)
	}
	return max(own, kept), nil
}

// promised refuses what would show only once a record is unknown: an operation that declares a probe and has none, and a probe by a
// name that no record bears.
func promised(engine *idem.Engine, probes map[string]Probe) error {
	if engine == nil {
		return nil
	}
	for _, op := range engine.Operations() {
		name := cmp.Or(op.RenamedFrom, op.Name)
		if probes[op.Name] != nil && name != op.Name {
			return &idem.ConfigError{Field: "probes", Value: op.Name, Rule: fmt.Sprintf("must have the operation's first released name, %s: records bear that", name)}
		}
		if op.Probed && probes[name] == nil {
			return &idem.ConfigError{Field: "probes", Value: name, Rule: "must have a probe: the operation declares one (Operation.Probed)"}
		}
	}
	return nil
}

// walks makes the walks.
func (r *Runner) walks() error {
	// Places are SweepGrace late, so that a first claim, which comes seconds later, need not move its message (ADR 0004). A
	// claim that died is looked at when its lease is over all the same.
	ahead := max(0, r.cfg.SweepGrace-r.cfg.ClaimLease)
	writing, asking := r.cfg.StoreTimeout, r.cfg.StoreTimeout+r.cfg.CallTimeout+r.cfg.SettleMargin
	one := func(string) int { return r.cfg.SweepConcurrency }
	r.offers = messageWalk(r.desk, sweepFailed, writing, storage.QueueOffer, laned[storage.MessageRef]{look: r.offer, width: one, narrowest: r.cfg.SweepConcurrency})
	r.offers.ahead = ahead
	r.deaths = messageWalk(r.desk, sweepFailed, 3*writing, storage.QueueDead, laned[storage.MessageRef]{look: r.remind, width: one, narrowest: r.cfg.SweepConcurrency}) // read, letter, place
	r.doubts = messageWalk(r.desk, reconcileFailed, asking, storage.QueueUnknown, laned[storage.MessageRef]{
		look: r.doubt, lane: func(ref storage.MessageRef) string { return ref.Topic }, width: r.probesMax, narrowest: r.narrowest(),
	})
	r.leases = recordWalk(r.desk, sweepFailed, writing+r.cfg.SettleMargin, storage.QueueLease, laned[storage.RecordRef]{look: r.park, width: one, narrowest: r.cfg.SweepConcurrency})
	r.unknowns = recordWalk(r.desk, reconcileFailed, asking, storage.QueueUnknown, laned[storage.RecordRef]{look: r.unclear, width: one, narrowest: r.cfg.SweepConcurrency})
	if r.cfg.WakeUpsMax == 0 {
		return nil
	}
	queue, ok := r.wakeUps.(BatchWakeUps)
	if !ok {
		return &idem.ConfigError{Field: "Config.WakeUpsMax", Value: r.cfg.WakeUpsMax, Rule: fmt.Sprintf("must be 0 with wake-ups in a %T, which is no outbox.BatchWakeUps", r.wakeUps)}
	}
	// What was offered last is offered again last: a run that comes to the end leaves the rest of the queue's room to the next
	// one.
	r.offers.page, r.offers.begin, r.offers.wraps = offerPage, r.offering(queue), false
	return nil
}

// probesMax is how many probes of a topic one run makes at once. One that is not registered is not asked about.
func (r *Runner) probesMax(topic string) int {
	return cmp.Or(r.topics.byName[topic].ProbesMax, r.cfg.SweepConcurrency)
}

// narrowest is the least that probesMax is of any topic.
func (r *Runner) narrowest() int {
	least := r.cfg.SweepConcurrency
	for topic := range r.topics.byName {
		least = min(least, r.probesMax(topic))
	}
	return least
}

func messageWalk(d *desk, event string, lookTime time.Duration, queue string, how laned[storage.MessageRef]) *walk[storage.MessageRef] {
	w := walkOf(d, event, lookTime, queue, how)
	w.name, w.list, w.at = "messages."+queue, d.store.QueuedMessages, func(ref storage.MessageRef) time.Time { return ref.At }
	return w
}

func recordWalk(d *desk, event string, lookTime time.Duration, queue string, how laned[storage.RecordRef]) *walk[storage.RecordRef] {
	w := walkOf(d, event, lookTime, queue, how)
	w.name, w.list, w.at = "records."+queue, d.store.QueuedRecords, func(ref storage.RecordRef) time.Time { return ref.At }
	return w
}

// walkOf is a walk through a queue with the desk's bounds; what fails is logged under the event.
func walkOf[Ref any](d *desk, event string, lookTime time.Duration, queue string, how laned[Ref]) *walk[Ref] {
	return &walk[Ref]{
		cfg: d.cfg, places: d.store, queue: queue, page: d.cfg.SweepPage, lookTime: lookTime, begin: how.begin, wraps: true,
		failed: func(ctx context.Context, err error, about any) { d.unlooked(ctx, event, err, about) },
	}
}

// Sweep looks once at every message and every wrapped record that is due, within Config.SweepMax of each and the context's
// deadline; the next run goes on where it stopped. It offers messages again whose wake-ups were lost or whose workers died,
// parks or gives up what may not be offered, settles the evidence that a message keeps, reminds an operator once a day of each
// message that is dead, and makes wrapped records unknown whose holders died. It asks nobody. With Config.WakeUpsMax it reads no
// message that is due, and leaves what must be decided about it to the worker that receives the wake-up.
//
// shards are those of the queues that it looks into, each once; without any it looks into all. Runs for different shards may go
// on beside each other, in any processes. Which a named one stands for, [Runner.AdoptShards] says.
//
// It returns an error where no shard of one of these queues could be listed, or not each of those that it names, or where it is not
// known how many there are; and an [*idem.ConfigError] for a shard that does not exist or is named twice.
func (r *Runner) Sweep(ctx context.Context, shards ...int) (Report, error) {
	return r.tracedRun(ctx, spanSweep, shards, r.leases, r.deaths, r.offers)
}

// Reconcile asks once about everything that is unknown and due, within the bounds of [Runner.Sweep] and with its errors. Of
// messages it asks the provider by the downstream key, through the topic's Probe: it settles what is found, offers what
// provably never happened, and asks about the rest later, until it is dead. Of records it asks the operation's [Probe]: it
// completes what is found, frees what provably never happened, and asks about the rest later. Records never die: after a day a
// person is told, once a day. A provider that hangs holds up no other's topics (Topic.ProbesMax). shards are as in
// [Runner.Sweep].
func (r *Runner) Reconcile(ctx context.Context, shards ...int) (Report, error) {
	return r.tracedRun(ctx, spanReconcile, shards, r.unknowns, r.doubts)
}

// chosen are the shards, of so many, that a run looks into.
func (r *Runner) chosen(named []int, of int) (shards []int, err error) {
	if len(named) == 0 {
		for shard := range of {
			shards = append(shards, shard)
		}
		return shards, nil
	}
	sorted := slices.Sorted(slices.Values(named))
	if sorted[0] < 0 || sorted[len(sorted)-1] >= of || len(slices.Compact(sorted)) < len(named) {
		return nil, &idem.ConfigError{Field: "shards", Value: named, Rule: fmt.Sprintf("must be 0 to %d, each once: the store has %d shards", of-1, of)}
	}
	for _, shard := range named {
		for ; shard < of; shard += r.store.Shards() {
			if !slices.Contains(shards, shard) {
				shards = append(shards, shard)
			}
		}
	}
	return shards, nil
}

// run goes through the queues side by side, so that none waits for another's end. With a SweepConcurrency of 1 everything
// happens one after the other, in the caller's goroutine, and each run begins with another queue: one that fills the run's time
// leaves the others theirs.
func (r *Runner) run(
	ctx context.Context, shards []int, records *walk[storage.RecordRef], messages ...*walk[storage.MessageRef],
) (did Report, err error) {
	each := len(shards) > 0
	of, err := r.shards(ctx)
	if err != nil {
		records.failed(ctx, err, "all")
		return did, err
	}
	if shards, err = r.chosen(shards, of); err != nil {
		return did, err
	}
	counts, errs := make([]Counts, len(messages)), make([]error, len(messages)+1)
	var runs []func()
	if r.engine != nil {
		runs = append(runs, func() { did.Records, errs[len(messages)] = records.run(ctx, shards, of, each) })
	}
	for i, queue := range messages {
		runs = append(runs, func() { counts[i], errs[i] = queue.run(ctx, shards, of, each) })
	}
	var beside sync.WaitGroup
	first := int(r.begun.Add(1)-1) % len(runs)
	for _, run := range slices.Concat(runs[first:], runs[:first]) {
		if r.cfg.SweepConcurrency == 1 {
			run()
			continue
		}
		beside.Go(run)
	}
	beside.Wait()
	for _, c := range counts {
		did.Messages.add(c)
	}
	return did, errors.Join(errs...)
}

// ReconcileMessage asks about one message now, if it is unknown, due or not.
//
// Trouble with the provider is not an error. Errors: trouble with the store; [ErrNoTime]; the context's, where it ended
// before the provider answered; an [*UnreadableError] or a [*TopicError] for what this release can't judge.
func (r *Runner) ReconcileMessage(ctx context.Context, id idem.MessageID) (Decision, error) {
	return r.question(ctx, id, false)
}

// doubt asks about a message that is listed as unknown.
func (r *Runner) doubt(ctx context.Context, _ string, ref storage.MessageRef) (Decision, error) {
	return r.question(ctx, ref.ID, true)
}

func (r *Runner) question(ctx context.Context, id idem.MessageID, onlyDue bool) (Decision, error) {
	x, err := r.newDelivery(protocol.Question, id)
	if err != nil {
		return DecisionNone, err
	}
	x.machine.OnlyDue = onlyDue
	decision, _, err := r.decide(ctx, x)
	return decision, err
}

// remind tells an operator of a message that is listed as dead.
func (r *Runner) remind(ctx context.Context, _ string, ref storage.MessageRef) (Decision, error) {
	x, err := r.newDelivery(protocol.Remind, ref.ID)
	if err != nil {
		return DecisionNone, err
	}
	if say, err := x.run(ctx); err != nil || say.Code != protocol.Undecided {
		return DecisionNone, err
	}
	return DecisionReminded, nil
}

// offer does what a message asks for that is listed as due. It reads the row first, because the index is stale.
func (r *Runner) offer(ctx context.Context, _ string, ref storage.MessageRef) (Decision, error) {
	x, err := r.newDelivery(protocol.Offer, ref.ID)
	if err != nil {
		return DecisionNone, err
	}
	say, err := x.run(ctx)
	switch {
	case err != nil:
		return DecisionNone, err
	case say.Code == protocol.Vacant:
		if err := r.schedule(ctx, x.row, r.now()); err != nil {
			return DecisionNone, fmt.Errorf("outbox: offer: %w", err)
		}
		r.log(ctx, levelInfo, "outbox.offered", x.row)
		return DecisionOffered, nil
	case say.Code == protocol.Changed:
		return swept(x.row.State), nil
	}
	return DecisionNone, nil
}
