package protocol

// MessageErrand is why somebody comes to a message.
type MessageErrand uint8

// The errands.
const (
	Wake      MessageErrand = iota + 1 // a worker: claim it if it is due, and call
	Offer                              // a sweep: as Wake, but what can be claimed is left to a worker
	Carry                              // inline delivery: the commit has claimed it
	Question                           // a reconciler: ask what became of what is unknown
	Tidings                            // a webhook, with evidence
	Judgement                          // an operator, with evidence about what they saw
	Close                              // an operator ends what did not happen
	Redrive                            // an operator starts it anew
	Remind                             // a sweep: tell an operator of what is dead
)

// Step is where a delivery is.
type Step uint8

// The steps of a delivery.
const (
	Opening  Step = iota + 1 // reads the message
	Claiming                 // takes the right to call
	Calling                  // calls the provider
	Asking                   // asks the topic what an outcome means
	Settling                 // ends the message with evidence
	Keeping                  // keeps evidence that can't be settled
	Failing                  // ends the message without an effect, and its record
	Writing                  // any other change of the message alone
	Probing                  // asks the provider what became of it
	Alerting                 // tells an operator of what only they can end
	Over
)

// Outcome is what a provider's answer means.
type Outcome uint8

// The outcomes of a call or a probe, and of evidence from elsewhere.
const (
	NoOutcome      Outcome = iota
	OutDelivered           // definite: it has it
	OutDeclined            // definite: it says no
	OutNotExecuted         // proof that this call did nothing
	OutUncalled            // proof that this call did nothing, and that its message was not judged: it never left, or its caller was refused
	OutAmbiguous           // anything may have happened
	OutRefused             // proof that this call did nothing, and that another would not either
	OutRefusedOpen         // refused, without proof that nothing happened
	OutAbsent              // of a probe: there is nothing
	OutUnclear             // of a probe: its answer decides nothing
)

// definite says that the outcome is evidence.
func (o Outcome) definite() bool { return o == OutDelivered || o == OutDeclined }

// kept is the bit that keeps it.
func (o Outcome) kept() Kept {
	if o == OutDelivered {
		return KeptDelivered
	}
	return KeptDeclined
}

// Asked is what the topic's Settle is asked.
type Asked uint8

// The questions.
const (
	NotAsked Asked = iota
	AskDelivered
	AskDeclined
	AskNotExecuted
)

// Meant is what the topic's Settle answered.
type Meant struct {
	// Fails says that it has no answer: an error, a panic, or one that can't be stored.
	Fails bool
	// Continues says that another message follows instead of the final answer.
	Continues bool
	// Undoes says that it undoes an earlier phase. After one of which nothing was executed nothing else can follow.
	Undoes bool
	// Writes says that business writes ride along.
	Writes bool
	// Left says that the message that follows is a worker's, although this delivery might claim it for its request.
	Left bool
}

// Alarm is what an operator must hear of, as bits.
type Alarm uint8

// The alarms of a delivery.
const (
	AlarmGone        Alarm = 1 << iota // evidence for a message that is not there
	AlarmLate                          // evidence for a message that was given up
	AlarmContradicts                   // evidence that contradicts what is kept, settled or written as not executed
	AlarmUnsettled                     // evidence that could not be settled: the message is dead
	AlarmUnfailed                      // the record could not be failed with its message
	AlarmWeak                          // a decline of which nobody knows which attempt it is about
	AlarmRefused                       // the store refuses, again, to settle evidence that was kept, or to end what was given up
)

