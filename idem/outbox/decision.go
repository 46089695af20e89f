package outbox

import (
	"context"
	"errors"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Decision is the result of processing one message, or the record of one wrapped operation.
type Decision string

// The decisions about messages and records.
const (
	// DecisionNone: there was nothing to do, or another process did it meanwhile.
	DecisionNone Decision = "none"
	// DecisionUndecided: the answer decides nothing; the probe is repeated later.
	DecisionUndecided Decision = "undecided"
	// DecisionEarly: nothing was found, but too early for that to be a proof.
	DecisionEarly Decision = "early"
	// DecisionUnasked: the topic, or the operation, has no Probe. A webhook or an operator must decide.
	DecisionUnasked Decision = "unasked"
	// DecisionParked: it is unknown now.
	DecisionParked Decision = "parked"
)

// The decisions about messages alone.
const (
	// DecisionOrphan: there is evidence for a message that does not exist. Data was lost, or the evidence is about
	// another system. The caller must not acknowledge the evidence: it must be sent again, or be shown to an operator.
	DecisionOrphan Decision = "orphan"
	// DecisionKept: the evidence is on the message, and could not be settled yet, or is not enough to settle it.
	DecisionKept Decision = "kept"
	// DecisionSettled: the provider has it, or declined it; the operation goes on or is completed.
	DecisionSettled Decision = "settled"
	// DecisionOffered: the message got a wake-up. One that was unknown provably never happened.
	DecisionOffered Decision = "offered"
	// DecisionAbandoned: nobody claimed the operation's first message in time; the operation was cancelled.
	DecisionAbandoned Decision = "abandoned"
	// DecisionDead: the message was given up, or what was found could not be settled; an operator must decide.
	DecisionDead Decision = "dead"
	// DecisionReminded: the message is dead, and an operator was told of it again.
	DecisionReminded Decision = "reminded"
)

// The decisions about records alone.
const (
	// DecisionCompleted: what the handler did was found; its answer is stored.
	DecisionCompleted Decision = "completed"
	// DecisionFreed: it provably never happened; the next request with the key executes.
	DecisionFreed Decision = "freed"
)

// decide runs a delivery that brings or seeks evidence.
func (d *desk) decide(ctx context.Context, x *delivery) (Decision, protocol.Say, error) {
	say, err := x.run(ctx)
	if err != nil {
		return DecisionNone, say, err
	}
	decision := x.decision(say)
	if x.rehearsing != nil {
		return decision, say, nil
	}
	switch m := x.row; decision {
	case DecisionSettled:
		if x.first == storage.MessageUnknown || x.first == storage.MessageDead {
			d.log(ctx, levelInfo, "idempotency.reconcile.resolved", m, "outcome", x.evidence().Name())
		}
	case DecisionDead:
		d.log(ctx, levelWarn, "idempotency.reconcile.failed", m, "outcome", m.LastOutcome)
	default: // told by what was decided before, or nothing to tell
	}
	return decision, say, nil
}

// decision is what a delivery has come to.
func (x *delivery) decision(s protocol.Say) Decision {
	switch {
	case s.Code == protocol.NotLive:
		return DecisionOrphan
	case s.Code == protocol.Undecided && !x.config.Topic.Probed:
		return DecisionUnasked
	case s.Code == protocol.Undecided && x.finding == (Absent{}):
		return DecisionEarly
	case s.Code == protocol.Undecided:
		return DecisionUndecided
	case s.Code == protocol.Unchanged && x.first.Final(), s.Code != protocol.Changed && s.Code != protocol.Unchanged:
		return DecisionNone
	}
	switch state := x.row.State; {
	case state == storage.MessageDelivered || state == storage.MessageDeclined:
		return DecisionSettled
	case state == storage.MessageDead:
		return DecisionDead
	case x.machine.Evidence == protocol.NoOutcome && state == storage.MessagePending:
		return DecisionOffered
	case state == storage.MessageCancelled:
		return DecisionNone
	}
	return DecisionKept
}

// swept is what the sweep has made of a message.
func swept(state storage.MessageState) Decision {
	switch state {
	case storage.MessageUnknown:
		return DecisionParked
	case storage.MessageDead:
		return DecisionDead
	case storage.MessageCancelled:
		return DecisionAbandoned
	case storage.MessageDelivered, storage.MessageDeclined:
		return DecisionSettled
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced: // open
	}
	return DecisionNone
}

// Report counts what a run of the [Runner] did.
type Report struct {
	// Messages counts what was done to messages, and Records what was done to records of wrapped operations.
	Messages Counts `json:"messages"`
	Records  Counts `json:"records"`
}

// Counts are the decisions of a run about messages, or about records.
type Counts struct {
	// Offered messages got a wake-up.
	Offered int `json:"offered,omitempty"`
	// Settled messages are delivered or declined now.
	Settled int `json:"settled,omitempty"`
	// Completed records have the answer that was found.
	Completed int `json:"completed,omitempty"`
	// Freed records provably had no effect, and may be executed again.
	Freed int `json:"freed,omitempty"`
	// Parked messages and records are unknown now.
	Parked int `json:"parked,omitempty"`
	// Undecided ones are probed again later, including those whose absence proves nothing yet.
	Undecided int `json:"undecided,omitempty"`
	// Unasked ones have no Probe.
	Unasked int `json:"unasked,omitempty"`
	// Abandoned operations were cancelled because nobody had claimed their first message in time.
	Abandoned int `json:"abandoned,omitempty"`
	// Dead messages were given up.
	Dead int `json:"dead,omitempty"`
	// Reminded messages are dead for another day, and an operator was told so.
	Reminded int `json:"reminded,omitempty"`
	// Skipped ones needed nothing by the time they were read.
	Skipped int `json:"skipped,omitempty"`
	// Errors counts messages, records and listings that failed; each error is in the log.
	Errors int `json:"errors,omitempty"`
	// OtherRelease counts those of the Errors whose row another release wrote, and can deal with. They stay as they are.
	OtherRelease int `json:"other_release,omitempty"`
	// Unfinished says that the run reached its bound or its deadline; the next run continues there.
	Unfinished bool `json:"unfinished,omitempty"`
}

// add adds another queue's counts.
func (c *Counts) add(d Counts) {
	c.Offered += d.Offered
	c.Settled += d.Settled
	c.Completed += d.Completed
	c.Freed += d.Freed
	c.Parked += d.Parked
	c.Undecided += d.Undecided
	c.Unasked += d.Unasked
	c.Abandoned += d.Abandoned
	c.Dead += d.Dead
	c.Reminded += d.Reminded
	c.Skipped += d.Skipped
	c.Errors += d.Errors
	c.OtherRelease += d.OtherRelease
	c.Unfinished = c.Unfinished || d.Unfinished
}

// fail counts an error.
func (c *Counts) fail(err error) {
	c.Errors++
	foreign := errors.As(err, new(*TopicError)) || errors.As(err, new(*UnreadableError)) || errors.As(err, new(*idem.UnreadableError))
	if foreign && !errors.Is(err, errPanicked) {
		c.OtherRelease++
	}
}

func (c *Counts) count(decision Decision) {
	switch decision {
	case DecisionOffered:
		c.Offered++
	case DecisionSettled:
		c.Settled++
	case DecisionCompleted:
		c.Completed++
	case DecisionFreed:
		c.Freed++
	case DecisionParked:
		c.Parked++
	case DecisionEarly, DecisionUndecided, DecisionKept:
		c.Undecided++
	case DecisionUnasked:
		c.Unasked++
	case DecisionAbandoned:
		c.Abandoned++
	case DecisionDead:
		c.Dead++
	case DecisionReminded:
		c.Reminded++
	case DecisionNone, DecisionOrphan:
		c.Skipped++
	}
}
