package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ErrUnsettled: the evidence could not be settled. The message keeps it: one that is evidenced is settled by the sweep, one
// that is dead, or that keeps a decline in doubt ([outbox.Topics.Doubted]), waits for an operator.
var ErrUnsettled = errors.New("operator: the evidence is stored in the message, but could not be settled: the log has the cause")

// Resolve ends a message that is unknown, evidenced or dead with evidence, which is [outbox.Delivered] or [outbox.Declined], as its
// worker would have. Of a message that nobody can open any more the topic can't be asked what that means: its operation fails, and nothing
// of the application's is written.
func (d *Desk) Resolve(ctx context.Context, id idem.MessageID, evidence outbox.Outcome, ch Change) (Result, error) {
	settle := func(ctx context.Context, by *outbox.Operator, _ storage.Message, seen outbox.Seen) (string, error) {
		decision, err := by.Settle(ctx, id, seen, evidence)
		if err == nil && decision != outbox.DecisionSettled {
			err = ErrUnsettled
		}
		return evidence.Name(), err
	}
	return d.onMessage(ctx, "resolve", id, ch, messageChange{d.settler, settle, wouldResolve})
}

// wouldResolve says what evidence makes of a message.
func wouldResolve(m storage.Message, does outbox.Rehearsed) string {
	settle := "settle it as " + string(does.State) + follows(", and send", does)
	switch {
	case !m.Sealed:
		return settle
	case m.Detached:
		return settle + ". Nobody can open it any more, so the application writes nothing"
	}
	return settle + ". Nobody can open it any more, so the application writes nothing, and the operation fails unless it has its answer"
}

// follows says that a change sends another message, after the words that lead to it; nothing where it sends none. That message moves money as
// any other does.
func follows(leads string, does outbox.Rehearsed) string {
	switch {
	case does.Next == "":
		return ""
	case does.Undoes:
		return leads + " a message that undoes earlier steps: a worker calls the provider for it"
	}
	return leads + " its next message: a worker calls the provider for it"
}

// Close cancels a message of which nothing happened. Its operation fails, or first undoes what earlier messages did; one that has its
// final answer keeps it. A message whose record may have been lost is [ErrRefused]: nobody knows whether its operation has its answer, and
// closing it would neither fail the operation nor ask its topic for the writes that this means.
func (d *Desk) Close(ctx context.Context, id idem.MessageID, ch Change) (Result, error) {
	cancel := func(ctx context.Context, by *outbox.Operator, m storage.Message, seen outbox.Seen) (string, error) {
		r, err := d.record(ctx, m.OperationID)
		if err == nil {
			err = d.answerKnown(ctx, m, r)
		}
		if err != nil {
			return "", err
		}
		return string(storage.MessageCancelled), by.Close(ctx, id, seen)
	}
	return d.onMessage(ctx, "close", id, ch, messageChange{d.closer, cancel, wouldClose})
}