// Delivery is one look at a message and everything that follows from it.
type Delivery struct {
	// Step is what the delivery waits for, and Errand why it was begun.
	Step   Step
	Errand MessageErrand
	// Seed is random: the owner of a claim, revisions and tokens are derived from it.
	Seed ID
	// Seen is the revision that a person decided about; None where nobody did. SeenLost is until when data may have been lost, as it was
	// known then: of what was lost since they know nothing, although the row may be as it was.
	Seen     ID
	SeenLost Instant
	// Evidence is the definite outcome that is to be settled, and Epoch and Owner the claim whose call brought it, None where
	// it came by another way.
	Evidence Outcome
	Epoch    uint32
	Owner    ID

	// OpenBefore says that another call was open when the message was claimed, OnlyDue that Question leaves what is not due,
	// Onward that a settlement claims the next message of the chain for the same request, as Carry always does, Alone that the
	// record is at its end: the message ends without it; Checked that the settlement checks the record.
	OpenBefore, OnlyDue, Onward, Alone, Checked bool
	// Meant is what the topic's Settle answered, and Asked what it was asked.
	Meant Meant
	Asked Asked
	// Alarms are what an operator must hear of.
	Alarms Alarm
	// Loops counts judgements of the message, Writes its revisions, and Sends transactions.
	Loops, Writes, Sends uint8
	// Then is what the delivery ends with once its write is done.
	Then SayCode
	// Becomes is what evidence that is kept makes of the message; NoMessage where it stays what it is.
	Becomes MessageState
	// AskedAt is when the provider was asked, Deadline when the caller's time is over; 0 is never.
	AskedAt, Deadline Instant
	// Lost is until when data may have been lost, by what the driver has said; Unread that it could not say it when that counted last.
	Lost   Instant
	Unread bool
	// Held is the message as it was last read or written.
	Held Message
	// Ends is what the message becomes where it fails.
	Ends Message
	// At is the write that is being tried.
	At Attempt

	// Outlives says that the process goes on when its caller's time is over.
	Outlives bool
}

// judgementsMax bounds how often one delivery judges a message that others keep changing.
const judgementsMax = 8

// Next is the whole protocol of a message.
func (d Delivery) Next(in Input, c *Config) (Delivery, Action) {
	if d.Heeds(in, c) {
		var ends SayCode
		if d, ends = d.heed(in, c); ends != 0 {
			d.Alarms &^= AlarmWeak // whoever comes next judges it
			return d.over(ends)
		}
	}
	if d.Lost <= c.Topic.RefuseBefore {
		return d.next(in, c)
	}
	told := d.Heeding(c)
	return d.next(in, &told)
}

func (d Delivery) next(in Input, c *Config) (Delivery, Action) {
	switch {
	case in.What == Begin:
		return d.begin(in, c)
	case in.What == Called:
		return d.called(in, c)
	case in.What == Probed:
		return d.probed(in, c)
	case in.What == Answered:
		return d.answered(in, c)
	case in.What == Alerted:
		return d.alerted(in, c)
	case d.Step == Opening:
		if in.Reply.Code != OK {
			return d.over(Unavailable)
		}
		return d.judge(in.Reply.Msg, in.Now, c)
	}
	var v Verdict
	if d.At, v = d.At.Judge(in.Reply, in.Now, c); v == Again {
		return d, Action{Do: Send, Write: d.At.W, Until: d.At.Until, Pause: d.At.Tries}
	}
	if m := in.Reply.Msg; v == Conflict && m.foreign(c) && !d.own(m) { // it was another's while this delivery was under way
		d.Held = m
		return d.over(OtherRelease)
	}
	switch d.Step {
	case Claiming:
		return d.claimDecided(v, in, c)
	case Settling:
		return d.settleDecided(v, in, c)
	case Keeping:
		return d.keepDecided(v, in, c)
	case Failing:
		return d.failDecided(v, in, c)
	case Alerting:
		return d.alertDecided(v)
	case Opening, Calling, Asking, Writing, Probing, Over: // only Writing waits for a verdict
	}
	return d.writeDecided(v, in, c)
}

