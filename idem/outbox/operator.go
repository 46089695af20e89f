package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Records reads records. [idem.Store] has it.
type Records interface {
	// Get reads a record strongly; nil when there is none.
	Get(ctx context.Context, key idem.RecordKey) (*idem.Record, error)
}

// Operator carries out what a person decides about messages that are unknown or dead. Each change demands the message
// exactly as the person saw it: a stale one is an [*idem.MessageConflictError] with what is there now, and changes nothing.
// What the contract does not admit is a [*RefusalError]. Other errors are as with [Reconciler.Reconcile].
type Operator struct {
	*desk
	records Records
}

// NewOperator returns an operator, or an [*idem.ConfigError] for an argument that is nil.
func NewOperator(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters, records Records) (*Operator, error) {
	d, err := newDesk(store, topics, wakeUps, deadLetters)
	if err != nil {
		return nil, err
	}
	if records == nil {
		return nil, &idem.ConfigError{Field: "records", Value: nil, Rule: "must be given"}
	}
	return &Operator{desk: d, records: records}, nil
}

// RefusalError is a change that could lose something, or make it happen twice. Nothing was changed.
type RefusalError struct {
	ID idem.MessageID
	// Reason says why, for the operator.
	Reason string
}

// Error implements error.
func (e *RefusalError) Error() string { return fmt.Sprintf("outbox: %s: refused: %s", e.ID, e.Reason) }

// Settle ends a message that is unknown or dead with evidence that a person has: the provider's own books say [Delivered]
// or [Declined]. DecisionSettled, or DecisionDead where it could not be settled: then the evidence is kept.
func (o *Operator) Settle(ctx context.Context, id idem.MessageID, seen idem.MessageFence, evidence Outcome) (Decision, error) {
	if !definite(evidence) {
		return DecisionNone, &RefusalError{id, fmt.Sprintf("a %T is no evidence", evidence)}
	}
	m, topic, err := o.find(ctx, id, seen)
	if err != nil {
		return DecisionNone, err
	}
	if m.State != idem.MessageUnknown && m.State != idem.MessageDead {
		return DecisionNone, &RefusalError{id, fmt.Sprintf("it is %s, and nobody waits for evidence", m.State)}
	}
	return o.settleSeen(ctx, topic, m, evidence)
}

func (o *Operator) settleSeen(ctx context.Context, topic Topic, m idem.Message, evidence Outcome) (Decision, error) {
	owner, err := o.mint.Owner()
	if err != nil {
		return DecisionNone, err
	}
	fence := idem.FenceOfMessage(m)
	return (&Reconciler{desk: o.desk}).found(ctx, topic, m, evidence, &execution{owner: owner, fence: &fence})
}

// Close ends an operation of which nothing happened, and that nobody shall execute any more: one whose first message was
// never claimed, or one that is unknown or dead, once its absence could be proven (a person has looked: a message whose
// effect happened must be settled instead). The message is cancelled, with what Settle makes of [NotExecuted], and the
// record fails with `operation_closed`. Where the record is final already only the message ends.
func (o *Operator) Close(ctx context.Context, id idem.MessageID, seen idem.MessageFence) error {
	m, topic, err := o.find(ctx, id, seen)
	if err != nil {
		return err
	}
	ended, err := o.ended(ctx, m)
	if err != nil {
		return err
	}
	next, err := closing(m, topic.rules(o.cfg), o.now())
	switch {
	case err != nil:
		return err
	case evidenced(m) && !ended:
		return &RefusalError{id, "it keeps evidence of what the provider did: redrive it"}
	}
	owner, err := o.mint.Owner()
	if err != nil {
		return err
	}
	settlement, err := o.closure(topic, m, next, ended)
	if err != nil {
		return err
	}
	if err := o.transact(ctx, settlement, &execution{owner: owner}); err != nil {
		return o.landed(ctx, next, fmt.Errorf("outbox: close: %w", err))
	}
	o.alarm(ctx, "outbox.closed", next)
	return nil
}

// closing is the message as it shall be.
func closing(m idem.Message, rules Rules, now time.Time) (idem.Message, error) {
	if m.State == idem.MessagePending {
		next, _, err := Step(m, Abandoned{}, rules, now)
		if err != nil {
			return m, &RefusalError{m.ID, "it has been claimed before, and a worker may be on it"}
		}
		return next, nil
	}
	next, _, err := Step(m, Closed{}, rules, now)
	switch {
	case err == nil:
		return next, nil
	case m.State == idem.MessageUnknown || m.State == idem.MessageDead:
		return m, &RefusalError{m.ID, fmt.Sprintf("a request may be under way until %s", provable(m, rules).Format(time.RFC3339))}
	}
	return m, &RefusalError{m.ID, fmt.Sprintf("it is %s", m.State)}
}

