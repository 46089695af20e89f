package idem

import (
	"context"
	"errors"
	"time"
)

// ErrNotLive: the tenant has no record of this operation id, or it has expired.
var ErrNotLive = errors.New("idem: no live record of the operation")

// amendsMax bounds how often an amendment is judged anew because the record was changed meanwhile, or a reply was lost.
const amendsMax = 5

// Extend lets a final record answer until the given time, at most [RetentionMax] after it was done, and returns until
// when it answers now; the zero time is one that lives as long as its resource. It never shortens, and says nothing of the
// record's messages, which stay as long as they would have. A response in chunks is written again with its record, in
// one transaction: chunks never go before it (peers.md H13).
//
// Errors: [ErrNotLive]; [*ExtendError]; [*TransitionError] for a record that is not final;
// [*UnavailableError], after which it may be called again.
func (e *Engine) Extend(ctx context.Context, tenant string, id OperationID, until time.Time) (time.Time, error) {
	r, err := e.amend(ctx, tenant, id, Extended{until.UTC().Truncate(time.Millisecond)})
	return r.ExpiresAt, err
}

// End ends the life of a record under [Policy].ResourceBacked, together with the resource that it made: from now on it
// has expired. Delete the resource first, then call End until it succeeds or returns [ErrNotLive]: in between a replay
// only tells of a resource that is gone, while the other order would let a retry make a second one.
//
// A record whose result is no success has a retention of its own, and is left to it; one that has expired is too. Errors
// as with [Engine.Extend].
func (e *Engine) End(ctx context.Context, tenant string, id OperationID) error {
	_, err := e.amend(ctx, tenant, id, Ended{})
	return err
}

// CacheBust makes a completed record not answer any more: the next request with its key and payload executes again. It is
// an operator's, for an answer that is wrong, and safe only where nothing else came of the execution: a [*CacheBustError]
// refuses it where the commit wrote anything but the record, where the handler wrote for itself and is not safe to run
// again, and while the record is backed by a resource. A cache in front of the store may answer until its own bound. An
// answer that has expired already is nothing to do.
//
// Other errors: [ErrNotLive]; [*TransitionError] for a record that is not completed; [*UnavailableError].
func (e *Engine) CacheBust(ctx context.Context, tenant string, id OperationID, reason string) error {
	r, err := e.find(ctx, tenant, id)
	if err != nil {
		return err
	}
	if _, err := e.amend(ctx, tenant, id, CacheBusted{Owner: r.Owner, Reason: reason}); err != nil {
		return err
	}
	e.cfg.Logger.WarnContext(ctx, "cache-bust", "operation", r.Operation, "operation_id", id, "key_hash", r.Key, "reason", reason)
	return nil
}

// find reads the tenant's record of this incarnation, expired or not; [ErrNotLive] where there is none.
func (e *Engine) find(ctx context.Context, tenant string, id OperationID) (Record, error) {
	key, err := id.RecordKey()
	if err != nil {
		return Record{}, ErrNotLive
	}
	r, err := e.get(ctx, key)
	switch {
	case err != nil:
		return Record{}, err
	case r == nil || r.Tenant != tenant || r.OperationID != id:
		return Record{}, ErrNotLive
	case !r.Readable():
		return Record{}, unavailable(&UnreadableError{r.SchemaVersion, r.State, r.Kind})
	}
	return *r, nil
}

// amend makes an event happen to a record, and returns what it is then. The fence is what was read, so that no two
// amendments undo each other. What a lost reply was the reply to is told by reading again.
func (e *Engine) amend(ctx context.Context, tenant string, id OperationID, event Event) (Record, error) {
	for try := 0; ; try++ {
		r, err := e.find(ctx, tenant, id)
		if err != nil {
			return Record{}, err
		}
		next, effect, err := Step(r, event, e.now())
		if err != nil || effect == EffectNothing {
			return r, err
		}
		if next.Revision, err = e.mint.Revision(); err != nil {
			return Record{}, err
		}
		if err = e.replace(ctx, r, next); err == nil {
			return next, nil
		}
		var conflict *RecordConflictError
		var unknown *OutcomeUnknownError
		again := errors.As(err, &conflict) || errors.As(err, &unknown) || errors.Is(err, ErrContention)
		if !again || try == amendsMax-1 || e.cfg.Pause(ctx, e.jitter(pollPause(try))) != nil {
			return Record{}, amendError(err)
		}
	}
}

func amendError(err error) error {
	var already *UnavailableError
	if errors.As(err, &already) {
		return err
	}
	return unavailable(err)
}

// replace writes the next record where the seen one still stands. The response is read first where the next one has it:
// a store writes whole records.
func (e *Engine) replace(ctx context.Context, seen, next Record) error {
	if next.State.Final() {
		loaded, err := e.load(ctx, next)
		switch {
		case errors.Is(err, ErrErased): // its life ends all the same; the store keeps saying that it was erased
			next.Response.Header, next.Response.Body = nil, nil
		case err != nil:
			return err
		default:
			next = loaded
		}
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.CallTimeout)
	defer cancel()
	return e.store.Update(ctx, next, FenceOf(seen))
}
