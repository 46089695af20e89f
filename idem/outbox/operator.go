package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Operator carries out what a person decides about messages that are unknown, evidenced or dead. Each change is
// conditional on what the person saw. If the message has changed since, nothing is changed, and the error is
// an [*storage.MessageConflictError] with the present message; but where a try had no reply and the message has changed
// since, the error is another one, because nobody can say whether the try landed before. A change that the contract does
// not admit is a [*RefusalError], and so is one that was decided before a loss of data. Other errors are as with
// [Runner.ReconcileMessage].
type Operator struct {
	*desk
	// rehearsal, where set, says that changes are rehearsed: see [Operator.Rehearsal].
	rehearsal *rehearsal
}

// NewOperator returns an operator, or an [*idem.ConfigError] for an argument that is nil.
func NewOperator(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters) (*Operator, error) {
	d, err := newDesk(store, topics, wakeUps, deadLetters)
	if err != nil {
		return nil, err
	}
	return &Operator{desk: d}, nil
}

// Seen is what a person looked at when they decided about a message.
type Seen struct {
	// Revision is the message's, as it was seen.
	Revision storage.Revision
	// Lost is what [Operator.Lost] returned before the message was read. After a loss of data a message may be as it was seen, and have been
	// executed by an attempt that was lost: who looked before that looks again.
	Lost time.Time
}

// Lost returns until when data may have been lost, for [Seen]: the later of Config.RefuseBefore and what the table says; the zero time where
// nothing was lost. It may be a minute old.
func (o *Operator) Lost(ctx context.Context) (time.Time, error) {
	lost, err := o.loss.At(ctx)
	return o.topics.Lost(lost), err
}

// RefusalError refuses a change that could lose an effect, or make it happen twice. Nothing was changed.
type RefusalError struct {
	// ID is the message's.
	ID idem.MessageID
	// Reason says why, for the operator.
	Reason string
}

// Error implements error.
func (e *RefusalError) Error() string { return fmt.Sprintf("outbox: %s: refused: %s", e.ID, e.Reason) }

// Settle ends a message that is unknown, evidenced or dead with evidence that a person has: the provider's own books say
// [Delivered] or [Declined]. It returns [DecisionSettled], or [DecisionDead] or [DecisionKept] if the evidence could not
// be settled; then it is kept on the message. [Declined] of a provider that honours no keys is not kept where the store does not take
// it: it is of all attempts, and the message keeps it of one. That is an error, and the person says it again.
func (o *Operator) Settle(ctx context.Context, id idem.MessageID, seen Seen, evidence Outcome) (Decision, error) {
	if !definite(evidence) {
		return DecisionNone, &RefusalError{id, fmt.Sprintf("a %T is no evidence", evidence)}
	}
	if err := named(evidence); err != nil {
		return DecisionNone, &RefusalError{id, err.Error()}
	}
	x, err := o.change(protocol.Judgement, id, seen)
	if err != nil {
		return DecisionNone, err
	}
	x.outcome, x.machine.Evidence = evidence, outcomeOf(evidence)
	decision, say, err := o.decide(ctx, x)
	switch {
	case err != nil:
		return DecisionNone, err
	case say.Code == protocol.Unchanged && translation.IDOf(x.row.Revision) == x.ending: // it landed without a reply
		return DecisionSettled, nil
	case say.Code == protocol.Unchanged: // it has ended between the look and the write
		return DecisionNone, x.overtaken()
	case say.Code == protocol.Inadmissible:
		return DecisionNone, &RefusalError{id, fmt.Sprintf("it is %s, and nobody waits for evidence", x.row.State)}
	}
	return decision, nil
}

// Close ends a message of which nothing happened, and which must not be executed any more. It must be the first message
// of its operation and never have been claimed, or it must be unknown or dead, and old enough for its absence to be
// proven. The person must have checked that nothing happened: a message whose effect happened must be settled instead.
// The message is cancelled, with what Settle returns for [NotExecuted]. The record fails with `operation_closed`, or
// waits for the message that Settle sends to undo earlier steps. If the record is final already, only the message ends.
func (o *Operator) Close(ctx context.Context, id idem.MessageID, seen Seen) error {
	x, err := o.change(protocol.Close, id, seen)
	if err != nil {
		return err
	}
	say, err := x.run(ctx)
	if err == nil && say.Code == protocol.Inadmissible {
		err = &RefusalError{id, x.unclosable()}
	}
	return err
}

// unclosable says why a message can't be closed.
func (x *delivery) unclosable() string {
	m := x.row
	until := x.provable()
	switch parked := m.State == storage.MessageUnknown || m.State == storage.MessageDead; {
	case m.State == storage.MessagePending:
		return "it may have been claimed before, and a worker may be on it"
	case parked && x.now().Before(until):
		return fmt.Sprintf("a request may be under way until %s", until.Format(time.RFC3339))
	case parked && m.Sealed:
		return "nobody here can open it, so what that means can't be written: resolve it with evidence"
	case m.KeptDelivered != nil || m.KeptDeclined != nil:
		return "it keeps evidence of what the provider did: redrive or resolve it"
	case parked:
		return fmt.Sprintf("what that means could not be written: %v", x.cause)
	}
	return fmt.Sprintf("it is %s", m.State)
}

// Redrive starts a dead message again, with attempts and age counted from zero. If it keeps evidence, the evidence is
// settled, unless it is a decline that may be about one attempt of several: that is refused, and must be settled by
// [Operator.Settle]. If a call is open, the message is unknown again, and probed. Otherwise it is pending again, with the same
// downstream key. A message that is evidenced is settled. Redrive returns the message's new state.
func (o *Operator) Redrive(ctx context.Context, id idem.MessageID, seen Seen) (storage.MessageState, error) {
	x, err := o.change(protocol.Redrive, id, seen)
	if err != nil {
		return "", err
	}
	say, err := x.run(ctx)
	switch {
	case err != nil:
		return "", err
	case say.Code == protocol.Inadmissible:
		return "", &RefusalError{id, x.undrivable()}
	}
	return x.row.State, nil
}

// undrivable says why a message can't be started anew.
func (x *delivery) undrivable() string {
	switch kept := x.row.State == storage.MessageDead || x.row.State == storage.MessageEvidenced; {
	case kept && x.row.KeptDelivered == nil && x.row.KeptDeclined != nil:
		return "it keeps a decline, and nobody knows which of its attempts that is about: look at the provider's books, and resolve it"
	case x.row.State != storage.MessageDead:
		return fmt.Sprintf("it is %s, not dead", x.row.State)
	case x.row.Detached:
		return "it was given up, and what that means was written"
	}
	return "its operation has its final answer"
}

// change is a delivery about the message as a person saw it.
func (o *Operator) change(errand protocol.MessageErrand, id idem.MessageID, seen Seen) (*delivery, error) {
	if seen.Revision == "" {
		return nil, &RefusalError{id, "the revision that was seen must be told"}
	}
	x, err := o.newDelivery(errand, id)
	if err == nil {
		x.rehearsing = o.rehearsal
		x.machine.Seen, x.machine.SeenLost = translation.IDOf(seen.Revision), translation.InstantOf(seen.Lost)
	}
	return x, err
}
