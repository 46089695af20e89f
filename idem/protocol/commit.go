package protocol

// Commit: from the handler's end to an answer, for kinds whose every write goes through the transaction.

func (x Execution) handled(in Input, c *Config) (Execution, Action) {
	x.HandlerOn, x.Result = false, in.Result
	if c.Kind == Wrapped {
		return x.wrappedEnded(in.Now, c)
	}
	switch in.Result.Code {
	case Responded:
		return x.commit(in.Now, c)
	case Stored:
		return x.store(in.Result.Answer, in.Now, c)
	case Broke:
		return x.giveUp(Say{Code: Passed, State: Retryable, Op: x.Held.Op}, HandlerFailed, in.Now, c)
	case Unstored, NothingHappened: // freed below
	}
	return x.giveUp(Say{Code: Passed, State: Retryable, Op: x.Held.Op}, NotStored, in.Now, c)
}

// commit freezes the transaction of the handler's writes, messages and answer: from here on its bytes don't change.
func (x Execution) commit(now Instant, c *Config) (Execution, Action) {
	x.Sends++
	return x.send(Committing, x.freeze(now, c), x.Plan.CommitUntil)
}

func (x Execution) freeze(now Instant, c *Config) Write {
	w := Write{RecAs: Put, Slot: x.Result.Slot, Token: Token{x.Owner, ForCommit, x.Sends}, RecIf: x.fence(now)}
	if c.off(SharedToken) {
		w.Token.N = 0
	}
	if !x.Result.Chain {
		w.Rec = completed(x.Held, x.Result.Answer, c.Life, x.Result.Alone, now, x.skew(c))
		return w
	}
	w.Rec = accepted(x.Held, x.Result.Answer)
	w.MsgAs, w.MsgIf = Put, Fence{Absent: true}
	w.Msg = following(x.Held.Op, 1, false, now, c)
	if c.Inline && !x.Result.Left {
		w.Msg = claim(w.Msg, x.Owner, now, c)
	}
	w.Msg.Revision = x.Request.Seed.Plus(uint64(x.Writes) + 1)
	return w
}

func (x Execution) skew(c *Config) Millis {
	if c.off(NoSkew) {
		return 0
	}
	return c.Skew
}

// fence is what the execution's own next write demands: its lease, or a free key.
func (x Execution) fence(now Instant) Fence {
	if x.Holding {
		return holder(x.Held, InProgress)
	}
	return freeKey(now)
}

// store stores a rejection, or a server's error, with one write: it made nothing that its record could live as long as, whatever the
// handler answered.
func (x Execution) store(answer Answer, now Instant, c *Config) (Execution, Action) {
	life := c.Life
	life.Endless = life.Endless && c.off(RejectionLasts)
	rec := completed(x.Held, answer, life, true, now, x.skew(c))
	return x.send(Storing, Write{RecIf: x.fence(now), RecAs: Put, Rec: rec}, x.Plan.CommitUntil)
}

func (x Execution) commitDecided(v Verdict, in Input, c *Config) (Execution, Action) {
	x.Loose = x.Loose || x.At.Tainted
	switch v {
	case Done:
		x.NewKey = x.NewKey || !x.Holding
		return x.executed(x.At.W.Rec, x.carried(in.Reply.Msg, c))
	case Conflict:
		return x.conditionsFailed(in, c)
	case Unclear:
		return x.fenceOff(in.Now, c)
	case Again, Nothing: // below
	}
	if in.Reply.Code == Broken {
		return x.giveUp(Say{Code: Undeclared}, StoreFailed, in.Now, c)
	}
	return x.giveUp(Say{Code: Unavailable}, StoreFailed, in.Now, c)
}

// carried is the claim to act upon: only as the store has it. A commit that is known to have landed has stored its own.
func (x Execution) carried(stored Message, c *Config) Message {
	m := x.At.W.Msg
	if !c.Inline || m.State != Claimed {
		return Message{}
	}
	if stored.State != NoMessage && stored != m && !c.off(NoConfirmedClaim) {
		return Message{}
	}
	return m
}

// conditionsFailed acts on the conditions of a cancelled transaction. The record goes first: where it is not this
// execution's, nothing else was judged. Then a lost lock: where one was lost, a business condition was judged on old data, and
// the handler runs again where it has time.
func (x Execution) conditionsFailed(in Input, c *Config) (Execution, Action) {
	r := in.Reply
	switch {
	case r.Conds&CondRecord != 0 && x.own(r.Rec):
		return x.landed(r.Rec, r.Msg, c)
	case r.Conds&CondRecord != 0:
		x.Zombie = x.Zombie || x.Holding
		return x.again(r.Rec, in.Now, c)
	case r.lockLost(c) && x.Runs < c.RunsMax && !x.late(in.Now, c):
		return x.run(in.Now, c)
	case r.lockLost(c):
		return x.giveUp(Say{Code: Unavailable}, ConditionLost, in.Now, c)
	case r.Conds&CondReject != 0:
		return x.store(in.Rejection, in.Now, c)
	}
	return x.giveUp(Say{Code: Undeclared}, HandlerFailed, in.Now, c)
}