func (d Delivery) begin(in Input, c *Config) (Delivery, Action) {
	d.Deadline = in.Deadline
	switch {
	case d.Held.foreign(c):
		return d.over(OtherRelease)
	case d.Errand == Carry:
		return d.call(in.Now, c)
	}
	d.Step = Opening
	if d.Held.State != NoMessage { // it came with the wake-up; every write is fenced by what was seen
		return d.judge(d.Held, in.Now, c)
	}
	return d, Action{Do: Read}
}

// over ends the delivery.
func (d Delivery) over(code SayCode) (Delivery, Action) {
	d.Step = Over
	return d, Action{Do: Tell, Say: Say{Code: code, Op: d.Held.Op, Message: d.Held, Alarms: d.Alarms}}
}

// send freezes a write and sends it for the first time.
func (d Delivery) send(s Step, w Write, until Instant) (Delivery, Action) {
	d.Writes++
	w.Msg.Revision = d.Seed.Plus(uint64(d.Writes))
	if w.RecAs != Leave && w.RecAs != Check {
		w.Rec.Revision = w.Msg.Revision
	}
	if d.Deadline != 0 {
		until = min(until, d.Deadline)
	}
	d.Step, d.At = s, Attempt{W: w, Until: until, Persists: s == Keeping || s == Settling}
	return d, Action{Do: Send, Write: w, Until: until}
}

// put replaces the whole message where it still is what was seen. Nobody gives up what may have been executed before a loss that nobody
// can read.
func (d Delivery) put(next Message, now Instant, c *Config) (Delivery, Action) {
	if d.Unread && next.State == Dead {
		return d.over(Unavailable)
	}
	return d.send(Writing, Write{MsgIf: seenMessage(d.Held, c), MsgAs: Put, Msg: next}, now+c.Topic.SettleFor)
}

// postpone changes nothing but when somebody looks again.
func (d Delivery) postpone(at, now Instant, c *Config) (Delivery, Action) {
	next := d.Held
	next.LookAt, d.Then = at, Undecided
	return d.send(Writing, Write{MsgIf: seenMessage(d.Held, c), MsgAs: Postpone, Msg: next}, now+c.Topic.SettleFor)
}

// own says that the row is what this delivery wrote last.
func (d Delivery) own(m Message) bool {
	return m.State != NoMessage && m.Revision == d.At.W.Msg.Revision
}

// again judges what others have made of the message.
func (d Delivery) again(m Message, now Instant, c *Config) (Delivery, Action) {
	if !d.Seen.None() {
		d.Held = m
		return d.over(Stale)
	}
	if d.Loops++; d.Loops >= judgementsMax {
		return d.over(Unavailable)
	}
	return d.judge(m, now, c)
}

// judge says what the errand makes of the message as it is.
func (d Delivery) judge(m Message, now Instant, c *Config) (Delivery, Action) {
	d.Held = m
	switch {
	case m.foreign(c):
		return d.over(OtherRelease)
	case !d.Seen.None() && m.Revision != d.Seen:
		return d.over(Stale)
	}
	switch d.Errand {
	case Wake, Offer, Carry:
		return d.woken(now, c)
	case Question:
		return d.question(now, c)
	case Tidings:
		return d.tidings(now, c)
	case Judgement:
		if m.State != InDoubt && m.State != Dead && m.State != Evidenced {
			return d.over(Inadmissible)
		}
		return d.settle(now, c)
	case Close:
		return d.closing(now, c)
	case Remind:
		return d.remind(now, c)
	case Redrive: // below
	}
	return d.redrive(now, c)
}

