package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// callMin is the shortest time in which a call is worth a try.
const callMin = time.Second

// retryAfterMax bounds what a provider may wish for.
const retryAfterMax = 24 * time.Hour

// call asks the provider once, unless it is too late for it, and draws the pause after an answer without evidence.
func (x *delivery) call(ctx context.Context, a protocol.Action) protocol.Input {
	watch := timers.Begin() // before the clock is read: what a freeze takes, it takes from the call
	timeout := min(x.cfg.CallTimeout, translation.TimeOf(a.Until).Sub(x.now()))
	if x.called = true; timeout < min(callMin, x.cfg.CallTimeout) {
		x.outcome = NotExecuted{Unsent: true, Cause: errors.New("outbox: not called: too little is left of the lease, or before the deadline")}
	} else {
		x.outcome = answered(x.callTopic(ctx, watch.Deadline(timeout)), x.machine.OpenBefore)
	}
	in := protocol.Input{What: protocol.Called, Outcome: outcomeOf(x.outcome)}
	if definite(x.outcome) {
		return in
	}
	attempts := x.row.Attempts + 1
	if in.Outcome == protocol.OutUncalled { // it counts as no attempt, and its pauses must grow all the same
		attempts = int(x.row.Epoch)
	}
	pause := backoff(attempts, x.cfg.BackoffMin, x.cfg.BackoffMax, x.random())
	if o, ok := x.outcome.(NotExecuted); ok {
		pause = max(pause, min(o.RetryAfter, retryAfterMax))
	}
	in.Backoff = translation.MillisOf(pause)
	x.log(ctx, levelInfo, "outbox.answered", x.row, "outcome", x.outcome.Name(), "cause", causeOf(x.outcome))
	return in
}

func (x *delivery) callTopic(caller context.Context, deadline time.Time) (outcome Outcome) {
	ctx, cancel := context.WithDeadline(caller, deadline)
	defer cancel()
	if err := ctx.Err(); err != nil { // a process that was frozen until now says nothing of the provider
		return NotExecuted{Unsent: true, Cause: fmt.Errorf("outbox: not called: %w", err)}
	}
	began := x.desk.now()
	defer func() { x.learn(caller, began, errors.Is(ctx.Err(), context.DeadlineExceeded)) }()
	ctx, span := trace.Begin(ctx, nil, spanCall, trace.Options{Kind: trace.Client})
	defer func() { x.endCall(span, outcome) }()
	defer func() {
		if p := recover(); p != nil {
			x.log(ctx, levelError, "outbox.panic", x.row, "stack", string(debug.Stack()))
			outcome = Ambiguous{Cause: fmt.Errorf("outbox: call panicked with a %T", p)}
		}
	}()
	switch outcome := x.topic.Call(ctx, x.row).(type) {
	case Delivered, Declined:
		if err := named(outcome); err != nil {
			return Ambiguous{Cause: err}
		}
		return outcome
	case NotExecuted:
		x.unjudged(caller, outcome)
		return outcome
	case Ambiguous, Refused:
		return outcome
	default:
		return Ambiguous{Cause: fmt.Errorf("outbox: call answered with a %T", outcome)}
	}
}

// unjudged tells of a call that counts as no attempt: only the message's age ends such calls, so that an operator has to hear while there
// is time. A call that did not leave because its caller has gone says nothing of the provider.
func (x *delivery) unjudged(caller context.Context, o NotExecuted) {
	switch {
	case o.Unauthorized:
		x.log(caller, levelError, "outbox.unauthorized", x.row, "cause", o.Cause)
	case o.Unsent && caller.Err() == nil:
		x.log(caller, levelError, "outbox.unsent", x.row, "cause", o.Cause)
	}
}

// probe asks the provider what became of the message.
func (x *delivery) probe(ctx context.Context) (in protocol.Input, err error) {
	log := func(level slog.Level, event string, args ...any) { x.log(ctx, level, event, x.row, args...) }
	x.asked = x.now()
	x.finding, err = x.probed(ctx, log, evidenced, func(ctx context.Context) Finding {
		return x.tracedProbe(ctx, "", func(ctx context.Context) Finding { return x.topic.Probe(ctx, x.row) })
	})
	if err != nil {
		return in, err
	}
	if found, ok := x.finding.(Found); ok {
		x.outcome = found.Outcome
	}
	vain := x.asked.Sub(x.provable())
	return protocol.Input{What: protocol.Probed, Outcome: findingOf(x.finding), Backoff: translation.MillisOf(x.probePause(vain))}, nil
}

