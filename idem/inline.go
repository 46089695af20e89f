package idem

import (
	"context"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// outgoing are the messages of a transaction as they are inserted: where their operation delivers inline, claimed by this
// execution from the moment of sending, not of the handler's start. A chain's message has the revision that the machine
// gave it, any other one the record's.
func (x *execution) outgoing(w protocol.Write) ([]storage.Message, error) {
	messages := make([]storage.Message, len(x.run.tx.messages))
	x.sent, x.left = nil, nil
	for i, m := range x.run.tx.messages {
		m.Revision = storage.NameOf[storage.Revision](w.Rec.Revision)
		if w.Msg.State == protocol.Claimed {
			var err error
			if m, err = x.op.Inline.Claimed(m, storage.NameOf[storage.Owner](w.Msg.Owner), translation.TimeOf(x.clock)); err != nil {
				return nil, err
			}
			x.sent = &messages[i]
		}
		if x.machine.Result.Left {
			x.left = &messages[i]
		}
		if w.MsgAs != protocol.Leave {
			m.Revision = storage.NameOf[storage.Revision](w.Msg.Revision)
		}
		messages[i] = m
	}
	return messages, nil
}

// carried is the message that is to be delivered inline, as the store has it.
func (x *execution) carried(say protocol.Say) *storage.Message {
	switch {
	case say.Carry.State != protocol.Claimed:
		return nil
	case x.message != nil && messageHeaderOf(x.message) == say.Carry:
		return x.message
	}
	return x.sent
}

// carryOn goes on with a pending operation's chain within the request, its own or one that it found abandoned, and
// answers with the end that it leads to. Its own goes on only where the store is known to have the claim. Trouble on the
// way changes nothing about what is committed: the 202 stands, and a worker finishes.
func (x *execution) carryOn(ctx context.Context, say protocol.Say, accepted *Result) *Result {
	ctx, cancel := context.WithDeadline(ctx, x.ends(x.machine.Plan.StoreUntil))
	defer cancel()
	var end *storage.RecordEnd
	var err error
	outlives := !x.engine.cfg.KillsAtDeadline
	switch m := x.carried(say); {
	case m != nil:
		end, err = x.op.Inline.Deliver(ctx, *m, outlives)
	case accepted.Outcome != OutcomeExecuted:
		end, err = x.op.Inline.Resume(ctx, accepted.OperationID, outlives)
	case x.left != nil:
		x.op.Inline.Left(ctx, *x.left)
		return accepted
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
