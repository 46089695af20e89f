package protocol

// Acquire: from the first look to the right to execute, or to an answer.

// admit asks once whether a new key may begin.
func (x Execution) admit() (Execution, Action) {
	x.Phase, x.Asked = Admitting, true
	return x, Action{Do: Admit}
}

// turnedAway looks whether there is a record all the same: what exists is answered, whatever may not begin.
func (x Execution) turnedAway(now Instant, c *Config) (Execution, Action) {
	if x.Turned = true; x.Looked {
		return x.tell(Say{Code: TurnedOff})
	}
	return x.look(Looking, now, c)
}

// judge decides by the record that is in the way. The order is the contract: expiry, then the fingerprint in every
// unexpired state, then the state.
func (x Execution) judge(r Record, now Instant, c *Config) (Execution, Action) {
	switch {
	case r.FreeAt(now):
		return x.vacant(now, c)
	case r.abandoned(now, c):
		return x.freeAbandoned(r, now, c)
	case r.State.Final() && r.Tombstone && r.Expires != 0 && now >= r.Expires:
		return x.tell(Say{Code: Gone, State: r.State, Op: r.Op})
	case r.Match == Different && !c.off(NoMatch):
		return x.tell(Say{Code: Mismatch})
	case r.State == Pending || r.State.Final():
		return x.replay(r)
	case x.ownReserve(r, c):
		return x.hold(r, now, c)
	case r.State == Unknown:
		return x.tell(Say{Code: NotKnown, State: Unknown, Op: r.Op})
	case now < r.Lease: // of a holder who is alive, or of an answer that caches may hold
		return x.busy(r, now)
	case r.State == InProgress && !r.RunsAgain() && !r.deadOnEveryClock(now, c):
		return x.busy(r, now)
	case r.State == InProgress && !r.RunsAgain():
		return x.parkOther(r, c)
	case !r.permits(c): // nothing is written: it is as it was for those who observe, and ends with its retention
		return x.tell(Say{Code: NotKnown, State: Unknown, Op: r.Op, OnlyObserved: true})
	}
	return x.takeOver(r, now, c)
}

// ownReserve says that the row is this execution's reserve, whose reply was lost. Somebody may have parked it meanwhile.
func (x Execution) ownReserve(r Record, c *Config) bool {
	return (r.State == InProgress || r.State == Unknown) && r.Owner == x.Owner && !c.off(NoOwnReserve)
}

// vacant begins a new incarnation.
func (x Execution) vacant(now Instant, c *Config) (Execution, Action) {
	switch {
	case x.Request.LookOnly:
		return x.tell(Say{Code: Vacant})
	case x.Request.Barred:
		return x.tell(Say{Code: Unavailable})
	case x.Turned:
		return x.tell(Say{Code: TurnedOff})
	case !x.Asked:
		return x.admit()
	}
	return x.reserve(now, c)
}

// busy waits for the holder where the policy says so.
func (x Execution) busy(r Record, now Instant) (Execution, Action) {
	if now < x.Request.WaitUntil && now < x.Plan.HandlerUntil && !x.Request.LookOnly {
		x.Phase = Waiting
		x.Waits = min(x.Waits+1, 250)
		return x, Action{Do: Wait, Wake: min(x.Request.WaitUntil, x.Plan.HandlerUntil), Pause: x.Waits}
	}
	return x.tell(Say{Code: Busy, State: InProgress, Op: r.Op})
}

// reserve inserts the record of a new incarnation; a kind without a lease only prepares it.
func (x Execution) reserve(now Instant, c *Config) (Execution, Action) {
	x.Held = reserved(c, x.Request.Incarnation.Plus(uint64(x.Holds)), x.Owner, x.Plan.LeaseUntil)
	switch {
	case x.tooLate(now, c):
		return x.giveUp(Say{Code: Late}, NoReason, now, c)
	case !c.Kind.leases():
		x.Holding = false
		return x.run(now, c)
	}
	return x.send(Reserving, Write{RecIf: freeKey(now), RecAs: Put, Rec: x.Held}, x.reserveUntil(now, c))
}

// takeOver continues an incarnation of which nothing happened, or whose dead holder can't commit any more.
func (x Execution) takeOver(r Record, now Instant, c *Config) (Execution, Action) {
	switch {
	case x.Request.LookOnly:
		return x.tell(Say{Code: Vacant})
	case x.Request.Barred:
		return x.tell(Say{Code: Unavailable})
	case x.tooLate(now, c):
		return x.giveUp(Say{Code: Late}, NoReason, now, c)
	}
	next := takenOver(r, c, x.Owner, x.Plan.LeaseUntil)
	if c.off(NoEpoch) {
		next.Epoch = r.Epoch
	}
	if c.off(NewIncarnation) {
		next.Op = x.Request.Incarnation.Plus(uint64(x.Holds))
	}
	return x.send(TakingOver, Write{RecIf: seen(r, c), RecAs: Put, Rec: next}, x.reserveUntil(now, c))
}

func (x Execution) reserveUntil(now Instant, c *Config) Instant {
	until := x.Plan.HandlerUntil
	if c.runsAnyway() && now >= until { // the rest of the time is for giving back what had no reply
		until = now + max(1, (x.Plan.StoreUntil-now)/2)
	}
	return min(until, now+c.ReserveFor)
}

// parkOther: a dead lease of a wrapped handler is no permission to run again. The request or sweep that meets it says so in the record.
func (x Execution) parkOther(r Record, c *Config) (Execution, Action) {
	if x.Request.LookOnly {
		return x.tell(Say{Code: NotKnown, State: Unknown, Op: r.Op})
	}
	return x.send(ParkingOther, Write{RecIf: seen(r, c), RecAs: Put, Rec: parked(r), Why: LeaseOver}, x.Plan.StoreUntil)
}

