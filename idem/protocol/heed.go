package protocol

// Heed: a delivery is told what was lost where that counts, and leaves to one that is told what nobody may do without it.

// Heeds says that what was lost counts for what the delivery makes of the input: its driver reads it first, after its clock, and says it in
// Input.Lost, or in Input.Unread that it can't be read. So what a freeze hides is heeded after the freeze.
func (d Delivery) Heeds(in Input, c *Config) bool {
	switch {
	case d.Held.foreign(c) || in.Reply.Msg.foreign(c):
		return false
	case in.What == Called || in.What == Answered:
		return d.heedsAgain(in, c) && !c.off(LossUnheeded)
	}
	return d.judges(in) && d.heedsFirst()
}

// judges says that the input has the machine judge a row, or that absence was found. A row that this delivery has written was judged before
// that, and of a message that has ended, or after an alert, nothing is to be decided. A person's evidence that could not be settled is judged
// anew before it is kept, because keeping is tried for longer.
func (d Delivery) judges(in Input) bool {
	known := in.What == Begin && d.Held.State != NoMessage
	absent := in.What == Probed && in.Outcome == OutAbsent
	m := in.Reply.Msg
	found := d.Step != Alerting && m.State != NoMessage && !m.State.Final() && m.Revision != d.At.W.Msg.Revision
	unsettled := d.Step == Settling && !d.Seen.None() && in.What == Replied && in.Reply.Code != OK && m.State == NoMessage && in.Now >= d.At.Until
	return known || absent || found || unsettled
}

// heedsFirst says that what was lost counts from the beginning: it decides whether something may be called, or counts as never called, and
// which attempt a webhook's decline is about. So does it where a person decided about what they saw. Other evidence is taken whatever was
// lost, unless its chain goes on: also what a call or a probe has brought by now. Carry has inserted the message itself, and Remind decides
// nothing.
func (d Delivery) heedsFirst() bool {
	switch d.Errand {
	case Judgement, Close, Redrive:
		return true
	case Carry, Remind:
		return false
	case Tidings:
		return d.Evidence == OutDeclined
	case Wake, Offer, Question:
	}
	return d.Evidence == NoOutcome
}

// heedsAgain says that what was lost since the message was judged counts, because this process may have been frozen in its call, or in the
// topic's Settle. Another one may have settled the message, and called the next: that counts where the delivery ends what was not executed,
// or goes on with the chain. So does an attempt that followed a call which outlived its claim, unless the provider has executed that one, and
// one that a webhook's decline is not about, or that a person knew nothing of.
func (d Delivery) heedsAgain(in Input, c *Config) bool {
	keyless := !c.Topic.KeysHonoured
	late := d.Overdue(in.Now, c) && (d.Errand == Wake || d.Errand == Carry || d.Errand == Tidings)
	if in.What == Called {
		return late && in.Outcome != OutDelivered && (keyless || in.Outcome != OutDeclined)
	}
	return !d.Seen.None() || in.Meant.Continues || d.Asked == AskNotExecuted || late && keyless && d.Asked == AskDeclined
}

// heed takes what the driver says, and returns with what the delivery ends; 0 is that it goes on. Where what was lost can't be read nothing is
// judged, and who sent the evidence, or decided, comes again. What a call of its own has brought is kept, or given back.
func (d Delivery) heed(in Input, c *Config) (Delivery, SayCode) {
	d.Lost, d.Unread = max(d.Lost, in.Lost, d.SeenLost), in.Unread // a reading may be older than what a person knew
	judged := in.What != Called && in.What != Answered
	switch {
	case !d.Unread && !d.Seen.None() && max(d.Lost, c.Topic.RefuseBefore) > d.SeenLost && !c.off(NoSeenLoss):
		return d, Stale
	case !d.Unread:
	case judged || d.outside():
		return d, Unavailable
	case d.buries(in): // not as if nothing had been lost
		d.Lost = max(d.Lost, in.Now)
	}
	if c.off(UnreadEnds) {
		d.Unread = false
	}
	return d, 0
}

// outside says that whoever sent the evidence, or decided, learns that nothing was done, and comes again. A close needs no mention: failNow
// refuses it.
func (d Delivery) outside() bool {
	return d.Errand == Tidings || d.Errand == Judgement || d.Errand == Redrive
}

// buries says that a decline goes to a person now, and is not settled later by one that can read what was lost: what was to be undone stands,
// or the topic has no answer for it.
func (d Delivery) buries(in Input) bool {
	if in.What == Called {
		return in.Outcome == OutDeclined && d.Held.Undoes
	}
	return in.Meant.Fails && d.Asked == AskDeclined
}

// Heeding is what the machine depends on after all that it was told.
func (d Delivery) Heeding(c *Config) Config {
	told := *c
	told.Topic.RefuseBefore = max(told.Topic.RefuseBefore, d.Lost)
	return told
}
