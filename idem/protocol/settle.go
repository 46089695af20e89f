package protocol

// Settle: a definite answer is evidence. It is settled, or kept, and never dropped.

// settle asks the topic what the evidence means.
func (d Delivery) settle(now Instant, c *Config) (Delivery, Action) {
	if d.Held.Kept&^d.Evidence.kept() != 0 {
		d.Alarms |= AlarmContradicts
		if d.Evidence == OutDeclined && !c.off(NoDeliveredWins) { // what is known to be delivered is never declined
			return d.keepBeside(now, c)
		}
	}
	if d.Held.Undoes && d.Evidence == OutDeclined && !c.off(UndoFails) { // what was to be undone stands
		return d.keep(Dead, now, c)
	}
	switch {
	case d.Evidence == OutDelivered:
		d.Asked = AskDelivered
	case d.Held.givenUp(): // what it means that nothing happened may be written already, and would be written twice
		d.Asked = AskNotExecuted
	default:
		d.Asked = AskDeclined
	}
	return d.ask(now, c)
}

// ask: of what nobody can open the topic can't be asked.
func (d Delivery) ask(now Instant, c *Config) (Delivery, Action) {
	d.Step = Asking
	if d.Held.Sealed {
		return d.answered(Input{Now: now}, c)
	}
	return d, Action{Do: Ask, Asked: d.Asked}
}

// settleKept settles what the message keeps. Delivered wins: a decline of another attempt takes nothing back. What is kept of a restored
// message may have been kept by a worker that was frozen: where each attempt is executed, a decline of one is asked about.
func (d Delivery) settleKept(now Instant, c *Config) (Delivery, Action) {
	if m := d.Held; m.Kept == KeptDeclined && m.Doubted(c) && !c.off(KeptSettles) {
		d.Alarms |= AlarmWeak
		if !d.Seen.None() {
			return d.over(Inadmissible)
		}
		return d.put(park(m, now, c), now, c)
	}
	d.Evidence, d.Epoch, d.Owner = OutDeclined, d.Held.Epoch, d.Held.Owner
	if d.Held.Kept&KeptDelivered != 0 {
		d.Evidence = OutDelivered
		if d.Held.Kept&KeptDeclined != 0 {
			d.Alarms |= AlarmContradicts
		}
		m := d.Held
		m.Kept = KeptDelivered
		d.Held = m
	}
	return d.settle(now, c)
}

// answered goes on with what the topic said.
func (d Delivery) answered(in Input, c *Config) (Delivery, Action) {
	d.Meant = in.Meant
	switch {
	case d.Evidence == OutDeclined && d.Asked == AskNotExecuted:
		if in.Meant.Writes || in.Meant.Fails {
			return d.keepBeside(in.Now, c)
		}
		d.Asked = AskDeclined
		return d.ask(in.Now, c)
	case d.Errand == Redrive && d.Asked == AskNotExecuted:
		if in.Meant.Writes || in.Meant.Fails {
			return d.over(Inadmissible)
		}
		return d.redriveNow(in.Now, c)
	case d.Asked == AskNotExecuted && d.Errand != Close && d.Held.openSince(c) != 0: // data was lost while the topic was asked
		return d.giveUp(in.Now, c)
	case d.Asked == AskNotExecuted:
		return d.failNow(in.Now, c)
	case d.Asked == AskDeclined && (d.Errand == Tidings && d.weak(c) || d.strayed(in.Now, c)): // the same
		d.Alarms |= AlarmWeak
		return d.keepBeside(in.Now, c)
	case in.Meant.Fails:
		return d.keep(Dead, in.Now, c)
	}
	return d.settleNow(in.Now, c)
}

// settleNow sends the one transaction that ends the message, with the record's end or the next message. What is fenced by
// "not final" patches attributes: it would erase a concurrent claim.
func (d Delivery) settleNow(now Instant, c *Config) (Delivery, Action) {
	d.Sends++
	state := Delivered
	if d.Evidence == OutDeclined {
		state = Declined
	}
	m := d.Held
	d.Checked = d.Checked || m.State == Dead && (!d.Seen.None() || m.Detached) // it is known to be dead, and is not read twice
	w := Write{
		Token: Token{d.Seed, ForSettle, d.Sends}, Said: d.Asked, MsgIf: d.evidenceFence(c), MsgAs: Patch,
		Msg: Message{State: state, Index: m.Index, Op: m.Op, Done: now, Detached: m.Detached},
	}
	switch {
	case d.Meant.Continues:
		w.Next = m.next(m.Undoes || d.Meant.Undoes && !c.off(NoUndoing), now, c)
		w.Next.Revision = d.Seed.Plus(uint64(d.Writes) + 1)
		if d.continues() && !w.Next.restored(c) && (d.Deadline == 0 || now+c.Topic.CallFor+c.Topic.SettleMargin <= d.Deadline) {
			w.Next = claim(w.Next, d.Seed, now, c)
		}
		if w.MsgIf.NotDead = true; d.Checked { // only of a dead message the record may be at its end
			w.MsgIf.NotDead = false
			w.RecAs, w.RecIf = Check, pending(m.Op)
		}
		if c.off(NoRecordCheck) {
			w.MsgIf.NotDead = false
		}
	case m.Detached:
		w.Msg.Ended, w.MsgIf.NotDead = true, w.MsgIf.Open && !d.Checked
		if m.givenUp() { // the application has written what it means that it did not happen
			d.Alarms |= AlarmContradicts
		}
	default:
		w.RecAs, w.RecIf = End, pending(m.Op)
		w.Msg.Ended, w.Earlier = true, m.Index-1
		w.Rec = Record{State: Completed, Op: m.Op, Kind: Deferred}
		if m.Undoes || m.Sealed {
			w.Rec.State = Failed
		}
	}
	if m.Sealed { // nobody can say what rides along
		w.Said = NotAsked
	}
	if d.Unread && (w.Next.State != NoMessage || state == Declined) { // one that can read what was lost settles it, or goes on
		return d.keep(Evidenced, now, c)
	}
	w.Msg.Ended = w.Msg.Ended || c.off(NoChainEnd)
	until := now + c.Topic.SettleFor
	if d.Deadline != 0 && !c.off(SettleTakesAll) { // the other half is for keeping what could not be settled
		until = min(until, now+(d.Deadline-now)/2)
	}
	return d.send(Settling, w, until)
}