// woken does what a wake-up asks for.
func (d Delivery) woken(now Instant, c *Config) (Delivery, Action) {
	m := d.Held
	switch {
	case m.State != Due && m.State != Claimed && m.State != Evidenced:
		if m.State.Final() {
			d.Alarms &^= AlarmWeak // somebody has decided meanwhile
		}
		return d.over(Quiet)
	case now < m.dueAt():
		return d.over(Busy)
	case m.State == Evidenced && !c.off(KeptIsCalled):
		return d.settleKept(now, c)
	case m.Sealed:
		return d.giveUp(now, c)
	case m.Abandonable(c) && now >= m.began(c)+c.Topic.AbandonAfter:
		return d.fail(cancel(m, now), now, c)
	case !m.offerable(now, c):
		return d.put(park(m, now, c), now, c)
	case m.over(now, c):
		return d.giveUp(now, c)
	case d.Errand == Offer:
		return d.over(Vacant)
	}
	d.OpenBefore = m.openSince(c) != 0
	next := claim(m, d.Seed, now, c)
	return d.send(Claiming, Write{MsgIf: seenMessage(m, c), MsgAs: Put, Msg: next}, next.Lease-c.Topic.SettleMargin)
}

// giveUp ends the attempts. What is open is left to probes, where there are any. Else it is dead; its record fails only
// where no call is open, and never because an undoing could not be done.
func (d Delivery) giveUp(now Instant, c *Config) (Delivery, Action) {
	m := d.Held
	open := m.openSince(c) != 0
	switch {
	case open && c.Topic.Probed && !m.Sealed:
		return d.put(park(m, now, c), now, c)
	case open || m.Undoes && !c.off(UndoFails):
		return d.put(bury(m, now, c), now, c)
	}
	return d.fail(bury(m, now, c), now, c)
}

// question asks the provider about what is unknown.
func (d Delivery) question(now Instant, c *Config) (Delivery, Action) {
	m := d.Held
	switch {
	case m.State == Evidenced && (!d.OnlyDue || now >= m.LookAt):
		return d.settleKept(now, c)
	case m.State != InDoubt || d.OnlyDue && now < m.LookAt:
		return d.over(Quiet)
	case m.Sealed:
		return d.put(bury(m, now, c), now, c)
	case !c.Topic.Probed:
		return d.alert(Undecided)
	}
	d.Step, d.AskedAt = Probing, now
	return d, Action{Do: Probe}
}

// tidings settle whatever is not final.
func (d Delivery) tidings(now Instant, c *Config) (Delivery, Action) {
	switch m := d.Held; {
	case m.State == NoMessage:
		d.Alarms |= AlarmGone
		return d.over(NotLive)
	case m.State.Final():
		return d.settledAlready(now, c)
	case d.weak(c):
		d.Alarms |= AlarmWeak
		return d.keepBeside(now, c)
	}
	return d.settle(now, c)
}

// weak says that nobody knows which attempt a decline is about, where the provider would have executed each. Of what was
// created before a loss of data attempts may be missing, whatever was proven absent since.
func (d Delivery) weak(c *Config) bool {
	return d.Evidence == OutDeclined && d.Owner.None() && d.Held.ambiguous(c)
}

// strayed says that this delivery woke after its own claim's time, that data was lost meanwhile, and that a decline says nothing therefore:
// another attempt may have followed, been executed, and been lost. Within that time nobody else could have called.
func (d Delivery) strayed(now Instant, c *Config) bool {
	own := d.Errand == Wake || d.Errand == Carry
	return own && d.Evidence == OutDeclined && d.Overdue(now, c) && d.Held.Doubted(c) && !c.off(StrayedSettles)
}

// Overdue says that what this delivery has claimed is another's to claim by now, or nearly.
func (d Delivery) Overdue(now Instant, c *Config) bool {
	return now >= d.Held.Lease-c.Topic.SettleMargin
}

// closing ends what did not happen, and what nobody shall execute any more. It waits as long as proof of absence does.
func (d Delivery) closing(now Instant, c *Config) (Delivery, Action) {
	m := d.Held
	switch {
	case !d.closable(now, c):
		return d.over(Inadmissible)
	case m.Abandonable(c):
	case m.givenUp(): // with what that means, be it before a loss of data
		d.Alone = true
	case m.Detached && m.Kept != 0: // no record says what it meant: it is settled, by a redrive or by a person
		return d.over(Inadmissible)
	case m.Kept != 0: // what is known to have happened is not closed, unless its record has its answer already
		d.Alone = true
	}
	return d.fail(cancel(m, now), now, c)
}

