package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/internal/walk"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Reconciler decides wrapped operations whose outcome is unknown: it asks the operation's Probe, completes what is found,
// frees what provably never happened, and leaves the rest to its next step, or to a person. It never executes anything.
// Its cost is proportional to what is unknown, not to the table, and undecided records are not written. Any number of
// reconcilers may run beside each other, and beside requests and sweeps: the fences decide.
type Reconciler struct {
	engine *idem.Engine
	store  Store
	probes map[string]Probe
	cfg    Config
	walk   *walk.Walk[storage.RecordRef]
	memory memory
}

// NewReconciler returns a reconciler of the engine's records, or an [*idem.ConfigError]. The store is the engine's. Probes
// go by the name that records bear: an operation's own, or its first released one where it was renamed
// (idem.Operation.RenamedFrom). An operation without one is left to a person, who is told once a day.
func NewReconciler(engine *idem.Engine, store Store, probes map[string]Probe, cfg Config) (*Reconciler, error) {
	cfg, err := settle(engine, store, cfg)
	if err != nil {
		return nil, err
	}
	for name, probe := range probes {
		if name == "" || probe == nil {
			return nil, &idem.ConfigError{Field: "probes", Value: name, Rule: "must have a name and a function each"}
		}
	}
	look := cfg.StoreTimeout + cfg.ProbeTimeout + cfg.SettleMargin
	return &Reconciler{
		engine: engine, store: store, probes: maps.Clone(probes), cfg: cfg, walk: newWalk(store, cfg, storage.QueueUnknown, look),
	}, nil
}

// Decision is what became of a record that was unknown.
type Decision string

// The decisions of a [Reconciler].
const (
	// DecisionNone: the record is not unknown, or somebody else decided it meanwhile.
	DecisionNone Decision = "none"
	// DecisionCompleted: what the handler did was found; its answer is stored.
	DecisionCompleted Decision = "completed"
	// DecisionFreed: it provably never happened; the next request with the key executes.
	DecisionFreed Decision = "freed"
	// DecisionEarly: nothing was found, which proves nothing yet.
	DecisionEarly Decision = "early"
	// DecisionUndecided: the answer decides nothing; the Probe is asked again later.
	DecisionUndecided Decision = "undecided"
	// DecisionUnasked: the operation has no Probe. A person must decide.
	DecisionUnasked Decision = "unasked"
)

// ReconcileReport counts what a run of the reconciler decided.
type ReconcileReport struct {
	// Completed records have the answer that was found.
	Completed int `json:"completed"`
	// Freed records provably had no effect, and may be executed again.
	Freed int `json:"freed"`
	// Undecided records are asked about again later, those whose absence proves nothing yet included.
	Undecided int `json:"undecided"`
	// Unasked records have no Probe.
	Unasked int `json:"unasked"`
	// Waiting records were asked about before, and their next step has not come.
	Waiting int `json:"waiting"`
	// Skipped records needed nothing by the time they were read.
	Skipped int `json:"skipped"`
	// Errors counts records, and listings, that met one; each is in the log.
	Errors int `json:"errors"`
	// Unfinished says that the run met its bound or its deadline; the next one goes on there.
	Unfinished bool `json:"unfinished"`
}

func (r *ReconcileReport) count(decision Decision) {
	switch decision {
	case DecisionCompleted:
		r.Completed++
	case DecisionFreed:
		r.Freed++
	case DecisionEarly, DecisionUndecided:
		r.Undecided++
	case DecisionUnasked:
		r.Unasked++
	case DecisionNone:
		r.Skipped++
	}
}

// Run looks once at everything that is unknown, within Config.SweepMax and the context's deadline; the next run goes on
// where it stopped. It asks about what had a step since it was last asked about. It returns an error only where listing
// failed for every shard.
func (r *Reconciler) Run(ctx context.Context) (ReconcileReport, error) {
	const failed = "idempotency.reconcile_failed"
	var report ReconcileReport
	r.memory.age(r.cfg.now(), reminderEvery)
	unfinished, failures, err := r.walk.Run(ctx, func(ref storage.RecordRef) {
		decision, waits, err := r.look(ctx, ref)
		switch {
		case err != nil:
			report.Errors++
			r.cfg.Logger.ErrorContext(ctx, failed, "operation_id", ref.OperationID, "tenant", ref.Tenant, "error", err)
		case waits:
			report.Waiting++
		default:
			report.count(decision)
		}
	}, unlisted(ctx, r.cfg.Logger, failed))
	if !unfinished && failures == 0 {
		r.memory.complete()
	}
	report.Unfinished = unfinished
	report.Errors += failures
	return report, wrapped(err)
}

// look judges a record by its place in the index, and reads it only where it had a step.
func (r *Reconciler) look(ctx context.Context, ref storage.RecordRef) (decision Decision, waits bool, err error) {
	now := r.cfg.now()
	known := r.memory.recall(ref.OperationID, now)
	if !r.cfg.lastStep(ref.At, now).After(known.asked) {
		return DecisionNone, true, nil
	}
	decision, seen, err := r.reconcile(ctx, ref.Key, ref.OperationID)
	if err != nil {
		return DecisionNone, false, err
	}
	known.asked = now
	if seen != nil && r.needsPerson(ctx, *seen, decision, known.reminded, now) {
		known.reminded = now
	}
	r.memory.keep(ref.OperationID, known)
	return decision, false, nil
}