// continues says that the request that is served delivers the next message too.
func (d Delivery) continues() bool { return (d.Onward || d.Errand == Carry) && !d.Meant.Left }

// evidenceFence: delivered settles whatever is not final. Declined settles only what was seen, because the message may have
// come to keep that it was delivered. A person's is about what they saw.
func (d Delivery) evidenceFence(c *Config) Fence {
	m := d.Held
	switch {
	case !d.Seen.None():
		return seenMessage(m, c)
	case d.Evidence == OutDeclined && !c.off(NoSeenDecline):
		return seenMessage(m, c)
	}
	return Fence{Op: m.Op, Open: true}
}

func (d Delivery) settleDecided(v Verdict, in Input, c *Config) (Delivery, Action) {
	m, conds := in.Reply.Msg, in.Reply.Conds
	switch {
	case v == Done:
		return d.settled(c)
	case v != Conflict && c.off(NoEvidenceKept):
		return d.over(Unavailable)
	case v != Conflict && c.off(CallsAgain):
		next := backOff(d.Held, in.Now, true, c)
		next.Attempts++
		return d.put(next, in.Now, c)
	case v != Conflict && d.Errand == Judgement && d.Evidence == OutDeclined && !c.Topic.KeysHonoured: // a person knows of all attempts, a row of one
		return d.over(Unavailable)
	case v != Conflict: // what can't be settled now is kept now
		if d.Held.State == Evidenced && v == Nothing && d.At.Refused {
			d.Alarms |= AlarmRefused
		}
		return d.keep(Evidenced, in.Now, c)
	case conds&CondMessage != 0 && !d.own(m):
		return d.overtaken(m, in.Now, c)
	case conds&CondMessage != 0:
		d.Held = m
		return d.over(Changed)
	}
	return d.keep(Dead, in.Now, c) // the record, the next message or a business write refused
}

// settled goes on with the next message where this delivery claimed it: it is stored as it was sent.
func (d Delivery) settled(*Config) (Delivery, Action) {
	next := d.At.W.Next
	d.Held.State, d.Held.Done = d.At.W.Msg.State, d.At.W.Msg.Done
	d.Step = Over
	say := Say{Code: Changed, Op: d.Held.Op, Message: d.Held, Alarms: d.Alarms}
	if next.State == Claimed {
		say.Carry = next
	}
	return d, Action{Do: Tell, Say: say}
}

// overtaken: the message is not what the settlement demanded.
func (d Delivery) overtaken(m Message, now Instant, c *Config) (Delivery, Action) {
	d.Held = m
	switch {
	case m.State == NoMessage:
		d.Alarms |= AlarmGone
		return d.over(NotLive)
	case m.State.Final():
		return d.settledAlready(now, c)
	case !d.Seen.None():
		return d.over(Stale)
	case d.Evidence == OutDelivered: // where the chain goes on, what was lost by now counts
		d.Checked = d.Checked || m.State == Dead
		return d.ask(now, c)
	case d.followed(m, c):
		return d.over(Quiet) // it did nothing, and nothing is lost
	case d.weak(c):
		d.Alarms |= AlarmWeak
		return d.keepBeside(now, c)
	}
	if d.Loops++; d.Loops >= judgementsMax {
		return d.keep(Evidenced, now, c)
	}
	d.Checked = d.Checked || m.State == Dead
	return d.settle(now, c)
}

// followed says that the decline is of an attempt that another has followed. Where each is executed, a decline of one says
// nothing of the next.
func (d Delivery) followed(m Message, c *Config) bool {
	return d.Evidence == OutDeclined && !c.Topic.KeysHonoured && !d.Owner.None() && (m.Owner != d.Owner || m.Epoch != d.Epoch) && !c.off(NoOwnEpoch)
}