// evidenced says why a finding is no evidence about a message.
func evidenced(finding Finding) error {
	found, ok := finding.(Found)
	if ok && definite(found.Outcome) {
		return named(found.Outcome)
	}
	if ok {
		return fmt.Errorf("outbox: probe found a %T, which is not evidence", found.Outcome)
	}
	return fmt.Errorf("outbox: probe answered with a %T", finding)
}

// probePause is the pause before the next probe of what has been open for so long: exponential backoff with jitter, within
// ProbeBackoffMin and ProbeBackoffMax.
func (d *desk) probePause(open time.Duration) time.Duration {
	least, most := d.cfg.ProbeBackoffMin, d.cfg.ProbeBackoffMax
	high := min(2*min(max(open, least), most), most)
	return between(max(least, high/2), high, d.random())
}

// ask asks the topic's Settle what the machine's evidence means, or that nothing was executed. The answer is kept for the
// write that follows.
func (x *delivery) ask(ctx context.Context, asked protocol.Asked) protocol.Meant {
	x.meant = asked
	said, err := x.topic.ask(x.row, x.meaning(asked))
	if err == nil {
		err = x.usable(said, asked)
	}
	if err != nil {
		x.cause = err
		return protocol.Meant{Fails: true}
	}
	x.said = said
	meant := protocol.Meant{Continues: said.Next != nil, Undoes: said.Next != nil && said.Next.Undoes, Writes: len(said.Writes) > 0}
	meant.Left = meant.Continues && x.pauses != nil && !x.pauses.admits(x.row.Tenant, said.Next.Topic, x.desk.now())
	return meant
}

// meaning is the outcome that a question is about.
func (x *delivery) meaning(asked protocol.Asked) Outcome {
	if asked == protocol.AskNotExecuted {
		return NotExecuted{}
	}
	return x.evidence()
}

// evidence is the definite answer that the machine has: one that came just now, or one that the message keeps.
func (x *delivery) evidence() Outcome {
	if x.outcome != nil && outcomeOf(x.outcome) == x.machine.Evidence {
		return x.outcome
	}
	if e := x.machine.Evidence; e == protocol.OutDeclined || e == protocol.NoOutcome && x.row.KeptDelivered == nil {
		return Declined(keptIn(x.row.KeptDeclined))
	}
	return Delivered(keptIn(x.row.KeptDelivered))
}

// usable says why an answer of Settle can't be stored.
func (x *delivery) usable(said Settlement, asked protocol.Asked) error {
	m := x.row
	switch {
	case said.Next != nil:
		return x.followable(*said.Next, asked)
	case m.Detached || asked == protocol.AskNotExecuted:
		return nil
	case said.Response.Status < 200 || said.Response.Status > 599:
		return fmt.Errorf("outbox: settle of %s answered with status %d and no next message", x.topic.Name, said.Response.Status)
	}
	return nil
}

// followable says why a message can't be the next of the chain.
func (x *delivery) followable(next Next, asked protocol.Asked) error {
	m := x.row
	switch _, known := x.topics.byName[next.Topic]; {
	case m.Detached:
		return errors.New("outbox: the operation is already complete, so its settle can't send a next message")
	case !known:
		return &TopicError{next.Topic}
	case len(next.Payload) > storage.PayloadBytesMax:
		return fmt.Errorf("outbox: settle of %s sends a payload of %d bytes, at most %d leave room for the provider's answer", m.Topic, len(next.Payload), storage.PayloadBytesMax)
	case m.Index >= ChainMax:
		return fmt.Errorf("outbox: a chain of more than %d messages", ChainMax)
	case asked == protocol.AskNotExecuted && (m.Index == 1 || m.Undoes):
		return fmt.Errorf("outbox: settle of %s sends a message, but nothing was executed and there is nothing to compensate", m.Topic)
	case asked == protocol.AskDeclined && m.Index == 1 && next.Undoes:
		return fmt.Errorf("outbox: settle of %s undoes an earlier message, but it was declined and there is none", m.Topic)
	}
	return nil
}

// keptOf is what a message keeps of evidence that can't be settled.
func keptOf(o Outcome) *storage.Kept {
	kept := storage.Kept{}
	switch o := o.(type) {
	case Delivered:
		kept = storage.Kept(o)
	case Declined:
		kept = storage.Kept(o)
	}
	kept.Evidence = kept.Evidence[:min(len(kept.Evidence), EvidenceBytesMax)]
	return &kept
}

func keptIn(kept *storage.Kept) storage.Kept {
	if kept == nil {
		return storage.Kept{}
	}
	return *kept
}

// EvidenceBytesMax bounds the evidence that a message keeps, in bytes (72 KiB); of longer evidence its first part is kept. A delivery
// and a decline that contradict each other fit into one item beside any payload ([storage.PayloadBytesMax]), in whatever order they
// are written: who keeps one need not know of the other.
const EvidenceBytesMax = 72 << 10