// answerKnown refuses to end, or to start anew, a message whose record may have been lost: nobody knows whether its operation has its answer.
// The operation is as old as the first of its messages that are there: a later one may have been made after the loss. None of a chain goes
// before its record. A message that is detached needs no record.
func (d *Desk) answerKnown(ctx context.Context, m storage.Message, r *storage.Record) error {
	if r != nil || m.Detached {
		return nil
	}
	lost, err := d.lostBefore(ctx)
	if err != nil {
		return err
	}
	earlier, err := d.left(ctx, m.OperationID, 1, m.Index-1)
	if err != nil {
		return err
	}
	first := slices.MinFunc(append(earlier, m), func(a, b storage.Message) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if first.CreatedAt.Before(lost) {
		return fmt.Errorf("%w: its record is not there, and data from before %s may have been lost: make the record again first", ErrRefused, lost.Format(time.RFC3339))
	}
	return nil
}

// wouldClose says what closing a message does to its operation.
func wouldClose(m storage.Message, does outbox.Rehearsed) string {
	switch {
	case does.Next != "":
		return "cancel it" + follows(", and send", does) + ". Its operation fails once that has ended"
	case !does.Ends:
		return "cancel it, and leave its operation as it is"
	case m.Undoes:
		return "cancel it; its operation fails, and what it was to undo stands"
	}
	return "cancel it; its operation fails"
}

// Redrive starts a dead message anew, or settles what it keeps. A dead message whose record may have been lost is [ErrRefused]: both demand
// the record.
func (d *Desk) Redrive(ctx context.Context, id idem.MessageID, ch Change) (Result, error) {
	start := func(ctx context.Context, by *outbox.Operator, m storage.Message, seen outbox.Seen) (string, error) {
		if err := d.redrivable(ctx, m); err != nil {
			return "", err
		}
		state, err := by.Redrive(ctx, id, seen)
		if err == nil && (state == storage.MessageDead || state == storage.MessageEvidenced) {
			err = ErrUnsettled
		}
		return string(state), err
	}
	return d.onMessage(ctx, "redrive", id, ch, messageChange{d.operator, start, d.wouldRedrive})
}

// wouldRedrive says what a redrive does, by what the message becomes.
func (d *Desk) wouldRedrive(m storage.Message, does outbox.Rehearsed) string {
	rules, _ := d.cfg.Topics.Protocol(m.Topic) // one that is not registered was refused
	switch {
	case does.State == storage.MessagePending:
		return "start it anew: a worker calls the provider, under the same key"
	case does.State == storage.MessageUnknown && rules.Probed:
		return "make it unknown: a call is open, so that the provider is asked first"
	case does.State == storage.MessageUnknown:
		return "make it unknown: a call is open, and its topic can't ask the provider: a webhook or an operator must decide"
	case does.Next != "":
		return "settle what it keeps: it is " + string(does.State) + " then" + follows(", and sends", does)
	}
	return "settle what it keeps: it is " + string(does.State) + " then, and nobody is called"
}

// redrivable refuses to redrive a dead message whose record may have been lost. One that is evidenced is settled by every sweep.
func (d *Desk) redrivable(ctx context.Context, m storage.Message) error {
	if m.State != storage.MessageDead {
		return nil
	}
	r, err := d.record(ctx, m.OperationID)
	if err != nil {
		return err
	}
	return d.answerKnown(ctx, m, r)
}

// messageChange is a change of a message that was read.
type messageChange struct {
	by *outbox.Operator
	// make makes the change, by the operator or by its rehearsal, and says what the message becomes.
	make func(ctx context.Context, by *outbox.Operator, m storage.Message, seen outbox.Seen) (becomes string, err error)
	// would says what the change does.
	would func(m storage.Message, does outbox.Rehearsed) string
}

// rehearse makes the change without writing anything, and says what it would do.
func (d *Desk) rehearse(ctx context.Context, of messageChange, m storage.Message, seen outbox.Seen) (would string, unsettled bool, err error) {
	var does outbox.Rehearsed
	by := of.by.Rehearsal(d.record, func(did outbox.Rehearsed) { does = did })
	_, err = of.make(ctx, by, m, seen)
	switch {
	case errors.Is(err, ErrUnsettled) && does.Unsettled != nil:
		return unsettledWould(m, does), true, nil
	case err != nil:
		return "", false, err
	}
	return of.would(m, does), false, nil
}

// unsettledWould is what a dry run says of evidence that can't be settled: the change itself is [ErrUnsettled].
func unsettledWould(m storage.Message, does outbox.Rehearsed) string {
	verb := "becomes"
	if does.State == m.State {
		verb = "stays"
	}
	then := ", and an alarm rings"
	if does.State == storage.MessageEvidenced {
		then = ", and the sweep settles it later"
	}
	return fmt.Sprintf("keep the evidence on the message, and settle nothing: it %s %s%s. The cause: %s",
		verb, does.State, then, strings.TrimPrefix(does.Unsettled.Error(), "outbox: "))
}

// onMessage changes a message that is as the actor saw it.
func (d *Desk) onMessage(ctx context.Context, name string, id idem.MessageID, ch Change, of messageChange) (Result, error) {
	m, err := d.message(ctx, id)
	if err != nil {
		return Result{Action: name, Subject: string(id)}, err
	}
	var known time.Time // read after the message, and right before the change
	seen := func() outbox.Seen { return outbox.Seen{Revision: m.Revision, Lost: known} }
	return d.carry(ctx, ch, action{
		name: name, subject: string(id), tenant: m.Tenant,
		judge: func(ctx context.Context) (err error) {
			if known, err = d.known(ctx); err != nil {
				return err
			}
			if now := SeenMessage(m, known); now != ch.Seen {
				return &StaleError{string(id), ch.Seen, now}
			}
			return nil
		},
		rehearse: func(ctx context.Context) (string, bool, error) { return d.rehearse(ctx, of, m, seen()) },
		act:      func(ctx context.Context) (string, error) { return of.make(ctx, of.by, m, seen()) },
	})
}

func (d *Desk) message(ctx context.Context, id idem.MessageID) (storage.Message, error) {
	if _, _, err := id.Operation(); err != nil {
		return storage.Message{}, &InvalidError{"message", "must be an operation's id, a dot and the message's number"}
	}
	m, err := d.cfg.Store.Message(ctx, id)
	switch {
	case err != nil:
		return storage.Message{}, fmt.Errorf("operator: read message: %w", err)
	case m == nil:
		return storage.Message{}, ErrNotFound
	}
	return *m, nil
}