func (o *Operator) closure(topic Topic, m, next idem.Message, ended bool) (idem.Settlement, error) {
	if ended {
		fence := idem.FenceOfMessage(m)
		return idem.Settlement{Message: endOf(next), Fence: &fence}, nil
	}
	return o.failure(topic, m, next, operationClosed())
}

// Redrive starts a message anew that is dead, with attempts and age counted anew: evidence that it keeps is settled; what is
// open is unknown again, and probed; the rest is pending again, with the same downstream key. It returns what the message is
// then.
func (o *Operator) Redrive(ctx context.Context, id idem.MessageID, seen idem.MessageFence) (idem.MessageState, error) {
	m, topic, err := o.find(ctx, id, seen)
	if err != nil {
		return "", err
	}
	ended, err := o.ended(ctx, m)
	switch {
	case err != nil:
		return "", err
	case m.State != idem.MessageDead:
		return "", &RefusalError{id, fmt.Sprintf("it is %s, not dead", m.State)}
	case ended && !m.Detached:
		return "", &RefusalError{id, "its operation has its final answer"}
	case evidenced(m):
		return o.settleKept(ctx, topic, m)
	case ended:
		if err := givenUpForGood(topic, m); err != nil {
			return "", err
		}
	}
	next, _, err := Step(m, Redriven{}, topic.rules(o.cfg), o.now())
	if err != nil {
		return "", err
	}
	if err := o.write(ctx, o.until(ctx), m, next); err != nil {
		return "", fmt.Errorf("outbox: redrive: %w", err)
	}
	o.alarm(ctx, "outbox.redriven", next)
	if next.State == idem.MessagePending {
		_ = o.schedule(ctx, next, next.NextAttemptAt) // logged; the sweep does the rest
	}
	return next.State, nil
}

// settleKept settles what the message keeps: its settlement failed once, and the reason may be gone.
func (o *Operator) settleKept(ctx context.Context, topic Topic, m idem.Message) (idem.MessageState, error) {
	var kept Outcome = Delivered{Reference: m.Reference, Evidence: m.Evidence}
	end := idem.MessageDelivered
	if m.LastOutcome == outcomeDeclined {
		kept, end = Declined{Reference: m.Reference, Evidence: m.Evidence}, idem.MessageDeclined
	}
	decision, err := o.settleSeen(ctx, topic, m, kept)
	switch {
	case err != nil:
		return "", err
	case decision == DecisionSettled:
		return end, nil
	}
	return idem.MessageDead, nil
}

// givenUpForGood refuses what the application was told will not happen, where that made it write anything.
func givenUpForGood(topic Topic, m idem.Message) error {
	said, err := topic.ask(m, NotExecuted{})
	switch {
	case err != nil:
		return err
	case len(said.Writes) > 0:
		return &RefusalError{m.ID, "it was given up, and what that means was written"}
	}
	return nil
}

// find reads the message and compares it with what the operator saw.
func (o *Operator) find(ctx context.Context, id idem.MessageID, seen idem.MessageFence) (idem.Message, Topic, error) {
	m, err := o.message(ctx, id)
	switch {
	case err != nil:
		return idem.Message{}, Topic{}, err
	case m == nil || !seen.Admits(*m):
		return idem.Message{}, Topic{}, &idem.MessageConflictError{Existing: m}
	}
	topic, err := o.topic(*m)
	return *m, topic, err
}

// ended says whether the message's operation has its final answer already; where it was complete without the message,
// whether the message was given up before, with what that means.
func (o *Operator) ended(ctx context.Context, m idem.Message) (bool, error) {
	if m.Detached {
		return m.State == idem.MessageDead && m.OpenSince.IsZero() && !evidenced(m) && m.LastOutcome != outcomeUnfailed, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.cfg.StoreTimeout)
	defer cancel()
	r, err := o.records.Get(ctx, m.RecordKey)
	switch {
	case err != nil:
		return false, fmt.Errorf("outbox: read record: %w", err)
	case r == nil || r.OperationID != m.OperationID: // only what is final makes room for another
		return true, nil
	case !r.Readable():
		return false, &idem.UnreadableError{SchemaVersion: r.SchemaVersion, State: r.State, Kind: r.Kind}
	}
	return r.State.Final(), nil
}

// landed tells a lost reply of our own from another's doing.
func (o *Operator) landed(ctx context.Context, next idem.Message, cause error) error {
	var conflict *idem.MessageConflictError
	if !errors.As(cause, &conflict) {
		return cause
	}
	existing, err := o.message(ctx, next.ID)
	switch {
	case err != nil:
		return errors.Join(cause, err)
	case existing != nil && existing.State == idem.MessageCancelled && existing.DoneAt.Equal(next.DoneAt):
		return nil
	}
	return &idem.MessageConflictError{Existing: existing}
}
