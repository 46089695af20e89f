package mutants

const (
	acquireFile   = "idem/protocol/acquire.go"
	executionFile = "idem/protocol/execution.go"
	wrappedFile   = "idem/protocol/wrapped.go"
	attemptFile   = "idem/protocol/attempt.go"
	deliveryFile  = "idem/protocol/delivery.go"
	callFile      = "idem/protocol/call.go"
	messageFile   = "idem/protocol/message.go"
	failFile      = "idem/protocol/fail.go"
	decideFile    = "idem/protocol/settle.go"
	fenceOfRows   = "idem/protocol/fence.go"
	applyFile     = "idem/protocol/apply.go"
	changeFile    = "idem/protocol/change.go"
	alertFile     = "idem/protocol/alert.go"
)

// decisions: who may execute, and what everybody else is told. The checker removes the protocol's named rules besides.
var decisions = []Mutant{
	{Name: "another request is answered with this one's response", File: acquireFile, Old: "	case r.Match == Different && !c.off(NoMatch):\n		return x.tell(Say{Code: Mismatch})\n	case r.State == Pending", New: "	case r.State == Pending"},
	{Name: "a tombstone is executed again", File: acquireFile, Old: "	case r.State.Final() && r.Tombstone && r.Expires != 0 && now >= r.Expires:\n		return x.tell(Say{Code: Gone, State: r.State, Op: r.Op})\n", New: ""},
	{Name: "a living holder is overtaken", File: acquireFile, Old: "	case now < r.Lease: // of", New: "	case now+60000 < r.Lease: // of"},
	{Name: "a wrapped handler's dead lease is taken over", File: acquireFile, Old: "	case r.State == InProgress && !r.RunsAgain():\n		return x.parkOther(r, c)\n", New: ""},
	{Name: "what is unknown is executed again", File: acquireFile, Old: "	case r.State == Unknown:\n		return x.tell(Say{Code: NotKnown, State: Unknown, Op: r.Op})\n	case now", New: "	case now"},
	{Name: "a look executes", File: acquireFile, Old: "	case x.Request.LookOnly:\n		return x.tell(Say{Code: Vacant})\n	case x.Request.Barred:\n		return x.tell(Say{Code: Unavailable})\n	case x.Turned", New: "	case x.Request.Barred:\n		return x.tell(Say{Code: Unavailable})\n	case x.Turned"},
	{Name: "a key from before a loss of data begins anew", File: acquireFile, Old: "	case x.Request.Barred:\n		return x.tell(Say{Code: Unavailable})\n	case x.Turned", New: "	case x.Turned"},
	{Name: "a key from before a loss of data takes over", File: acquireFile, Old: "	case x.Request.Barred:\n		return x.tell(Say{Code: Unavailable})\n	case x.tooLate(now, c):\n		return x.giveUp(Say{Code: Late}, NoReason, now, c)\n	}\n	next", New: "	case x.tooLate(now, c):\n		return x.giveUp(Say{Code: Late}, NoReason, now, c)\n	}\n	next"},
	{Name: "a new key is not counted", File: acquireFile, Old: "	case !x.Asked:\n		return x.admit()\n", New: ""},
	{Name: "a handler starts with no time left", File: acquireFile, Old: "	if x.late(now, c) || now >= r.Lease || r.State == Unknown {", New: "	if now >= r.Lease || r.State == Unknown {"},
	{Name: "a handler starts with milliseconds left", File: acquireFile, Old: "	return x.Plan.HandlerUntil-now < max(1, x.Plan.WorkLeast(c))\n", New: "	return x.Plan.HandlerUntil-now < min(1, x.Plan.WorkLeast(c))\n"},
	{Name: "a handler without a lease starts with no time left", File: acquireFile, Old: "	switch {\n	case x.tooLate(now, c):\n		return x.giveUp(Say{Code: Late}, NoReason, now, c)\n	case !c.Kind", New: "	switch {\n	case !c.Kind"},
	{Name: "a key that is free too late is a store in trouble", File: acquireFile, Old: "	case x.tooLate(now, c):\n		return x.giveUp(Say{Code: Late}, NoReason, now, c)\n	}\n	next", New: "	}\n	next"},
	{Name: "a handler with a short time never starts after a slow reserve", File: "idem/protocol/config.go", Old: "min(c.WorkMin, (p.HandlerUntil-p.Began)/2)", New: "c.WorkMin"},
	{Name: "a handler that lost its lock starts again with milliseconds left", File: "idem/protocol/commit.go", Old: "x.Runs < c.RunsMax && !x.late(in.Now, c):", New: "x.Runs < c.RunsMax && in.Now < x.Plan.HandlerUntil:"},
	{Name: "a key that was got late is given back until the store throttles", File: "idem/protocol/commit.go", Old: "promised || unused && !c.off(NoGiveBackPersistence)", New: "promised || unused && false"},
	{Name: "the key of a handler that was frozen before it started stays held", File: "idem/protocol/commit.go", Old: "	case now >= until && (unused || c.Kind != Wrapped):", New: "	case now >= until && (unused || c.Kind != Wrapped) && false:"},
	{Name: "a handler that was frozen before it started has run", File: "idem/protocol/commit.go", Old: "(unused || c.Kind != Wrapped):", New: "unused:"},
	{Name: "a lease that was frozen is given back when it may be taken over", File: "idem/protocol/commit.go", Old: "	if r.RunsAgain() {\n", New: "	if r.RunsAgain() && false {\n"},
	{Name: "a reserve that was frozen is not given back", File: acquireFile, Old: "	if now >= until {\n		until = x.lateUntil", New: "	if now >= until && false {\n		until = x.lateUntil"},
	{Name: "a handler that began late asks for more of its lease when that is over", File: "idem/protocol/lease.go", Old: "min(wait, left/2)", New: "min(wait, 2*left)"},
	{Name: "a handler starts under a lease that is over", File: acquireFile, Old: "	if x.late(now, c) || now >= r.Lease || r.State == Unknown {", New: "	if x.late(now, c) || r.State == Unknown {",
		Survives: "the lease is the one of the plan, which ends after HandlerUntil: the first condition holds before this one"},
	{Name: "a handler starts under a record that was parked", File: acquireFile, Old: " || now >= r.Lease || r.State == Unknown {", New: " || now >= r.Lease {",
		Survives: "nobody parks a reserve before its lease is over on every clock, and then HandlerUntil is over, too"},
	{Name: "a read takes the time of its answer", File: executionFile, Old: "	case now < until:\n		return until\n", New: "	case now < until:\n		return 0\n"},
	{Name: "who has overstayed reads nothing", File: executionFile, Old: "	case now < until:\n		return until\n", New: "	case until != 0:\n		return until\n"},
	{Name: "who has overstayed reads until they are killed", File: executionFile, Old: "		return now + (killed-now)/2\n", New: "		return 0\n"},
	{Name: "a wrapped answer is tried beyond the death of its process", File: wrappedFile, Old: "killed := x.killed(c); now < killed {", New: "killed := x.killed(c); false {"},
	{Name: "a wrapped answer of the last moments is not sent", File: wrappedFile, Old: "killed-min(x.Plan.AnswerMargin, (killed-now)/2)", New: "killed-x.Plan.AnswerMargin"},
	{Name: "a wrapped answer that outlived its process's deadline is not sent", File: wrappedFile, Old: "killed := x.killed(c); now < killed {", New: "killed := x.killed(c); killed != 0 {"},
	{Name: "a reserve without a reply counts as reserved", File: acquireFile, Old: "	case Unclear:\n		return x.giveBack(in.Now, c)\n	case Again, Nothing: // not reserved", New: "	case Unclear:\n		return x.hold(x.At.W.Rec, in.Now, c)\n	case Again, Nothing: // not reserved"},
	{Name: "a lost race is won", File: acquireFile, Old: "NoQuotaKept)\n		return x.again(in.Reply.Rec, in.Now, c)", New: "NoQuotaKept)\n		return x.hold(x.At.W.Rec, in.Now, c)"},
	{Name: "a try without a reply leaves no doubt", File: attemptFile, Old: "	case Lost:\n		a.Tainted = true\n", New: "	case Lost:\n"},
	{Name: "a broken connection after a lost reply says that nothing happened", File: attemptFile, Old: "	case Broken, NotSent:\n		if !a.Persists && !tainted {", New: "	case Broken, NotSent:\n		if !a.Persists {"},
	{Name: "contention after a lost reply says that nothing happened", File: attemptFile, Old: "!a.Persists && !tainted && a.Contended", New: "!a.Persists && a.Contended"},
	{Name: "tries go on after their time", File: attemptFile, Old: "	if now < a.Until && (a.Persists", New: "	if now < a.Until+3600000 && (a.Persists"},
	{Name: "what is loose in the end did not happen", File: attemptFile, Old: "	if a.Tainted && !c.off(NoTaint) || r.Code == Lost {\n		return a, Unclear\n	}\n	return a, Nothing", New: "	return a, Nothing"},
	{Name: "what is taken out of use is still its holder's", File: changeFile, Old: "			next.Owner = x.Seed\n", New: ""},
	{Name: "a cache-bust that was heard of holds its key for as long as one that was not", File: changeFile, Old: "	if x.Errand == Bust && !x.Heard && x.Held.Lease > now+c.uncached() {", New: "	if x.Errand == Bust && x.Heard && x.Held.Lease > now+c.uncached() {"},
	{Name: "a cache-bust whose row is gone fails", File: changeFile, Old: "	if x.Heard {\n		return x.tell(Changed)\n	}\n	if x.Loops++", New: "	if x.Loops++"},
	{Name: "a cache-bust that leaves its key held is told as done", File: changeFile, Old: "	case Nothing, Unclear: // not known to be changed\n	}\n	return x.tell(Unavailable)\n}\n", New: "	case Nothing, Unclear: // not known to be changed\n	}\n	if x.Heard {\n		return x.tell(Changed)\n	}\n	return x.tell(Unavailable)\n}\n"},
	{Name: "a repeated cache-bust changes nothing", File: changeFile, Old: "r.State == Retryable && r.Lease > now+c.uncached():", New: "r.State == Retryable && r.Lease < now:"},
}