// landed answers with one's own commit, whose reply was lost. Which of several sendings it was, and so which claim is
// stored, only the stored message says; where it did not come along a worker delivers.
func (x Execution) landed(r Record, stored Message, c *Config) (Execution, Action) {
	x.NewKey = x.NewKey || !x.Holding
	var m Message
	if c.Inline && stored.State == Claimed && stored.Op == r.Op && stored.Owner == x.Owner {
		m = stored
	}
	if c.Inline && c.off(NoConfirmedClaim) {
		m = x.At.W.Msg
	}
	return x.executed(r, m)
}

// fenceOff proves that a commit without a reply can never land. An insert needs no more: its condition excludes a second.
func (x Execution) fenceOff(now Instant, c *Config) (Execution, Action) {
	x.Then = Say{Code: Unavailable}
	switch {
	case c.off(NoFenceOff):
		return x.tell(x.Then)
	case !x.Holding:
		x.NewKey = true // it may land yet
		return x.look(LastLook, now, c)
	}
	fenced := fencedOff(x.Held, c, now)
	if c.off(NoEpoch) {
		fenced.Epoch = x.Held.Epoch
	}
	return x.send(FencingOff, Write{RecIf: holder(x.Held, InProgress), RecAs: Put, Rec: fenced, Why: CommitUnanswered}, x.Plan.StoreUntil)
}

func (x Execution) fenceDecided(v Verdict, in Input, c *Config) (Execution, Action) {
	switch {
	case v == Done:
		return x.tell(x.Then)
	case v == Conflict && x.own(in.Reply.Rec):
		return x.landed(in.Reply.Rec, in.Reply.Msg, c)
	case v == Conflict:
		x.Zombie = true
		return x.again(in.Reply.Rec, in.Now, c)
	}
	return x.look(LastLook, in.Now, c)
}

// giveUp says that nothing happened once that is true. What is loose is excluded first: of a lease by its release, of an
// insert by a record in its way.
func (x Execution) giveUp(then Say, why Reason, now Instant, c *Config) (Execution, Action) {
	x.Then = then
	free := released(x.Held, c, now)
	switch {
	case x.Holding:
		return x.release(free, why, now, c)
	case x.Loose && !c.off(NoLooseFence):
		x.NewKey = true
		return x.send(Releasing, Write{RecIf: freeKey(now), RecAs: Put, Rec: free, Why: why}, x.Plan.StoreUntil)
	}
	return x.gaveUp(now, c)
}

// gaveUp answers the request once no write is left to try. Before it answers "Unavailable" it reads the record once more, which
// may hold a better answer.
func (x Execution) gaveUp(now Instant, c *Config) (Execution, Action) {
	if x.Then.Code == Unavailable {
		return x.look(LastLook, now, c)
	}
	return x.tell(x.Then)
}

// release gives the lease back. Nothing has run, or the handler of a wrapped operation promised that nothing happened: then
// what others parked is free too, and contention is no answer. Nobody else knows that nothing happened, and the lease of a wrapped
// handler would become unknown.
func (x Execution) release(free Record, why Reason, now Instant, c *Config) (Execution, Action) {
	fence, until := holder(x.Held, InProgress), x.Plan.StoreUntil
	if (x.Runs == 0 || c.Kind == Wrapped) && !c.off(NoParkedRelease) {
		fence = holder(x.Held, InProgress, Unknown)
	}
	promised := c.Kind == Wrapped && x.Runs > 0 && !c.off(NoLatePromise)
	unused := x.Runs == 0 && !c.runsAnyway() // else the handler, which runs after this, needs the time
	switch {
	case promised: // its handler may have run for longer than anybody waits for it
		until = x.completeUntil(now, c)
	case now >= until && (unused || c.Kind != Wrapped):
		until = x.lateUntil(x.Held, now, c)
	}
	x, a := x.send(Releasing, Write{RecIf: fence, RecAs: Put, Rec: free, Why: why}, until)
	x.At.Persists = promised || unused && !c.off(NoGiveBackPersistence)
	return x, a
}

// lateUntil is for how long a lease is given back whose execution has no time left, because its process was frozen. Of one that may be
// taken over that is at most until it ends: others only wait for that. Any other would become unknown.
func (x Execution) lateUntil(r Record, now Instant, c *Config) Instant {
	until := min(now+c.CompleteFor, x.completeUntil(now, c))
	if r.RunsAgain() {
		until = min(until, r.Lease)
	}
	return until
}

func (x Execution) releaseDecided(v Verdict, in Input, c *Config) (Execution, Action) {
	switch {
	case v == Conflict && x.own(in.Reply.Rec):
		return x.landed(in.Reply.Rec, in.Reply.Msg, c)
	case v == Conflict && x.Holding && !x.mine(in.Reply.Rec):
		x.Zombie = true
	case v != Done && v != Conflict && x.Loose: // what was to be told is not proven
		return x.tell(Say{Code: Unavailable})
	}
	if v != Done {
		return x.gaveUp(in.Now, c)
	}
	return x.tell(x.Then)
}

// lastLook answers with what stands in the record once nothing may be sent any more. Anything else proves nothing.
func (x Execution) lastLook(in Input, c *Config) (Execution, Action) {
	r := in.Reply.Rec
	x.Zombie = x.Zombie || x.Holding && r.State != Absent && !x.mine(r)
	switch {
	case in.Reply.Code != OK:
	case x.own(r):
		return x.landed(r, in.Reply.Msg, c)
	case answers(r, in.Now):
		return x.replay(r)
	}
	return x.tell(Say{Code: Unavailable})
}