// needsPerson raises the day's alarm about a record that nobody can be asked about, or whose answers have decided nothing
// for a day, and says whether it did.
func (r *Reconciler) needsPerson(ctx context.Context, seen storage.Record, decision Decision, reminded, now time.Time) bool {
	first := seen.LeaseUntil
	switch decision {
	case DecisionUnasked:
	case DecisionUndecided:
		first = r.cfg.provable(seen.LeaseUntil).Add(reminderEvery)
	default:
		return false
	}
	if !lastReminder(first, now).After(reminded) {
		return false
	}
	r.log(ctx, slog.LevelError, "idempotency.reconcile.failed", seen, "outcome", string(decision), "alarm", true)
	return true
}

// Reconcile asks about one operation now, if it is unknown and the tenant's, due or not.
//
// Errors: trouble with the store; [idem.ErrNoTime]; the context's, where it ended before the Probe answered; an
// [*idem.UnreadableError] for what this release can't judge.
func (r *Reconciler) Reconcile(ctx context.Context, tenant string, id idem.OperationID) (Decision, error) {
	key, err := id.RecordKey()
	if err != nil {
		return DecisionNone, nil // an id that can't exist is as absent as any other
	}
	record, err := r.read(ctx, key)
	if err != nil || record == nil || record.Tenant != tenant || record.OperationID != id {
		return DecisionNone, err
	}
	return r.decide(ctx, *record)
}

// reconcile reads one record, because the index is stale, and decides it where it is still what was listed.
func (r *Reconciler) reconcile(ctx context.Context, key storage.RecordKey, id idem.OperationID) (Decision, *storage.Record, error) {
	record, err := r.read(ctx, key)
	if err != nil || record == nil || record.OperationID != id {
		return DecisionNone, nil, err
	}
	decision, err := r.decide(ctx, *record)
	return decision, record, err
}

func (r *Reconciler) read(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StoreTimeout)
	defer cancel()
	record, err := r.store.Get(ctx, key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("recovery: read record: %w", err)
	case record != nil && !record.Readable():
		return nil, &idem.UnreadableError{SchemaVersion: record.SchemaVersion, State: record.State, Kind: record.Kind}
	}
	return record, nil
}

// decide asks, and writes what the answer means. The record was read before the Probe is asked, and absence counts from
// when the question was put: what an answer does not cover must not be judged by it (peers.md H5).
func (r *Reconciler) decide(ctx context.Context, seen storage.Record) (Decision, error) {
	if seen.State != storage.StateUnknown {
		return DecisionNone, nil
	}
	probe, ok := r.probes[seen.Operation]
	if !ok {
		return DecisionUnasked, nil
	}
	r.log(ctx, slog.LevelInfo, "idempotency.reconcile.scheduled", seen)
	asked := r.cfg.now()
	finding, err := r.probe(ctx, probe, seen)
	if err != nil {
		return DecisionNone, err
	}
	decision := DecisionUndecided
	switch finding := finding.(type) {
	case Found:
		decision, err = DecisionCompleted, r.complete(ctx, seen, finding.Response)
	case Absent:
		if asked.Before(r.cfg.provable(seen.LeaseUntil)) {
			return DecisionEarly, nil
		}
		_, err = r.engine.Free(ctx, seen.Tenant, seen.OperationID, seen.Revision, "proven absent")
		decision = DecisionFreed
	case Unclear:
		r.log(ctx, slog.LevelWarn, "idempotency.probe_unclear", seen, "cause", finding.Cause)
	}
	return decided(decision, err)
}

// decided tells a race that somebody else won, which is nothing to do, from trouble.
func decided(decision Decision, err error) (Decision, error) {
	var conflict *storage.RecordConflictError
	switch {
	case errors.As(err, &conflict), errors.Is(err, idem.ErrNotLive):
		return DecisionNone, nil
	case err != nil:
		return DecisionNone, err
	}
	return decision, nil
}

// complete stores what was found. What does not fit has happened all the same, and must not happen again (peers.md H10).
func (r *Reconciler) complete(ctx context.Context, seen storage.Record, response idem.Response) error {
	_, err := r.engine.Resolve(ctx, seen.Tenant, seen.OperationID, seen.Revision, response)
	if errors.Is(err, idem.ErrResponseTooLarge) {
		short := idem.NewProblem(http.StatusInternalServerError, header.CodeResponseTooLarge, "Response too large",
			"The request was executed; its response is too large to be stored.").Response()
		_, err = r.engine.Resolve(ctx, seen.Tenant, seen.OperationID, seen.Revision, short)
	}
	return err
}

// askMin is the least time in which a Probe may be expected to answer.
const askMin = 100 * time.Millisecond

// probe asks within what the context leaves.
func (r *Reconciler) probe(ctx context.Context, probe Probe, seen storage.Record) (Finding, error) {
	timeout := r.cfg.ProbeTimeout
	if deadline, bounded := ctx.Deadline(); bounded {
		timeout = min(timeout, time.Until(deadline)-r.cfg.SettleMargin)
	}
	if timeout < min(askMin, r.cfg.ProbeTimeout) {
		return nil, idem.ErrNoTime
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	finding := r.ask(asking, probe, seen)
	if unclear, ok := finding.(Unclear); ok && ctx.Err() != nil { // it was not the Probe that had no answer
		return nil, fmt.Errorf("recovery: probe: %w (%v)", ctx.Err(), unclear.Cause)
	}
	return finding, nil
}

// log writes one line about a record: never its key.
func (r *Reconciler) log(ctx context.Context, level slog.Level, event string, seen storage.Record, args ...any) {
	args = append([]any{
		"operation", seen.Operation, "tenant", seen.Tenant, "key_hash", string(seen.Key), "operation_id", string(seen.OperationID),
		"state", string(seen.State), "epoch", seen.Epoch, "age_ms", r.cfg.now().Sub(seen.CreatedAt).Milliseconds(),
	}, args...)
	r.cfg.Logger.Log(ctx, level, event, args...)
}