// reminders: of what waits for an operator they are told every day, whatever it died of.
var reminders = []Mutant{
	{Name: "of a dead message with a call open an operator is told once", File: alertFile, Old: "m.State == Dead && m.OpenSince == 0 && ", New: "m.State == Dead && "},
	{Name: "of a dead message that keeps evidence an operator is told once", File: alertFile, Old: " && m.Kept == 0", New: ""},
	{Name: "of a dead message that could not be failed an operator is told once", File: alertFile, Old: " && !m.Unfailed", New: ""},
	{Name: "of an undoing that is dead an operator is told once", File: alertFile, Old: " && !m.Undoes", New: ""},
	{Name: "of a detached message that is dead an operator is told once", File: alertFile, Old: " && !m.Detached", New: ""},
}

// remainders: what has ended goes a day after its record, however it ended.
var remainders = []Mutant{
	{Name: "what is closed with its answer there is never removed", File: failFile, Old: "		w.Said, w.Msg.Ended = NotAsked, true\n", New: "		w.Said = NotAsked\n"},
	{Name: "what is detached and closed is never removed", File: failFile, Old: "	case m.Detached:\n		w.Msg.Ended = ends.State.Final()\n", New: "	case m.Detached:\n"},
	{Name: "what is abandoned or closed is never removed", File: failFile, Old: "			w.Msg.Ended, w.Earlier = true, m.Index-1\n", New: "			w.Msg.Ended, w.Earlier = false, m.Index-1\n"},
	{Name: "what is detached and settled is never removed", File: decideFile, Old: "		w.Msg.Ended, w.MsgIf.NotDead = true, w.MsgIf.Open", New: "		w.Msg.Ended, w.MsgIf.NotDead = false, w.MsgIf.Open"},
}