// settledAlready meets a final message with evidence: the same is no news, another is a person's business, and what comes
// after the message was given up is kept: the stored answer stays.
func (d Delivery) settledAlready(now Instant, c *Config) (Delivery, Action) {
	switch m := d.Held; {
	case m.State == Cancelled && m.Kept&d.Evidence.kept() == 0:
		d.Alarms |= AlarmLate
		return d.keep(Cancelled, now, c)
	case m.State == Delivered && d.Evidence == OutDeclined, m.State == Declined && d.Evidence == OutDelivered:
		d.Alarms |= AlarmContradicts
	}
	return d.over(Unchanged)
}

// keepBeside keeps evidence that settles nothing: the message stays what it is.
func (d Delivery) keepBeside(now Instant, c *Config) (Delivery, Action) {
	alarms := d.Alarms
	d, a := d.keep(d.Held.State, now, c)
	d.Alarms, d.Becomes = alarms, NoMessage
	return d, a
}

// keep puts the evidence on the message, beside whatever it keeps already, and makes it what state says. It is tried until
// its caller's deadline, or for KeepFor; and where nobody could bring it again for as long as the process lives, be it beyond
// the deadline.
func (d Delivery) keep(state MessageState, now Instant, c *Config) (Delivery, Action) {
	d.Becomes = state
	if state == Evidenced && d.Held.State == Dead && !c.off(DeadIsEvidenced) { // its record may have its answer: it waits for a person, and for no worker
		state = Dead
	}
	switch state {
	case Dead:
		d.Alarms |= AlarmUnsettled
	case Evidenced: // be it that it was dead when this was tried before
		d.Alarms &^= AlarmUnsettled
	default:
	}
	m := d.Held
	w := Write{MsgAs: Patch, Msg: Message{State: state, Index: m.Index, Op: m.Op, LookAt: now, Kept: d.Evidence.kept()}}
	w.Msg.Unfailed = state == Dead && m.State != Dead && m.Detached // and not given up: nothing says that it did not happen
	switch state {
	case Evidenced:
		w.Msg.LookAt = now + d.rest(now, c)
	case m.State: // it is only added to; of what is dead an operator is told again
		if state != Dead {
			w.Msg.LookAt = m.LookAt
		}
	default: // at once
	}
	switch {
	case m.State.Final() || state == m.State || !d.Seen.None():
		w.MsgIf = seenMessage(m, c)
	case state == Dead && !c.off(NoSeenDeath): // a late try must not bury what has been started anew since
		w.MsgIf = seenMessage(m, c)
	default:
		w.MsgIf = d.evidenceFence(c)
		w.MsgIf.NotDead = state == Evidenced
	}
	return d.send(Keeping, w, now+c.Topic.KeepFor)
}

// refusedMost bounds the pause before what the store refuses to settle is tried again.
const refusedMost Millis = 60 * 60 * 1000

// rest is how long what can't be settled is left alone. The store may refuse it for good, where nothing is in its way: a write that
// can't be made of its item, or that the role may not make. A first time credentials may just have expired. From the second on an
// operator is told each time, and it is tried again after as long as the message is old: once it is mended, it is settled.
func (d Delivery) rest(now Instant, c *Config) Millis {
	if d.Alarms&AlarmRefused == 0 {
		return c.Topic.SweepGrace
	}
	return max(c.Topic.SweepGrace, min(now-d.Held.began(c), refusedMost))
}

// only says that this delivery alone has the evidence: its own call brought it, and the provider can be asked for it neither
// by another call nor by a probe. A webhook comes again, and a person is told.
func (d Delivery) only(now Instant, c *Config) bool {
	return (d.Errand == Wake || d.Errand == Carry) && !c.Topic.Probed && !d.Held.offerable(now, c) && !c.off(KeepEnds)
}

// Beyond says that what the delivery asks for comes after its caller's deadline: the caller is answered first.
func (d Delivery) Beyond() bool {
	return d.Step == Keeping && d.Deadline != 0 && d.At.Until > d.Deadline
}

func (d Delivery) keepDecided(v Verdict, in Input, c *Config) (Delivery, Action) {
	m := in.Reply.Msg
	switch {
	case v == Done, v == Conflict && d.own(m):
		d.Held = Patch.message(d.Held, d.At.W.Msg)
		return d.stored()
	case v != Conflict && (d.Deadline == 0 || d.Outlives) && d.only(in.Now, c):
		d.At.Until = in.Now + c.Topic.KeepFor
		return d, Action{Do: Send, Write: d.At.W, Until: d.At.Until, Pause: d.At.Tries}
	case v != Conflict:
		return d.over(Unavailable)
	case m.State == NoMessage:
		d.Alarms |= AlarmGone
		return d.over(NotLive)
	}
	if d.Loops++; d.Loops >= judgementsMax {
		return d.over(Unavailable)
	}
	switch d.Held = m; {
	case m.State.Final():
		return d.settledAlready(in.Now, c)
	case !d.Seen.None():
		return d.over(Stale)
	case d.followed(m, c):
		return d.over(Quiet)
	case d.Becomes == NoMessage:
		return d.keepBeside(in.Now, c)
	}
	return d.keep(d.Becomes, in.Now, c) // not what the last write made of it: that was about the row as it was
}
