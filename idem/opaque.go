package idem

import (
	"context"
	"errors"
	"net/http"
)

// completeOpaque stores the response of a handler that wrote for itself. Its 5xx, its panic and its 408 prove nothing:
// they park the record as unknown, unless the operation was declared safe to run again (peers.md H21).
func (x *execution) completeOpaque(ctx context.Context, response Response, err error) (*RecordConflictError, *Result, error) {
	policy := x.op.Policy
	switch {
	case err != nil && policy.StoreServerErrors:
		return x.complete(ctx, x.serverError(ctx, err))
	case err != nil:
		return nil, nil, x.parkOr(ctx, "the handler failed", err)
	}
	ambiguous := response.Status >= http.StatusInternalServerError || response.Status == http.StatusRequestTimeout
	if !policy.stores(response.Status) {
		if !ambiguous {
			return nil, x.answerUnstored(ctx, response), nil
		}
		state := StateFailedRetryable
		if !x.op.runsAgain() {
			state = StateUnknown
		}
		x.parkOrRelease(ctx, "the handler's answer proves nothing")
		return nil, &Result{Outcome: OutcomeExecuted, OperationID: x.record.OperationID, State: state, Response: response}, nil
	}
	tx := x.newTx(1)
	if err := tx.validate(x.op.Kind, response); err != nil {
		return nil, nil, x.parkOr(ctx, "the handler's answer can't be stored", err)
	}
	if response.Bytes() > x.engine.cfg.ResponseBytesMax {
		// The work is done: a retry must not do it again (peers.md P6).
		response = NewProblem(http.StatusInternalServerError, CodeResponseTooLarge, "Response too large",
			"The request was executed; its response is too large to be stored.").Response()
	}
	return x.complete(ctx, response)
}

// complete settles from in_progress or unknown, with the execution's own operation id and owner: evidence is never
// refused. It is never fenced off: its effect has happened.
func (x *execution) complete(ctx context.Context, response Response) (*RecordConflictError, *Result, error) {
	next, err := x.engine.revised(Step(x.record, Completed{Owner: x.owner, Response: response}, x.engine.now()))
	if err != nil {
		return nil, nil, err
	}
	fence := *x.fence
	fence.States = []State{StateInProgress, StateUnknown}
	err = x.send(ctx, x.storeUntil, func(ctx context.Context) error {
		return x.engine.store.Update(ctx, next, fence)
	})
	var conflict *RecordConflictError
	switch {
	case err == nil:
		return nil, x.executed(next), nil
	case errors.As(err, &conflict):
		return x.overruled(ctx, conflict)
	}
	return nil, nil, unavailable(err)
}

// overruled: an operator closed the record while its handler was running. The stored answer stands; the handler has run
// and must not run again for this request, whatever the record admits now.
func (x *execution) overruled(ctx context.Context, conflict *RecordConflictError) (*RecordConflictError, *Result, error) {
	lost, result, err := x.lost(ctx, conflict)
	if lost == nil {
		return nil, result, err
	}
	if lost.Existing == nil || !lost.Existing.Readable() || !lost.Existing.State.Final() {
		return nil, nil, unavailable(lost)
	}
	result, err = x.answer(ctx, *lost.Existing, EffectReplay)
	return nil, result, err
}

func (x *execution) parkOr(ctx context.Context, reason string, cause error) error {
	x.parkOrRelease(ctx, reason)
	return cause
}

// parkOrRelease is best effort: should it fail, the lease runs out and whoever meets it parks it.
func (x *execution) parkOrRelease(ctx context.Context, reason string) {
	if x.op.runsAgain() {
		x.release(ctx, reason)
		return
	}
	if err := x.transition(ctx, Parked{Reason: reason}); err != nil {
		x.engine.cfg.Logger.WarnContext(ctx, "parking failed", "operation", x.op.Name, "key_hash", x.key, "error", err)
	}
}
