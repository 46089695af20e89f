package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// commit makes the handler's writes, its messages and its response visible in one transaction (docs/design.md, "Commit",
// table of outcomes). again means that an optimistic lock was lost and the handler has to read anew.
func (x *execution) commit(ctx context.Context, tx *Tx, response Response) (lost *RecordConflictError, result *Result, again bool, err error) {
	next, err := x.after(tx, response)
	if err != nil {
		return nil, nil, false, x.giveUp(ctx, err)
	}
	for try := range x.engine.cfg.ContentionTries {
		err := x.sendCommit(ctx, tx, next)
		var failed *WriteFailedError
		switch {
		case errors.As(err, &failed):
			return x.judgeWrites(ctx, tx, failed)
		case !errors.Is(err, ErrContention):
			lost, result, err = x.settled(ctx, next, err)
			return lost, result, false, err
		}
		pause := x.engine.jitter(growing(20*time.Millisecond, 500*time.Millisecond, try))
		if x.engine.now().Add(pause).After(x.commitUntil) || x.engine.cfg.Pause(context.WithoutCancel(ctx), pause) != nil {
			break
		}
	}
	return nil, nil, false, x.giveUp(ctx, unavailable(ErrContention))
}

// after is the record as the commit makes it: pending with its 202 where a message follows, else completed.
func (x *execution) after(tx *Tx, response Response) (Record, error) {
	if err := tx.validate(x.op.Kind, response); err != nil {
		return Record{}, err
	}
	if n := response.Bytes(); n > x.engine.cfg.ResponseBytesMax {
		return Record{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrResponseTooLarge, n, x.engine.cfg.ResponseBytesMax)
	}
	var event Event = Completed{Owner: x.owner, Response: response, Alone: len(tx.writes)+len(tx.messages) == 0}
	if x.op.Kind == KindDeferred {
		if accepted := response.Status == 202; accepted != (len(tx.messages) == 1) {
			return Record{}, fmt.Errorf("idem: a deferred operation answered %d with %d messages: a 202 and its message go together", response.Status, len(tx.messages))
		}
		if len(tx.messages) == 1 {
			event = Accepted{Owner: x.owner, Response: response}
		}
	}
	return x.engine.revised(Step(x.record, event, tx.now))
}

// sendCommit freezes one transaction and sends it, and sends it again under the same token while there is no reply.
// Contention means that nothing happened: the caller sends a new transaction under a new token.
func (x *execution) sendCommit(ctx context.Context, tx *Tx, next Record) error {
	messages, err := x.claimed(tx.messages)
	if err != nil {
		return err
	}
	x.sent = messages
	send, err := x.engine.store.Prepare(Commit{
		Record: next, Fence: x.fence, Now: tx.now, Writes: tx.writes, Messages: messages, Token: x.token(),
	})
	if err != nil {
		return err
	}
	return x.sendTries(ctx, x.commitUntil, 1, send)
}

// judgeWrites acts on what the failed writes declared. A lost optimistic lock goes first: where one was lost, a business
// condition was judged on old data too (peers.md H11).
func (x *execution) judgeWrites(ctx context.Context, tx *Tx, failed *WriteFailedError) (*RecordConflictError, *Result, bool, error) {
	var rejection *Response
	for _, i := range failed.Indexes {
		failure := tx.writes[i].IfConditionFails()
		if failure.Retries() {
			return nil, nil, true, nil
		}
		if response, ok := failure.Rejects(); ok && rejection == nil {
			rejection = &response
		}
	}
	if rejection == nil {
		return nil, nil, false, x.giveUp(ctx, &HandlerError{Cause: failed})
	}
	lost, result, err := x.store(ctx, *rejection)
	return lost, result, false, err
}

