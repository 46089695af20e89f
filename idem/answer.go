package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// This file alone says what the end of a machine means to the caller.

// do performs the whole request.
func (x *execution) do(ctx context.Context, handler Handler) (*Result, error) {
	if p := x.op.Policy; p.InFlight == InFlightWait && !p.Observe {
		x.machine.Request.WaitUntil = x.now() + translation.MillisOf(p.WaitMax)
	}
	began := x.now() // a process that is frozen from here on has that much less time
	asking, cancel := x.engine.InTime(ctx)
	defer cancel()
	x.barred = x.engine.bars(asking, x.op, x.req)
	x.machine.Request.Barred = x.barred != nil && !x.op.Policy.Observe
	if x.op.Policy.Observe && asking.Err() != nil { // what barred says counts for nobody here, and has taken all of the time
		asking = ctx
	}
	say, err := x.drive(ctx, asking, x.begins(ctx, began), handler)
	if why := x.overruled(); why != nil && x.req.Overruled != nil {
		x.req.Overruled(why)
	}
	if x.giveBack != nil && !x.machine.NewKey {
		x.giveBack()
	}
	if x.unsettled != nil {
		x.engine.cfg.Logger.WarnContext(ctx, "the record keeps its lease", "operation", x.op.Name, "key_hash", x.key, "error", x.unsettled)
	}
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	result, err := x.result(ctx, say)
	if err == nil && result.State == storage.StatePending && x.op.Inline != nil && (!x.op.Policy.Observe || result.Outcome == OutcomeExecuted) {
		return x.carryOn(ctx, say, result), nil
	}
	return result, err
}

// lookup answers from what is there.
func (x *execution) lookup(ctx context.Context) (*Result, error) {
	x.machine.Request.LookOnly = true
	asking, cancel := x.engine.InTime(ctx)
	defer cancel()
	say, err := x.drive(ctx, asking, x.begins(ctx, x.now()), nil)
	if err != nil || say.Code == protocol.Vacant || say.Code == protocol.Gone {
		return nil, err
	}
	return x.result(ctx, say)
}

// result is the answer, or the error, that the machine ended with.
func (x *execution) result(ctx context.Context, say protocol.Say) (*Result, error) {
	result := &Result{State: recordStates[say.State]}
	if r := x.row(say.Op); r != nil {
		result.OperationID = r.OperationID
	}
	switch say.Code {
	case protocol.Executed, protocol.Replayed:
		return x.stored(ctx, say, result)
	case protocol.Passed:
		if x.run.err != nil {
			return nil, x.run.err
		}
		result.Outcome, result.Response = OutcomeExecuted, x.run.response
	case protocol.Busy:
		result.Outcome, result.RetryAfter = OutcomeInProgress, retryAfterMin
		if r := x.row(say.Op); r != nil {
			result.RetryAfter = x.registered.retryInProgress(*r, translation.TimeOf(x.now()))
		}
	case protocol.NotKnown:
		result.Outcome, result.RetryAfter, result.OnlyObserved = OutcomeUnknown, retryUnknown, say.OnlyObserved
	case protocol.Mismatch: // nothing of the stored request is told to one that may not be its owner's; what differs is for the log
		return &Result{Outcome: OutcomeMismatch, Differing: x.asked.differing}, nil
	default:
		return nil, x.failure(say.Code, result.OperationID)
	}
	return result, nil
}

// stored is an answer that the store has.
func (x *execution) stored(ctx context.Context, say protocol.Say, result *Result) (*Result, error) {
	r, a := x.row(say.Op), x.answers.at(say.Answer)
	if result.Response = a.response; a.row != nil {
		loaded, err := x.engine.load(ctx, *a.row, x.within(x.machine.ReadUntil(x.now(), &x.cfg)))
		if err != nil {
			return nil, err
		}
		result.Response = loaded.Response
	}
	now := translation.TimeOf(x.now())
	result.ExpiresAt = r.ExpiresAt
	if result.State == storage.StatePending {
		result.RetryAfter = x.registered.retryPending(r.CreatedAt, now)
	}
	if result.Outcome = OutcomeExecuted; say.Code == protocol.Replayed {
		result.Outcome = OutcomeReplayed
		x.registered.replayed(*r, now)
	} else {
		x.registered.executes.observe(now.Sub(x.began))
	}
	return result, nil
}

var (
	errLockLost  = fmt.Errorf("%w: each try of the handler lost its optimistic lock", storage.ErrContention)
	errUndecided = errors.New("idem: the outcome of the request is not known")
)

// failure is the error of a request that has no answer.
func (x *execution) failure(code protocol.SayCode, id OperationID) error {
	var failed *storage.WriteFailedError
	var conflict *storage.RecordConflictError
	switch isFailed := errors.As(x.cause, &failed); {
	case code == protocol.Late:
		return unavailable(ErrNoTime)
	case code == protocol.TurnedOff:
		return x.refused
	case code == protocol.Gone:
		return &ExpiredError{OperationID: id}
	case code == protocol.Undeclared && isFailed:
		return &HandlerError{Cause: failed}
	case code == protocol.Undeclared, errors.Is(x.cause, storage.ErrErased):
		return x.cause
	case isFailed:
		return unavailable(errLockLost)
	case x.machine.Request.Barred && (x.cause == nil || errors.As(x.cause, &conflict)):
		return x.barred
	case x.cause == nil:
		return unavailable(errUndecided)
	}
	return unavailable(x.cause)
}

const (
	retryUnavailable = 2 * time.Second
	retryUnknown     = 10 * time.Second
	retryBarred      = time.Minute
)

// unavailable is the 503 of a cause. One that is a 503 already stays.
func unavailable(cause error) error {
	var already *UnavailableError
	var notAsked *storage.NotAskedError
	switch {
	case errors.As(cause, &already):
		return already
	case errors.As(cause, &notAsked) && notAsked.RetryAfter > 0:
		return &UnavailableError{RetryAfter: notAsked.RetryAfter, Cause: cause}
	}
	return &UnavailableError{RetryAfter: retryUnavailable, Cause: cause}
}
