package outbox

// What was lost: when a delivery reads it, and what it leaves to one that can.

import (
	"context"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
)

// heed has the machine judge by the later of Config.RefuseBefore and the table's.
func (x *delivery) heed() {
	x.config.Topic.RefuseBefore = max(x.config.Topic.RefuseBefore, translation.InstantOf(x.refuseBefore))
}

// heeds says that what was lost counts from the beginning: it decides whether something may be called, or counts as never
// called, and which attempt a webhook's decline is about. Other evidence is taken whatever was lost, unless its chain goes on: also what a
// call or a probe has brought by now. Carry has inserted the message itself, and Remind decides nothing.
func heeds(d protocol.Delivery) bool {
	switch d.Errand {
	case protocol.Judgement, protocol.Carry, protocol.Remind:
		return false
	case protocol.Tidings:
		return d.Evidence == protocol.OutDeclined
	case protocol.Wake, protocol.Offer, protocol.Question, protocol.Close, protocol.Redrive:
	}
	return d.Evidence == protocol.NoOutcome
}

// judges says that the machine judges a row by what it is told, or that absence was found. A row that this delivery has written, as one that
// it has claimed without hearing of it, was judged before that.
func (x *delivery) judges(in protocol.Input) bool {
	absent := in.What == protocol.Probed && in.Outcome == protocol.OutAbsent
	found := in.Reply.Msg.State != protocol.NoMessage && in.Reply.Msg.Revision != x.machine.At.W.Msg.Revision
	return in.What == protocol.Begin || absent || found
}

// heedLoss reads until when data may have been lost.
func (x *delivery) heedLoss(ctx context.Context) error {
	before, err := x.loss.At(ctx)
	if err == nil {
		x.refuseBefore, x.unread = before, nil
		x.heed()
	}
	return err
}

// heedFirst reads what was lost before the machine judges by it, and after the clock: what a freeze hides is heeded after it.
//
// If what counts after the call can't be read, who sent the evidence, or decided, comes again. What has come to nothing is ended by one that
// can, and evidence of this delivery is kept; what is left of its caller's time is for that.
func (x *delivery) heedFirst(ctx context.Context, in protocol.Input) error {
	switch {
	case x.foreign != nil:
		return nil
	case x.judges(in) && heeds(x.machine):
		return x.heedLoss(ctx)
	case !x.heedsAgain(in):
		return nil
	}
	reading := context.WithoutCancel(ctx)
	if left, bounded := remaining(ctx); bounded {
		var cancel context.CancelFunc
		reading, cancel = context.WithTimeout(reading, left/4)
		defer cancel()
	}
	x.unread = x.heedLoss(reading)
	switch {
	case x.unread == nil:
	case fromOutside(x.machine.Errand):
		return x.unread
	case x.buries(in): // not as if nothing had been lost
		x.config.Topic.RefuseBefore = max(x.config.Topic.RefuseBefore, in.Now)
	}
	return nil
}

// buries says that a decline goes to a person now, and is not settled later by one that can read what was lost: what was to be undone stands,
// or the topic has no answer for it.
func (x *delivery) buries(in protocol.Input) bool {
	if in.What == protocol.Called {
		return in.Outcome == protocol.OutDeclined && x.machine.Held.Undoes
	}
	return in.Meant.Fails && x.machine.Asked == protocol.AskDeclined
}

// heedsAgain says that what was lost since the message was judged counts, because this process may have been frozen in its call, or in the
// topic's Settle. Another one may have settled the message, and called the next: that counts where the delivery ends what was not executed,
// or goes on with the chain. So does an attempt that followed a call which outlived its claim, unless the provider has executed that one, and
// one that a webhook's decline is not about. A person decides about what they saw.
func (x *delivery) heedsAgain(in protocol.Input) bool {
	d, keyless := x.machine, !x.config.Topic.KeysHonoured
	late := d.Overdue(in.Now, &x.config) && (d.Errand == protocol.Wake || d.Errand == protocol.Carry || d.Errand == protocol.Tidings)
	switch in.What {
	case protocol.Called:
		return late && in.Outcome != protocol.OutDelivered && (keyless || in.Outcome != protocol.OutDeclined)
	case protocol.Answered:
		return in.Meant.Continues || d.Asked == protocol.AskNotExecuted || late && keyless && d.Asked == protocol.AskDeclined
	case protocol.Begin, protocol.Replied, protocol.Probed, protocol.Alerted, protocol.Admitted, protocol.TurnedAway, protocol.HandlerEnded, protocol.Woke:
	}
	return false
}

// fromOutside says that whoever sent the evidence, or decided, learns that nothing was done, and comes again.
func fromOutside(e protocol.MessageErrand) bool {
	return e == protocol.Tidings || e == protocol.Judgement || e == protocol.Redrive || e == protocol.Close
}

// ends says that a write goes on with the chain, or ends what was not executed, or was declined: nobody may who does not know what was lost.
func ends(s protocol.Step, w protocol.Write) bool {
	declines := s == protocol.Settling && w.Msg.State == protocol.Declined
	return w.Next.State != protocol.NoMessage || s == protocol.Failing || declines || s == protocol.Writing && w.Msg.State == protocol.Dead
}