// closable says that nothing can be under way, or that nobody ever had the right to call.
func (d Delivery) closable(now Instant, c *Config) bool {
	m := d.Held
	return m.Abandonable(c) || (m.State == InDoubt || m.State == Dead) && now >= m.Provable(c)
}

// redrive starts a dead message anew; evidence that it keeps is settled instead.
func (d Delivery) redrive(now Instant, c *Config) (Delivery, Action) {
	m := d.Held
	switch {
	case m.State == Dead && m.Kept == KeptDeclined && m.ambiguous(c): // a person must say which attempt it is about
		return d.over(Inadmissible)
	case m.State == Evidenced, m.State == Dead && m.Kept != 0:
		return d.settleKept(now, c)
	case m.State != Dead:
		return d.over(Inadmissible)
	case m.givenUp() && !c.off(RedriveAnyway):
		d.Asked = AskNotExecuted // what the application was told will not happen does not happen
		d.Step = Asking
		return d, Action{Do: Ask, Asked: d.Asked}
	}
	return d.redriveNow(now, c)
}

// redriveNow offers nothing for what has its final answer: the record is checked in the same transaction.
func (d Delivery) redriveNow(now Instant, c *Config) (Delivery, Action) {
	d.Sends++
	w := Write{MsgIf: seenMessage(d.Held, c), MsgAs: Put, Msg: redriven(d.Held, now, c)}
	if !d.Held.Detached {
		w.Token = Token{d.Seed, ForFail, d.Sends}
		w.RecAs, w.RecIf = Check, pending(d.Held.Op)
	}
	return d.send(Writing, w, now+c.Topic.SettleFor)
}

// writeDecided: one write, best effort. What nobody could write somebody else will be woken for.
func (d Delivery) writeDecided(v Verdict, in Input, c *Config) (Delivery, Action) {
	m := in.Reply.Msg
	switch {
	case v == Done || v == Conflict && in.Reply.Conds&CondMessage != 0 && d.own(m):
		d.Held = d.At.W.Msg
		called := d.Errand == Wake || d.Errand == Carry
		if next := max(in.Now, d.Held.NextAttempt); called && d.Held.State == Due && d.Held.over(next, c) { // with this call
			return d.giveUp(in.Now, c)
		}
		if d.Then != 0 {
			return d.over(d.Then)
		}
		return d.stored()
	case v == Conflict && in.Reply.Conds&CondMessage == 0: // the record is at its end
		return d.over(Inadmissible)
	case v == Conflict && d.beside(m): // evidence was kept on one's own claim: the same is written over that row
		w := d.At.W
		d.Loops, d.Held = d.Loops+1, m
		w.MsgIf, w.Msg.Kept = seenMessage(m, c), m.Kept
		return d.send(Writing, w, in.Now+c.Topic.SettleFor)
	case v == Conflict && (d.Errand == Carry || d.Errand == Question): // it is another's by now
		return d.over(Quiet)
	case v == Conflict:
		return d.again(m, in.Now, c)
	}
	return d.over(Unavailable)
}

// beside says that one's own claim still stands, and that only what is beside it was written.
func (d Delivery) beside(m Message) bool {
	return d.Held.State == Claimed && m.State == Claimed && m.Owner == d.Held.Owner && m.Epoch == d.Held.Epoch && d.Loops < judgementsMax
}

// pending admits the record of an operation that has not ended.
func pending(op ID) Fence { return Fence{Op: op, Pending: true} }

// seenMessage admits exactly the message that was read.
func seenMessage(m Message, c *Config) Fence {
	if c.off(NoRevision) {
		return Fence{Op: m.Op, Owner: m.Owner, Epoch: m.Epoch, States: bits(m.State)}
	}
	return Fence{Op: m.Op, Seen: m.Revision}
}
