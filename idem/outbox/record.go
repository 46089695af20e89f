package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// park makes a wrapped record unknown whose holder died, as the next request with its key would.
func (r *Runner) park(ctx context.Context, _ string, ref storage.RecordRef) (Decision, error) {
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
	return r.questionRecord(ctx, &question{Runner: r}, tenant, id)
}

// unclear asks about a record that is listed as unknown, if it still is due: the index is stale, and somebody else may just have
// asked, and put off the next question. One that the index can't name is another release's, or damaged.
//
// Its operation is known once it was read. Where there are several probes, the first look only says in which lane it stands.
func (r *Runner) unclear(ctx context.Context, lane string, ref storage.RecordRef) (Decision, error) {
	if _, err := ref.OperationID.RecordKey(); err != nil {
		return DecisionNone, &storage.MalformedRecordError{Key: ref.Key, Cause: err}
	}
	return r.questionRecord(ctx, &question{Runner: r, onlyDue: true, laned: len(r.probes) > 1, lane: lane}, ref.Tenant, ref.OperationID)
}

// unreadable says whether an error is a record that this release can't judge, and tells of it: the release that wrote it can,
// and nothing is written here that would put it off.
func (d *desk) unreadable(ctx context.Context, ref storage.RecordRef, err error) bool {
	if !unjudged(err) {
		return false
	}
	d.cfg.Logger.ErrorContext(ctx, "idempotency.record_unreadable",
		"operation_id", string(ref.OperationID), "tenant", ref.Tenant, "key_hash", string(ref.Key), "error", err, "alarm", true)
	return true
}

// unjudged says whether an error is a record of another schema, state or kind, or one that can't be read.
func unjudged(err error) bool {
	var unreadable *idem.UnreadableError
	var malformed *storage.MalformedRecordError
	return errors.As(err, &unreadable) || errors.As(err, &malformed)
}

// lookAt is the place in the queue of a record that is unknown.
func lookAt(seen storage.Record) time.Time {
	if seen.LookAt.IsZero() {
		return seen.LeaseUntil
	}
	return seen.LookAt
}

// question is one look at a record, for [idem.Engine.Reconcile].
type question struct {
	*Runner
	onlyDue bool
	// laned says that operations have lanes of their own, and lane in which one the question is.
	laned bool
	lane  string
	// seen is the record as it was read, and asked when the question was put. decision is why it is to be put again; none where
	// it was not put, or where the engine decides by the answer; then answered.
	seen     storage.Record
	asked    time.Time
	decision Decision
	answered bool
}

// questionRecord asks, has the engine write what the answer means, and writes otherwise when to ask again. An answer whose
// write is refused for good is put off like one that decides nothing, and its error is returned besides.
func (r *Runner) questionRecord(ctx context.Context, q *question, tenant string, id idem.OperationID) (Decision, error) {
	q.decision = DecisionNone
	state, err := r.engine.Reconcile(ctx, tenant, id, r.cfg.LongestRequest+r.cfg.ListingDelay, q.ask)
	switch {
	case err != nil && q.answered && refusedForGood(err):
		_, failed := r.putOff(ctx, q, DecisionUndecided)
		return DecisionNone, errors.Join(err, failed)
	case err != nil:
		return DecisionNone, err
	case state == storage.StateCompleted:
		return DecisionCompleted, nil
	case state != "":
		return DecisionFreed, nil
	case q.decision == DecisionNone:
		return DecisionNone, nil
	}
	return r.putOff(ctx, q, q.decision)
}

// putOff postpones the next question.
func (r *Runner) putOff(ctx context.Context, q *question, decision Decision) (Decision, error) {
	err := r.postpone(ctx, q.seen, decision, q.asked)
	if errors.As(err, new(*storage.RecordConflictError)) { // somebody else was faster
		return DecisionNone, nil
	}
	return decision, err
}

// refusedForGood says that the store refused to write an answer, and that the same write would be refused again: not because
// of what was in its way, nor of its time, nor because nobody was asked or nobody replied.
func refusedForGood(err error) bool {
	reply, _ := replyOf(err, "")
	return reply.Code == protocol.Broken && !unjudged(err) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// ask is an [idem.Question].
func (q *question) ask(ctx context.Context, seen storage.Record) (found idem.Response, absent bool, err error) {
	if q.seen, q.asked = seen, q.now(); q.onlyDue && lookAt(seen).After(q.asked) {
		return found, false, nil
	}
	probe, ok := q.probes[seen.Operation]
	if !ok {
		q.decision = DecisionUnasked
		return found, false, nil
	}
	if q.laned && q.lane != seen.Operation {
		return found, false, &laneError{seen.Operation}
	}
	log := func(level slog.Level, event string, args ...any) { q.logRecord(ctx, level, event, seen, args...) }
	finding, err := q.probed(ctx, log, executed, func(ctx context.Context) Finding {
		return q.tracedProbe(ctx, seen.Trace, func(ctx context.Context) Finding { return probe(ctx, seen) })
	})
	if err != nil {
		return found, false, err
	}
	switch finding := finding.(type) {
	case Executed:
		q.answered = true
		return finding.Response, false, nil
	case Absent:
		if q.answered = true; q.asked.Before(q.Absence(seen)) {
			q.decision = DecisionEarly
		}
		return found, true, nil
	}
	q.decision = DecisionUndecided
	return found, false, nil
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

// Absence returns the time from which it is proof that nothing is there of a wrapped operation that is unknown: what its holder sent
// last has arrived by then, and is listed; also where the holder was frozen before it sent it. The runner must have an engine.
func (r *Runner) Absence(seen storage.Record) time.Time {
	return seen.LeaseUntil.Add(r.cfg.LongestRequest + r.cfg.ListingDelay + r.engine.FreezeAllowance() + r.cfg.ClockSkew)
}

// reminderEvery is what lies between two alarms about a record that nobody can decide.
const reminderEvery = 24 * time.Hour

// postpone moves the record to the place in its queue from which somebody is to ask again (ADR 0032), and tells a person where
// that is due. The record's places say which reminders were given: none is later than the next reminder, so the one that lies
// between a place and the look at it is due. Nobody else's write is lost: the fence admits the row that was seen alone. Two that
// ask at once may tell a person twice; so may one whose write is lost, which asks again at the next run.
func (r *Runner) postpone(ctx context.Context, seen storage.Record, decision Decision, asked time.Time) error {
	now, provable := r.now(), r.Absence(seen)
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