// store stores a business answer with one write: fenced where a lease is held, else put if absent or expired.
func (x *execution) store(ctx context.Context, response Response) (*RecordConflictError, *Result, error) {
	now := x.engine.now()
	next, err := x.engine.revised(Step(x.record, Completed{Owner: x.owner, Response: response, Alone: true}, now))
	if err != nil {
		return nil, nil, x.giveUp(ctx, err)
	}
	err = x.send(ctx, x.commitUntil, func(ctx context.Context) error {
		if x.fence != nil {
			return x.engine.store.Update(ctx, next, *x.fence)
		}
		return x.engine.store.Insert(ctx, next, now)
	})
	return x.settled(ctx, next, err)
}

// settled answers once the write that would settle the request is decided, or fences it off where it can't be.
func (x *execution) settled(ctx context.Context, next Record, err error) (*RecordConflictError, *Result, error) {
	var conflict *RecordConflictError
	var unknown *OutcomeUnknownError
	switch {
	case err == nil:
		return nil, x.executed(next), nil
	case errors.As(err, &conflict):
		return x.lost(ctx, conflict)
	case errors.As(err, &unknown):
		return x.noReply(ctx, err)
	case errors.Is(err, ErrContention):
		return nil, nil, x.giveUp(ctx, unavailable(err))
	}
	return nil, nil, x.giveUp(ctx, err)
}

// lost tells one's own landed write, whose reply was lost, from another's. It answers with what is stored: of several
// sendings of this execution any one may have landed.
func (x *execution) lost(ctx context.Context, conflict *RecordConflictError) (*RecordConflictError, *Result, error) {
	r := conflict.Existing
	if r == nil || r.OperationID != x.record.OperationID || r.Owner != x.owner || !r.Readable() || r.State != StatePending && !r.State.Final() {
		x.tellZombie(ctx, conflict)
		return conflict, nil, nil
	}
	loaded, err := x.engine.load(context.WithoutCancel(ctx), *r)
	if err != nil {
		return nil, nil, err
	}
	return nil, x.executed(loaded), nil
}

// noReply: what was sent may have happened, or may happen yet. An insert needs no more: its condition excludes a second
// one. A held lease is fenced off, after which the lost commit can never land.
func (x *execution) noReply(ctx context.Context, cause error) (*RecordConflictError, *Result, error) {
	if x.fence != nil {
		fenced, err := x.engine.revised(Step(x.record, FencedOff{Owner: x.owner}, x.engine.now()))
		if err != nil {
			return nil, nil, err
		}
		err = x.send(ctx, x.storeUntil, func(ctx context.Context) error {
			return x.engine.store.Update(ctx, fenced, *x.fence)
		})
		var conflict *RecordConflictError
		if errors.As(err, &conflict) {
			return x.lost(ctx, conflict)
		}
	}
	return x.lastLook(ctx, cause)
}

// lastLook reads what the record says once nothing may be sent any more: an answer that stands there is the answer,
// whoever's it is. Anything else proves nothing: 503.
func (x *execution) lastLook(ctx context.Context, cause error) (*RecordConflictError, *Result, error) {
	ctx = context.WithoutCancel(ctx)
	r, err := x.read(ctx)
	if err != nil || r == nil {
		return nil, nil, unavailable(cause)
	}
	if lost, result, err := x.lost(ctx, &RecordConflictError{Existing: r}); lost == nil {
		return nil, result, err
	}
	if _, effect, err := x.judge(*r); err != nil || effect != EffectReplay {
		return nil, nil, unavailable(cause)
	}
	result, err := x.answer(ctx, *r, EffectReplay)
	return nil, result, err
}

func (x *execution) executed(r Record) *Result {
	now := x.engine.now()
	x.registered.executes.observe(now.Sub(x.began))
	result := &Result{Outcome: OutcomeExecuted, OperationID: r.OperationID, State: r.State, Response: r.Response, ExpiresAt: r.ExpiresAt}
	if r.State == StatePending {
		result.RetryAfter = x.registered.retryPending(r.CreatedAt, now)
	}
	return result
}