// freeAbandoned frees the key of a dead lease that only who observes could have taken over, and that nobody did. The row says so
// first: what a store takes for a free key is a row that is final or Retryable.
func (x Execution) freeAbandoned(r Record, now Instant, c *Config) (Execution, Action) {
	if x.Request.LookOnly || x.Request.Barred {
		return x.vacant(now, c)
	}
	return x.send(ParkingOther, Write{RecIf: seen(r, c), RecAs: Put, Rec: fencedOff(r, c, r.Lease+c.Skew), Why: LeaseOver}, x.Plan.StoreUntil)
}

// parkedOther goes on with what the dead lease has become: unknown, or free.
func (x Execution) parkedOther(v Verdict, in Input, c *Config) (Execution, Action) {
	switch v {
	case Done:
		return x.judge(x.At.W.Rec, in.Now, c)
	case Conflict:
		return x.again(in.Reply.Rec, in.Now, c)
	case Again, Nothing, Unclear: // not known to be written
	}
	return x.tell(Say{Code: Unavailable})
}

func (x Execution) reserveDecided(v Verdict, in Input, c *Config) (Execution, Action) {
	switch v {
	case Done:
		return x.hold(x.At.W.Rec, in.Now, c)
	case Conflict: // with what its own reserve has become, in whoever's hands: that one has landed
		x.NewKey = x.NewKey || x.Phase == Reserving && in.Reply.Rec.Op == x.At.W.Rec.Op && !c.off(NoQuotaKept)
		return x.again(in.Reply.Rec, in.Now, c)
	case Unclear:
		return x.giveBack(in.Now, c)
	case Again, Nothing: // not reserved
	}
	if in.Reply.Code == Contention { // somebody is at the key at this instant
		return x.tell(Say{Code: Busy, State: InProgress})
	}
	return x.tell(Say{Code: Unavailable})
}

// again judges what won a race.
func (x Execution) again(r Record, now Instant, c *Config) (Execution, Action) {
	if x.Phase != Reserving && x.Phase != TakingOver && x.Phase != ParkingOther && !c.off(NoNewOwner) { // another hold needs another owner
		x.Holds++
		x.Owner = x.Request.Seed.Plus(uint64(x.Holds) << 8)
		x.Holding = false
	}
	if x.Loops++; x.Loops < c.LoopsMax && now < x.Plan.HandlerUntil || x.ownReserve(r, c) && !c.off(NoLateOwnReserve) {
		return x.judge(r, now, c)
	}
	switch { // there is no time left to execute anything in: answer with what won, where that is an answer
	case answers(r, now):
		return x.replay(r)
	case r.State == Unknown && r.Match == Same:
		return x.tell(Say{Code: NotKnown, State: Unknown, Op: r.Op})
	case r.Match == Different && !r.FreeAt(now):
		return x.tell(Say{Code: Mismatch})
	}
	return x.tell(Say{Code: Busy, State: InProgress, Op: r.Op})
}

// hold has the right to execute, by a lease that the store has. Where too little of it is left, or somebody has parked it,
// it is given back: nothing has run under it.
func (x Execution) hold(r Record, now Instant, c *Config) (Execution, Action) {
	x.NewKey = x.NewKey || x.Phase == Reserving && !(c.off(NoQuotaKept) && x.At.Tainted)
	x.Held, x.Holding = r, true
	if x.late(now, c) || now >= r.Lease || r.State == Unknown {
		return x.giveUp(Say{Code: Late}, NoReason, now, c)
	}
	return x.run(now, c)
}

// late says that the rest of the handler's time is too short to execute anything in. A wrapped handler that begins all the same is cut off
// in its first call, and nobody knows what came of that.
func (x Execution) late(now Instant, c *Config) bool {
	return x.Plan.HandlerUntil-now < max(1, x.Plan.WorkLeast(c))
}

// tooLate says that nothing is begun any more. The key of what runs anyway has to say so for as long as anything is written: it is given
// back at once, and stays only observed.
func (x Execution) tooLate(now Instant, c *Config) bool {
	if c.runsAnyway() {
		return now >= x.Plan.StoreUntil
	}
	return x.late(now, c)
}

// giveBack takes back a reserve that may have landed, or may land yet: nothing has run under it. Where it has not landed,
// the record is put in its way, so that it never can. A store that is down is answered soon all the same.
func (x Execution) giveBack(now Instant, c *Config) (Execution, Action) {
	x.Then = Say{Code: Unavailable}
	x.NewKey = x.NewKey || x.Phase == Reserving
	if c.off(NoGiveBack) {
		return x.tell(x.Then)
	}
	w := x.At.W
	fence := holder(w.Rec, InProgress, Unknown)
	if !c.off(NoGiveBackInsert) { // and what the reserve itself admits
		if fence.Free = w.RecIf.Free; !c.off(NoGiveBackSeen) {
			fence.Seen = w.RecIf.Seen
		}
	}
	free := released(w.Rec, c, x.At.Until)
	until := x.Plan.StoreUntil
	if c.GiveBackFor != 0 {
		until = min(until, now+c.GiveBackFor)
	}
	if now >= until {
		until = x.lateUntil(w.Rec, now, c)
	}
	x, a := x.send(GivingBack, Write{RecIf: fence, RecAs: Put, Rec: free, Why: ReserveUnanswered}, until)
	x.At.Persists = !c.off(NoGiveBackPersistence)
	return x, a
}

// woke goes on after a pause, or renews the lease of the handler that runs.
func (x Execution) woke(now Instant, c *Config) (Execution, Action) {
	if x.Phase == Waiting {
		return x.look(Looking, now, c)
	}
	return x.renew(now, c)
}