// deliveries: when a provider is called, and what its answer means.
var deliveries = []Mutant{
	{Name: "a message is called before its time", File: deliveryFile, Old: "	case now < m.dueAt():\n		return d.over(Busy)\n", New: ""},
	{Name: "a final message is called", File: deliveryFile, Old: "	case m.State != Due && m.State != Claimed && m.State != Evidenced:\n", New: "	case false:\n"},
	{Name: "what nobody can open is called", File: deliveryFile, Old: "	case m.Sealed:\n		return d.giveUp(now, c)\n	case m.Abandonable", New: "	case m.Abandonable"},
	{Name: "attempts have no end", File: deliveryFile, Old: "	case m.over(now, c):\n		return d.giveUp(now, c)\n", New: ""},
	{Name: "an open call is repeated where no keys are honoured", File: deliveryFile, Old: "	case !m.offerable(now, c):\n		return d.put(park(m, now, c), now, c)\n", New: ""},
	{Name: "a claim of another release is settled", File: deliveryFile, Old: "	case m.foreign(c):\n		return d.over(OtherRelease)\n	case !d.Seen", New: "	case !d.Seen"},
	{Name: "a person decides about what they did not see", File: deliveryFile, Old: "	case !d.Seen.None() && m.Revision != d.Seen:\n		return d.over(Stale)\n", New: ""},
	{Name: "what may be on its way is closed", File: deliveryFile, Old: " && now >= m.Provable(c)\n}\n\n// redrive", New: "\n}\n\n// redrive"},
	{Name: "what is kept as delivered is closed as not executed", File: deliveryFile, Old: "	case m.Kept != 0: // what is known to have happened is not closed, unless its record has its answer already\n		d.Alone = true\n", New: ""},
	{Name: "what was given up is closed as if nothing were known of it", File: deliveryFile, Old: "	case m.givenUp(): // with what that means, be it before a loss of data\n		d.Alone = true\n", New: ""},
	{Name: "what was given up is called again, and the application is not asked", File: deliveryFile, Old: "	case m.givenUp() && !c.off(RedriveAnyway):", New: "	case false && !c.off(RedriveAnyway):"},
	{Name: "what was given up is declined, and written twice", File: decideFile, Old: "	case d.Held.givenUp(): // what it means that nothing happened may be written already, and would be written twice\n		d.Asked = AskNotExecuted\n", New: ""},
	{Name: "what was given up has happened, and nobody hears of it", File: decideFile, Old: "			d.Alarms |= AlarmContradicts\n		}\n	default:", New: "		}\n	default:"},
	{Name: "what nobody can open is asked about for ever", File: deliveryFile, Old: "	case m.Sealed:\n		return d.put(bury(m, now, c), now, c)\n	case !c.Topic.Probed:", New: "	case !c.Topic.Probed:"},
	{Name: "what nobody can open fails with what the application writes", File: failFile, Old: "	if m.Sealed { // nobody can say what rides along\n		w.Said = NotAsked\n	}\n", New: "",
		Survives: "who performs it asks nobody and adds nothing either, because the message is sealed"},
	{Name: "what keeps an answer is called once more", File: deliveryFile, Old: "	case m.State == Evidenced, m.State == Dead && m.Kept != 0:\n		return d.settleKept(now, c)\n", New: ""},
	{Name: "a redrive does not look at the record", File: deliveryFile, Old: "	if !d.Held.Detached {\n		w.Token", New: "	if !d.Held.Detached && false {\n		w.Token"},
	{Name: "a message that is open dies with its record failed", File: deliveryFile, Old: "	case open || m.Undoes && !c.off(UndoFails):", New: "	case m.Undoes && !c.off(UndoFails):"},
	{Name: "an open call is repeated until its provider forgets the key", File: messageFile, Old: "now < open+t.KeyRetention-t.Margin ||", New: "now < open+t.KeyRetention ||"},
	{Name: "an open call is repeated on the instant at which the margin begins", File: messageFile, Old: "now < open+t.KeyRetention-t.Margin ||", New: "now <= open+t.KeyRetention-t.Margin ||"},
	{Name: "a later phase that nobody claimed is answered with 408", File: messageFile, Old: "m.State == Due && m.Index == 1 && !m.Detached", New: "m.State == Due && !m.Detached"},
	{Name: "closing races with a redrive, and wins", File: failFile, Old: "Said: AskNotExecuted, MsgIf: seenMessage(m, c), MsgAs: Patch,", New: "Said: AskNotExecuted, MsgIf: Fence{Op: m.Op, Open: true}, MsgAs: Patch,"},
	{Name: "what was restored counts as never called", File: messageFile, Old: "	if m.OpenSince == 0 && m.restored(c) && !c.off", New: "	if m.OpenSince != 0 && m.restored(c) && !c.off"},
	{Name: "what follows what was started anew is given up for its age", File: messageFile, Old: "n.Created, n.Redriven = m.Created, m.Redriven", New: "n.Created = m.Created"},
	{Name: "what follows what was started anew counts as called since then", File: messageFile, Old: "n.Created, n.Redriven = m.Created, m.Redriven", New: "n.Created, n.Redriven = m.Redriven, m.Redriven"},
	{Name: "a call leaves without time to settle it", File: callFile, Old: "	until := d.Held.Lease - c.Topic.SettleMargin\n", New: "	until := d.Held.Lease + 30000\n"},
	{Name: "an answer that is not known leaves no call open", File: callFile, Old: "	default:\n		if m = backOff(m, at, true, c);", New: "	default:\n		if m = backOff(m, at, false, c);"},
	{Name: "a refusal after an open call ends it", File: callFile, Old: "	case OutRefused:\n		if d.OpenBefore {", New: "	case OutRefused:\n		if d.OpenBefore && false {"},
	{Name: "delivered settles only what was seen, and is lost to a race", File: decideFile, Old: "	return Fence{Op: m.Op, Open: true}\n", New: "	return seenMessage(m, c)\n"},
	{Name: "what can't be settled is forgotten", File: decideFile, Old: "		return d.keep(Evidenced, in.Now, c)\n	case conds&CondMessage != 0 && !d.own(m):", New: "		return d.over(Unavailable)\n	case conds&CondMessage != 0 && !d.own(m):"},
}

