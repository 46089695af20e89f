package idem

import "context"

// claimed are the messages of a transaction as they are inserted, each with a revision of its own: where their operation delivers inline, claimed by this
// execution from the moment of sending, not of the handler's start.
func (x *execution) claimed(messages []Message) ([]Message, error) {
	claimed := make([]Message, len(messages))
	for i, m := range messages {
		var err error
		if m.Revision, err = x.engine.mint.Revision(); err != nil {
			return nil, err
		}
		if claimed[i] = m; x.op.Inline == nil {
			continue
		}
		if claimed[i], err = x.op.Inline.Claimed(m, x.owner, x.engine.now()); err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// carryOn goes on with a pending operation's chain within the request, its own or one that it found abandoned, and
// answers with the end that it leads to. Trouble on the way changes nothing about what is committed: the 202 stands, and
// a worker finishes.
func (x *execution) carryOn(ctx context.Context, accepted *Result) *Result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.storeUntil.Sub(x.engine.now()))
	defer cancel()
	var end *RecordEnd
	var err error
	if accepted.Outcome == OutcomeExecuted && len(x.sent) == 1 {
		end, err = x.op.Inline.Carry(ctx, x.sent[0])
	} else {
		end, err = x.op.Inline.Resume(ctx, accepted.OperationID)
	}
	if err != nil {
		x.engine.cfg.Logger.WarnContext(ctx, "inline delivery failed", "operation", x.op.Name, "operation_id", accepted.OperationID, "error", err)
		return accepted
	}
	if end != nil {
		x.registered.settles.observe(end.DoneAt.Sub(x.began))
		return &Result{
			Outcome: accepted.Outcome, OperationID: accepted.OperationID, State: end.State, Response: end.Response, ExpiresAt: end.ExpiresAt,
		}
	}
	if accepted.Outcome != OutcomeExecuted {
		return accepted
	}
	return x.ended(ctx, accepted)
}

// ended is the operation's end if it has one by now: a refusal may have failed it, or another have finished it.
func (x *execution) ended(ctx context.Context, accepted *Result) *Result {
	r, err := x.engine.status(ctx, x.req.Tenant, accepted.OperationID)
	if err != nil || r == nil || !r.State.Final() {
		return accepted
	}
	return &Result{Outcome: accepted.Outcome, OperationID: r.OperationID, State: r.State, Response: r.Response, ExpiresAt: r.ExpiresAt}
}
