package protocol

// Fail: the end of a message of which nothing happened, with its record and what the application makes of it.

// fail asks the topic what it means that nothing was executed: no final answer without its business writes.
func (d Delivery) fail(ends Message, now Instant, c *Config) (Delivery, Action) {
	d.Ends, d.Asked = ends, AskNotExecuted
	if d.Alone {
		return d.failNow(now, c)
	}
	return d.ask(now, c)
}

// failNow sends the transaction. A later phase of a chain may have to undo an earlier one: then the undoing message
// follows, and the record stays pending until it has ended.
func (d Delivery) failNow(now Instant, c *Config) (Delivery, Action) {
	m, ends := d.Held, d.Ends
	if d.Unread { // what was executed before a loss does not end as not executed
		return d.over(Unavailable)
	}
	if d.Meant.Fails || d.Meant.Continues && (m.Index < 2 || m.Undoes) {
		return d.unfailed(now, c)
	}
	d.Sends++
	w := Write{
		Token: Token{d.Seed, ForFail, d.Sends}, Said: AskNotExecuted, MsgIf: seenMessage(m, c), MsgAs: Patch,
		Msg: Message{State: ends.State, Index: m.Index, Op: m.Op, Done: ends.Done, LookAt: ends.LookAt, Detached: m.Detached},
	}
	switch {
	case d.Alone: // the record has its answer: only the message ends, and the record is demanded to have it
		w.Said, w.Msg.Ended = NotAsked, true
		if !m.Detached {
			w.RecAs, w.RecIf = Check, Fence{Op: m.Op, Ended: true}
			w.Earlier = m.Index - 1
		}
	case d.Meant.Continues && !c.off(NoCompensation):
		w.Msg.State, w.Msg.Done = Cancelled, now
		w.Next = m.next(true, now, c)
		w.Next.Revision = d.Seed.Plus(uint64(d.Writes) + 1)
		w.RecAs, w.RecIf = Check, pending(m.Op)
	case m.Detached:
		w.Msg.Ended = ends.State.Final()
	default:
		w.RecAs, w.RecIf = End, pending(m.Op)
		if ends.State.Final() { // what is dead stays before its operator, with all of its chain, until it is closed
			w.Msg.Ended, w.Earlier = true, m.Index-1
		}
		w.Rec = Record{State: Failed, Op: m.Op, Kind: Deferred}
	}
	if m.Sealed { // nobody can say what rides along
		w.Said = NotAsked
	}
	return d.send(Failing, w, now+c.Topic.SettleFor)
}

// failDecided goes on with what became of the transaction. The store may refuse it for good, as it may refuse to settle evidence (rest).
// Where that is not the first time, because the message has been due for longer than a sweep leaves it, an operator is told and it is
// tried again later.
func (d Delivery) failDecided(v Verdict, in Input, c *Config) (Delivery, Action) {
	conds := in.Reply.Conds
	switch {
	case v == Done, v == Conflict && conds&CondMessage != 0 && d.own(in.Reply.Msg):
		d.Held = Patch.message(d.Held, d.At.W.Msg)
		return d.stored()
	case v == Conflict && conds&CondMessage != 0:
		return d.again(in.Reply.Msg, in.Now, c)
	case v == Conflict && conds&CondRecord != 0 && d.Alone: // evidence is kept and the operation has not ended: settle it
		return d.over(Inadmissible)
	case v == Conflict && conds&CondRecord != 0 && d.Errand == Close:
		d.Alone = true
		return d.failNow(in.Now, c)
	case v == Conflict:
		return d.unfailed(in.Now, c)
	case v == Nothing && d.At.Refused && d.Errand != Close && in.Now >= d.Held.dueAt()+c.Topic.SweepGrace:
		d.Alarms |= AlarmRefused
		return d.postpone(in.Now+d.rest(in.Now, c), in.Now, c)
	}
	return d.over(Unavailable)
}

// unfailed: the message is dead, and its record could not be failed with it. An operator must decide.
func (d Delivery) unfailed(now Instant, c *Config) (Delivery, Action) {
	d.Alarms |= AlarmUnfailed
	if d.Errand == Close {
		return d.over(Inadmissible)
	}
	next := bury(d.Held, now, c)
	next.Unfailed = true
	return d.put(next, now, c)
}
