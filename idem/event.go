package idem

import (
	"context"
	"errors"
	"log/slog"

	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// The messages of the engine's event lines. All but eventRefused and eventSwept are names of metrics too (docs/semantics.md "Metrics"),
// which package telemetry makes of the lines.
const (
	eventCreated       = "idempotency.reserve.created"
	eventFailedRetry   = "idempotency.reserve.failed_retry"
	eventReplay        = "idempotency.reserve.replay"
	eventInProgress    = "idempotency.reserve.in_progress"
	eventKeyMisuse     = "idempotency.reserve.key_misuse"
	eventUnknown       = "idempotency.reserve.unknown"
	eventStoreError    = "idempotency.store.error"
	eventQuotaRejected = "idempotency.quota.rejected"
	eventZombieKey     = "idempotency.zombie_key"
	eventReconciled    = "idempotency.reconcile.resolved"
	eventUndecided     = "idempotency.reconcile.failed"
	eventRefused       = "idempotency.refused"
	eventSwept         = "idempotency.swept"
	eventOverrun       = "idempotency.run_max"
)

// eventLevel is the level of an event line; none is below Info.
func eventLevel(name string) slog.Level {
	switch name {
	case eventStoreError, eventUndecided:
		return slog.LevelError
	case eventKeyMisuse, eventUnknown, eventZombieKey, eventSwept:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// logEvent writes the one event line of a request: never its key, its body, or what is stored of another's. x is nil where
// the request had no fingerprint or no time.
func (o *Registered) logEvent(ctx context.Context, req Request, x *execution, result *Result, err error) {
	name, outcome := x.event(ctx, result, err)
	if o.suppressed(req, name) {
		return
	}
	if result != nil && result.OnlyObserved { // before the logger is asked about the request's own line, which is no error
		x.tellOnlyObserved(ctx, result.OperationID)
	}
	logger, level := o.engine.cfg.Logger, eventLevel(name)
	if !logger.Enabled(ctx, level) {
		return
	}
	line := []slog.Attr{slog.String("operation", o.op.Name), slog.String("tenant", req.Tenant)}
	if x == nil {
		line = append(line, slog.String("key_hash", string(o.RecordKey(req))), slog.String("outcome", outcome))
	} else {
		line = append(line, slog.String("key_hash", string(x.key)), slog.String("outcome", outcome),
			slog.Int64("took_ms", x.engine.now().Sub(x.began).Milliseconds()), slog.Int("attempts", x.attempts(result)))
		if id := x.operationID(result); id != "" {
			line = append(line, slog.String("operation_id", string(id)))
		}
	}
	if name == eventStoreError {
		line = append(line, slog.Any("error", err))
	}
	logger.LogAttrs(ctx, level, name, line...)
}

// tellOnlyObserved raises the alarm about a key that is refused because it was only observed. Its record is in no queue, so that no
// reconciler and no list shows it.
func (x *execution) tellOnlyObserved(ctx context.Context, id OperationID) {
	x.engine.cfg.Logger.LogAttrs(ctx, eventLevel(eventUndecided), eventUndecided,
		slog.String("operation", x.op.Name), slog.String("tenant", x.req.Tenant), slog.String("key_hash", string(x.key)),
		slog.String("operation_id", string(id)), slog.String("outcome", "only_observed"), slog.Bool("alarm", true))
}

// suppressed are the events that package middleware logs instead, being those of requests without protection: an
// execution under a one-off key reserves nothing for anybody, and observe mode acts on nothing that it finds.
func (o *Registered) suppressed(req Request, name string) bool {
	switch name {
	case eventStoreError:
		return false
	case eventQuotaRejected:
		return o.op.Policy.Observe
	case eventCreated, eventFailedRetry:
		return req.OneOff
	}
	return req.OneOff || o.op.Policy.Observe
}

// event names what became of a request, and how.
func (x *execution) event(ctx context.Context, result *Result, err error) (name, outcome string) {
	if err != nil {
		if name, outcome = failure(ctx, err); name == "" {
			name = x.reserved()
		}
		return name, outcome
	}
	switch result.Outcome {
	case OutcomeExecuted:
		name = x.reserved()
	case OutcomeReplayed:
		name = eventReplay
	case OutcomeInProgress:
		name = eventInProgress
	case OutcomeMismatch:
		name = eventKeyMisuse
	case OutcomeUnknown:
		name = eventUnknown
	}
	return name, string(result.Outcome)
}

// reserved says how the request got the right to execute: a take-over of what is known not to have happened counts apart.
func (x *execution) reserved() string {
	switch r := x.held(); {
	case r == nil:
		return eventRefused
	case r.Attempts > 1:
		return eventFailedRetry
	}
	return eventCreated
}

// held is the record that the handler ran for; nil where it did not run.
func (x *execution) held() *storage.Record {
	if x == nil || x.machine.Runs == 0 {
		return nil
	}
	return x.row(x.machine.Held.Op)
}

// failure says how an error ended a request that was made with ctx. The name is "" where the error is not the store's or the quota's.
func failure(ctx context.Context, err error) (name, outcome string) {
	var (
		handler *HandlerError
		over    *QuotaError
		down    *UnavailableError
		expired *ExpiredError
		keyTime *KeyTimeError
		barred  *RefusedBeforeError
	)
	switch {
	case errors.As(err, &handler): // first: what it wraps is the handler's
		return "", "handler_failed"
	case errors.As(err, &over):
		return eventQuotaRejected, "quota_exceeded"
	case errors.Is(err, ErrNoTime):
		return "", "no_time"
	case errors.As(err, &barred):
		return "", "refused_before"
	case errors.Is(err, context.Canceled) && timers.Cancelled(ctx): // the client hung up before anything was written
		return "", "canceled"
	case errors.As(err, &down):
		return eventStoreError, "unavailable"
	case errors.Is(err, ErrResponseTooLarge):
		return "", "response_too_large"
	case errors.Is(err, storage.ErrErased):
		return "", "erased"
	case errors.As(err, &expired):
		return "", "expired"
	case errors.As(err, &keyTime):
		return "", "key_time"
	}
	return "", "failed"
}

// attempts is how often the incarnation was executed by now: the execution's own, or the one that answered.
func (x *execution) attempts(result *Result) int {
	r := x.held()
	if result != nil && result.Outcome != OutcomeExecuted {
		r = x.seen
	}
	if r == nil {
		return 0
	}
	return r.Attempts
}

func (x *execution) operationID(result *Result) OperationID {
	if result != nil {
		return result.OperationID
	}
	if r := x.held(); r != nil {
		return r.OperationID
	}
	return ""
}

// tellZombie tells of a holder that found the record another's: its lease ran out while it was paused, or it ignored its
// own deadline. Its write did nothing; what else it did under the lease is as its kind says.
func (x *execution) tellZombie(ctx context.Context, held protocol.Record) {
	x.engine.cfg.Logger.LogAttrs(ctx, eventLevel(eventZombieKey), eventZombieKey,
		slog.String("operation", x.op.Name), slog.String("tenant", x.req.Tenant), slog.String("key_hash", string(x.key)),
		slog.String("operation_id", string(operationOf(x.key, held.Op))), slog.Int64("epoch", int64(held.Epoch)),
		slog.Int64("overdue_ms", int64(x.now()-held.Lease)))
}

// tellStatus tells of a status that could not be read, or not any more within the tenant's limits.
func (e *Engine) tellStatus(ctx context.Context, tenant string, id OperationID, err error) {
	name, outcome := failure(ctx, err)
	if name == "" {
		return
	}
	line := []slog.Attr{slog.String("tenant", tenant), slog.String("operation_id", string(id)), slog.String("outcome", outcome)}
	if name == eventStoreError {
		line = append(line, slog.Any("error", err))
	}
	e.cfg.Logger.LogAttrs(ctx, eventLevel(name), name, line...)
}