// people: what those are told who decide. The cuts of their calls should show it.
var people = []Mutant{
	{Name: "a person whose reply was lost is told that nothing changed", File: changeFile, Old: "	if r.State != Absent && r.Revision == x.At.W.Rec.Revision && !c.off(NoOwnChange) {", New: "	if r.State == Absent && r.Revision == x.At.W.Rec.Revision && !c.off(NoOwnChange) {"},
}

// rows: what the reference makes of rows.
var rows = []Mutant{
	{Name: "the reference writes where the record's condition fails", File: applyFile, Old: "		failed |= CondRecord\n", New: ""},
	{Name: "the reference writes over a next message that is there", File: applyFile, Old: "		failed |= CondNextMessage\n", New: ""},
	{Name: "a patch forgets what was kept", File: applyFile, Old: "		stored.Kept |= next.Kept\n", New: "		stored.Kept = next.Kept\n"},
	{Name: "a fence admits another incarnation", File: fenceOfRows, Old: "	if r.State == Absent || r.Op != f.Op {", New: "	if r.State == Absent {"},
	{Name: "a fence admits another owner", File: fenceOfRows, Old: "f.States&(1<<r.State) != 0 && r.Owner == f.Owner &&", New: "f.States&(1<<r.State) != 0 &&"},
	{Name: "an open fence admits what is final", File: fenceOfRows, Old: "		f.Open && !m.State.Final()", New: "		f.Open"},
	{Name: "a renewal in the reference shortens a lease", File: fenceOfRows, Old: "	if f.LeaseBelow != 0 && r.Lease >= f.LeaseBelow {\n		return false\n	}\n", New: ""},
}
