package outbox

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Reconciler decides what is unknown: it asks the provider by the downstream key, through the topic's Probe, and settles
// what it finds, offers what provably never happened, and backs off from the rest until it is dead. It never causes an
// effect. Its cost is proportional to what is unknown and due, not to the table. Any number of reconcilers may run beside
// each other, and beside workers and sweeps: the fences decide.
type Reconciler struct {
	*desk
	rounds *rounds
}

// NewReconciler returns a reconciler, or an [*idem.ConfigError] for an argument that is nil.
func NewReconciler(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters) (*Reconciler, error) {
	d, err := newDesk(store, topics, wakeUps, deadLetters)
	if err != nil {
		return nil, err
	}
	look := d.cfg.StoreTimeout + d.cfg.CallTimeout + d.cfg.SettleMargin
	return &Reconciler{desk: d, rounds: newRounds(d, storage.QueueUnknown, look, 0, "outbox.reconcile_failed")}, nil
}

// Decision is what became of a message that was unknown.
type Decision string

// The decisions of a [Reconciler].
const (
	// DecisionNone: the message is not unknown, or somebody else decided it meanwhile.
	DecisionNone Decision = "none"
	// DecisionOrphan: there is no such message, and evidence for it: a loss of data, or somebody else's. The evidence must
	// come again, or be looked at by a person; it must not be remembered as taken.
	DecisionOrphan Decision = "orphan"
	// DecisionKept: the evidence is on the message, and could not be settled yet, or is not enough to settle it.
	DecisionKept Decision = "kept"
	// DecisionSettled: the provider has it, or declined it; the operation goes on or is completed.
	DecisionSettled Decision = "settled"
	// DecisionOffered: it provably never happened; the same message is offered again with the same key.
	DecisionOffered Decision = "offered"
	// DecisionEarly: nothing was found, which proves nothing yet.
	DecisionEarly Decision = "early"
	// DecisionUndecided: the provider's answer decides nothing; it is asked again later.
	DecisionUndecided Decision = "undecided"
	// DecisionUnasked: the topic has no Probe. A webhook or an operator must decide.
	DecisionUnasked Decision = "unasked"
	// DecisionDead: it stayed undecided for too long, or what was found could not be settled; an operator must decide.
	DecisionDead Decision = "dead"
)

// ReconcileReport counts what a run of the reconciler decided.
type ReconcileReport struct {
	// Settled messages are delivered or declined now.
	Settled int `json:"settled"`
	// Offered messages provably had no effect, and got a wake-up.
	Offered int `json:"offered"`
	// Undecided messages are asked about again later, those whose absence proves nothing yet included.
	Undecided int `json:"undecided"`
	// Unasked messages have no Probe.
	Unasked int `json:"unasked"`
	// Dead messages were given up, their records still pending.
	Dead int `json:"dead"`
	// Skipped messages needed nothing by the time they were read.
	Skipped int `json:"skipped"`
	// Errors counts messages, and listings, that met one; each is in the log.
	Errors int `json:"errors"`
	// Unfinished says that the run met its bound or its deadline; the next one goes on there.
	Unfinished bool `json:"unfinished"`
}

func (r *ReconcileReport) count(decision Decision) {
	switch decision {
	case DecisionSettled:
		r.Settled++
	case DecisionOffered:
		r.Offered++
	case DecisionEarly, DecisionUndecided, DecisionKept:
		r.Undecided++
	case DecisionUnasked:
		r.Unasked++
	case DecisionDead:
		r.Dead++
	case DecisionNone, DecisionOrphan:
		r.Skipped++
	}
}

// Run asks once about everything that is unknown and due, within Config.SweepMax and the context's deadline; the next run
// goes on where it stopped. It returns an error only where listing failed for every shard.
func (r *Reconciler) Run(ctx context.Context) (ReconcileReport, error) {
	var report ReconcileReport
	unfinished, failed, err := r.rounds.run(ctx, func(id idem.MessageID) {
		decision, err := r.reconcile(ctx, id, true)
		if err != nil {
			report.Errors++
			if !r.unknown(ctx, id, err) {
				r.cfg.Logger.ErrorContext(ctx, "outbox.reconcile_failed", "message", id, "error", err)
			}
			return
		}
		report.count(decision)
	})
	report.Unfinished = unfinished
	report.Errors += failed
	return report, err
}

// Reconcile asks about one message now, if it is unknown, due or not.
//
// Trouble with the provider is not an error. Errors: trouble with the store; [ErrNoTime]; the context's, where it ended
// before the provider answered; an [*UnreadableError] or a [*TopicError] for what this release can't judge.
func (r *Reconciler) Reconcile(ctx context.Context, id idem.MessageID) (Decision, error) {
	return r.reconcile(ctx, id, false)
}

// Settle ends a message with evidence that came by another way than its call: [Delivered] or [Declined], from the
// provider's own webhook. It does what the worker would have done, from any state that is not final, and is harmless to
// repeat. Where the provider honours no keys and the message was claimed more than once, nobody knows which attempt a
// decline is about: it is kept, with an alarm. DecisionNone: the message is final already; evidence that contradicts what
// is final is an alarm.
//
// Errors: as with [Reconciler.Reconcile], and one for an outcome that is no evidence.
func (r *Reconciler) Settle(ctx context.Context, id idem.MessageID, o Outcome) (Decision, error) {
	if !definite(o) {
		return DecisionNone, fmt.Errorf("outbox: a %T is no evidence", o)
	}
	x, err := r.newDelivery(protocol.Tidings, id)
	if err != nil {
		return DecisionNone, err
	}
	x.outcome, x.machine.Evidence = o, outcomeOf(o)
	decision, _, err := r.decide(ctx, x)
	return decision, err
}

func (r *Reconciler) reconcile(ctx context.Context, id idem.MessageID, onlyDue bool) (Decision, error) {
	x, err := r.newDelivery(protocol.Question, id)
	if err != nil {
		return DecisionNone, err
	}
	x.machine.OnlyDue = onlyDue
	decision, _, err := r.decide(ctx, x)
	return decision, err
}

// decide runs a delivery that brings or seeks evidence.
func (d *desk) decide(ctx context.Context, x *delivery) (Decision, protocol.Say, error) {
	say, err := x.run(ctx)
	if err != nil {
		return DecisionNone, say, err
	}
	decision := x.decision(say)
	switch m := x.row; decision {
	case DecisionSettled:
		if x.first == storage.MessageUnknown || x.first == storage.MessageDead {
			d.log(ctx, levelInfo, "idempotency.reconcile.resolved", m, "outcome", x.evidence().Name())
		}
	case DecisionUnasked:
		d.alarm(ctx, "idempotency.reconcile.failed", m, "outcome", "unasked")
	case DecisionDead:
		d.log(ctx, levelWarn, "idempotency.reconcile.failed", m, "outcome", m.LastOutcome)
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
