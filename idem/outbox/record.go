package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// park makes a wrapped record unknown whose holder died, as the next request with its key would.
func (r *Runner) park(ctx context.Context, ref storage.RecordRef) (Decision, error) {
	state, err := r.engine.ParkDead(ctx, ref.Key)
	if err != nil || state != storage.StateUnknown {
		return DecisionNone, err
	}
	return DecisionParked, nil
}

// ReconcileRecord asks about one wrapped operation now, if it is unknown and the tenant's, due or not.
//
// Errors: trouble with the store; [ErrNoTime]; the context's, where it ended before the [Probe] answered; an
// [*idem.UnreadableError] for what this release can't judge; an [*idem.ConfigError] where the runner has no engine.
func (r *Runner) ReconcileRecord(ctx context.Context, tenant string, id idem.OperationID) (Decision, error) {
	if r.engine == nil {
		return DecisionNone, &idem.ConfigError{Field: "engine", Value: nil, Rule: "must be given, to reconcile records"}
	}
	key, err := id.RecordKey()
	if err != nil {
		return DecisionNone, nil // an id that can't exist is as absent as any other
	}
	seen, err := r.record(ctx, key, id)
	if err != nil || seen == nil || seen.Tenant != tenant {
		return DecisionNone, err
	}
	return r.questionRecord(ctx, *seen)
}

// unclear asks about a record that is listed as unknown. It reads the row first, because the index is stale: somebody else
// may just have asked, and put off the next question.
func (r *Runner) unclear(ctx context.Context, ref storage.RecordRef) (Decision, error) {
	seen, err := r.record(ctx, ref.Key, ref.OperationID)
	if err != nil || seen == nil || lookAt(*seen).After(r.now()) {
		return DecisionNone, err
	}
	return r.questionRecord(ctx, *seen)
}

// record reads what is stored of this incarnation, if it is unknown; nil where it is not.
func (r *Runner) record(ctx context.Context, key storage.RecordKey, id idem.OperationID) (*storage.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StoreTimeout)
	defer cancel()
	seen, err := r.store.Get(ctx, key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("outbox: read record: %w", err)
	case seen == nil || seen.OperationID != id:
		return nil, nil
	case !seen.Readable():
		return nil, &idem.UnreadableError{SchemaVersion: seen.SchemaVersion, State: seen.State, Kind: seen.Kind}
	case seen.State != storage.StateUnknown:
		return nil, nil
	}
	return seen, nil
}

// lookAt is the place in the queue of a record that is unknown.
func lookAt(seen storage.Record) time.Time {
	if seen.LookAt.IsZero() {
		return seen.LeaseUntil
	}
	return seen.LookAt
}

// questionRecord asks, and writes what the answer means, or when to ask again. The record was read before the question, and
// absence counts from when the question was put: what an answer does not cover must not be judged by it.
func (r *Runner) questionRecord(ctx context.Context, seen storage.Record) (Decision, error) {
	asked := r.now()
	decision, err := r.askRecord(ctx, seen, asked)
	if err == nil {
		switch decision {
		case DecisionEarly, DecisionUndecided, DecisionUnasked:
			err = r.postpone(ctx, seen, decision, asked)
		}
	}
	var conflict *storage.RecordConflictError
	switch {
	case errors.As(err, &conflict), errors.Is(err, idem.ErrNotLive): // somebody else was faster
		return DecisionNone, nil
	case err != nil:
		return DecisionNone, err
	}
	return decision, nil
}

func (r *Runner) askRecord(ctx context.Context, seen storage.Record, asked time.Time) (Decision, error) {
	probe, ok := r.probes[seen.Operation]
	if !ok {
		return DecisionUnasked, nil
	}
	log := func(level slog.Level, event string, args ...any) { r.logRecord(ctx, level, event, seen, args...) }
	finding, err := r.probed(ctx, log, executed, func(ctx context.Context) Finding { return probe(ctx, seen) })
	if err != nil {
		return DecisionNone, err
	}
	switch finding := finding.(type) {
	case Executed:
		return DecisionCompleted, r.complete(ctx, seen, finding.Response)
	case Absent:
		if asked.Before(r.provable(seen)) {
			return DecisionEarly, nil
		}
		_, err := r.engine.Free(ctx, seen.Tenant, seen.OperationID, seen.Revision, "proven absent")
		return DecisionFreed, err
	}
	return DecisionUndecided, nil
}

// executed says why a finding is no evidence about a wrapped operation.
func executed(finding Finding) error {
	found, ok := finding.(Executed)
	switch {
	case !ok:
		return fmt.Errorf("outbox: probe answered with a %T", finding)
	case found.Response.Status < 200 || found.Response.Status > 599:
		return fmt.Errorf("outbox: probe found a response with status %d", found.Response.Status)
	}
	return nil
}

// complete stores what was found. What does not fit has happened all the same, and must not happen again.
func (r *Runner) complete(ctx context.Context, seen storage.Record, response idem.Response) error {
	_, err := r.engine.Resolve(ctx, seen.Tenant, seen.OperationID, seen.Revision, response)
	if errors.Is(err, idem.ErrResponseTooLarge) {
		short := idem.NewProblem(http.StatusInternalServerError, header.CodeResponseTooLarge, "Response too large",
			"The request was executed; its response is too large to be stored.").Response()
		_, err = r.engine.Resolve(ctx, seen.Tenant, seen.OperationID, seen.Revision, short)
	}
	return err
}

// provable is from when on absence proves something: what the holder sent last has arrived by then, and is listed; also where
// the holder was frozen before it sent it.
func (r *Runner) provable(seen storage.Record) time.Time {
	return seen.LeaseUntil.Add(r.cfg.LongestRequest + r.cfg.ListingDelay + r.engine.FreezeAllowance() + r.cfg.ClockSkew)
}

// reminderEvery is what lies between two alarms about a record that nobody can decide.
const reminderEvery = 24 * time.Hour

// postpone moves the record to the place in its queue from which somebody is to ask again (ADR 0032), and tells a person where
// that is due. The record's places say which reminders were given: none is later than the next reminder, so the one that lies
// between a place and the look at it is due. Nobody else's write is lost: the fence admits the row that was seen alone. Two that
// ask at once may tell a person twice; so may one whose write is lost, which asks again at the next run.
func (r *Runner) postpone(ctx context.Context, seen storage.Record, decision Decision, asked time.Time) error {
	now, provable := r.now(), r.provable(seen)
	at, first := now.Add(r.probePause(asked.Sub(provable))), provable.Add(reminderEvery)
	switch {
	case decision == DecisionUnasked: // a release that knows whom to ask may come any time
		at, first = now.Add(r.cfg.ProbeBackoffMax), seen.LeaseUntil
	case decision == DecisionEarly || at.Before(provable):
		at = provable
	}
	reminder := first
	if !now.Before(first) {
		last := first.Add(now.Sub(first).Truncate(reminderEvery))
		if reminder = last.Add(reminderEvery); !last.Before(lookAt(seen)) {
			r.logRecord(ctx, levelError, "idempotency.reconcile.failed", seen, "outcome", string(decision), "alarm", true)
		}
	}
	next := seen
	if next.LookAt = at; reminder.Before(at) {
		next.LookAt = reminder
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.StoreTimeout)
	defer cancel()
	if err := r.store.Postpone(ctx, next, storage.FenceOf(seen)); err != nil {
		return fmt.Errorf("outbox: postpone record: %w", err)
	}
	return nil
}

// logRecord writes one line about a record: never its key.
func (r *Runner) logRecord(ctx context.Context, level slog.Level, event string, seen storage.Record, args ...any) {
	args = append([]any{
		"operation", seen.Operation, "tenant", seen.Tenant, "key_hash", string(seen.Key), "operation_id", string(seen.OperationID),
		"state", string(seen.State), "epoch", seen.Epoch, "age_ms", r.now().Sub(seen.CreatedAt).Milliseconds(),
	}, args...)
	r.cfg.Logger.Log(ctx, level, event, args...)
}
