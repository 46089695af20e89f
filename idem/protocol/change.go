package protocol

// Errand is why somebody who does not hold a record comes to it.
type Errand uint8

// The errands.
const (
	ParkDead  Errand = iota + 1 // a sweep: a dead lease of a wrapped handler is unknown
	Reconcile                   // a reconciler: ask what became of what is unknown
	Resolve                     // an operator knows the answer
	Free                        // an operator knows that nothing happened, or wants a holder fenced off
	Extend                      // an application wants the answer kept for longer
	EndLife                     // an application ended the resource that the answer is about
	Bust                        // an operator wants the answer gone
)

// Change is one look at a record by somebody who does not hold it, and what follows. Its fence is the revision that was
// read: whatever has been written since makes it judge anew, or give up.
type Change struct {
	// Phase is what the change waits for, and Errand why it was begun.
	Phase  Phase
	Errand Errand
	// Op is the incarnation that is meant, None where the errand is about whatever is there.
	Op ID
	// Seen is the revision that a person decided about; None where nobody did.
	Seen ID
	// Seed is random: revisions are derived from it.
	Seed ID
	// Answer is what Resolve stores; Until is Extend's; Owner is the execution whose answer Bust means.
	Answer Answer
	Until  Instant
	Owner  ID

	// Loops counts how often the record was judged.
	Loops uint8
	// Asked is when the application's Probe was asked: an absence counts from then.
	Asked Instant
	// Heard says that a cache-bust is known to have landed, and that its second write is under way. Whatever becomes of that, the answer is
	// not given any more; where the second one is not known to have landed, its key may be held for long.
	Heard bool
	// Held is the record as it was last read, and At the write that is being tried.
	Held Record
	At   Attempt
}

// changesMax bounds how often a change is judged anew because others keep changing the record.
const changesMax = 5

// Next is the whole protocol of a change.
func (x Change) Next(in Input, c *Config) (Change, Action) {
	switch {
	case in.What == Begin:
		x.Phase = Looking
		return x, Action{Do: Read}
	case in.What == Probed:
		return x.probed(in, c)
	case x.Phase == Looking:
		if in.Reply.Code != OK {
			return x.tell(Unavailable)
		}
		return x.judge(in.Reply.Rec, in.Now, c)
	}
	var v Verdict
	switch x.At, v = x.At.Judge(in.Reply, in.Now, c); v {
	case Again:
		return x, Action{Do: Send, Write: x.At.W, Until: x.At.Until, Pause: x.At.Tries}
	case Done:
		return x.landed(in.Now, c)
	case Conflict:
		return x.conflict(in.Reply.Rec, in.Now, c)
	case Nothing, Unclear: // not known to be changed
	}
	return x.tell(Unavailable)
}

// landed: the change is known to be stored. A cache-bust that was sent freed its key as late as its bytes could have landed.
// They have, so the caches' age counts from now.
func (x Change) landed(now Instant, c *Config) (Change, Action) {
	if x.Errand == Bust && !x.Heard && x.Held.Lease > now+c.uncached() {
		return x.sooner(now, c)
	}
	return x.tell(Changed)
}

// sooner frees the key of a cache-bust that is known to have landed.
func (x Change) sooner(now Instant, c *Config) (Change, Action) {
	x.Heard = true
	x.Loops++
	return x.write(busted(x.Held, c, now, c.uncached()), OperatorSaid, now, c)
}

func (x Change) tell(code SayCode) (Change, Action) {
	x.Phase = Ended
	return x, Action{Do: Tell, Say: Say{Code: code, State: x.Held.State, Op: x.Held.Op}}
}

// conflict: the row that is in the way may be the one that was written; its revision says so.
func (x Change) conflict(r Record, now Instant, c *Config) (Change, Action) {
	if r.State != Absent && r.Revision == x.At.W.Rec.Revision && !c.off(NoOwnChange) {
		x.Held = r
		return x.landed(now, c)
	}
	if x.Heard {
		return x.tell(Changed)
	}
	if x.Loops++; !x.Seen.None() || x.Errand == Reconcile || x.Loops >= changesMax {
		return x.tell(Stale)
	}
	return x.judge(r, now, c)
}

// judge says what the errand makes of the record as it was read.
func (x Change) judge(r Record, now Instant, c *Config) (Change, Action) {
	x.Held = r
	if c.off(NoSeenRevision) {
		x.Seen = ID{}
	}
	switch {
	case r.State == Absent || !x.Op.None() && r.Op != x.Op:
		return x.tell(NotLive)
	case !x.Seen.None() && r.Revision != x.Seen:
		return x.tell(Stale)
	}
	switch x.Errand {
	case ParkDead:
		if r.deadOnEveryClock(now, c) && !r.RunsAgain() {
			return x.write(parked(r), LeaseOver, now, c)
		}
	case Reconcile:
		if r.State == Unknown {
			x.Phase, x.Asked = Waiting, now
			return x, Action{Do: Probe}
		}
	case Resolve:
		if r.State != Unknown && !r.onlyObserved(now) {
			return x.tell(Inadmissible)
		}
		return x.write(completed(r, x.Answer, c.Life, false, now, c.Skew), OperatorSaid, now, c)
	case Free:
		if !freeable(r, now) {
			return x.tell(Inadmissible)
		}
		next := fencedOff(r, c, now)
		if r.State == InProgress && r.onlyObserved(now) { // who releases it first must not hold its key for longer
			next = fencedOff(r, c, r.Lease+c.Skew)
		}
		if r.State == Retryable || c.off(ProofIsOfAll) { // of which a person was told that another request may have run beside it
			next.Observed = false
		}
		return x.write(next, OperatorSaid, now, c)
	default:
		return x.amend(r, now, c)
	}
	return x.tell(Unchanged)
}

// freeable: what a wrapped handler sent may be under way while its lease lives, parked or not; one that is dead is parked
// first, so that it is never free without having been unknown. Any other holder is fenced off. Of a record that is held or
// unknown, proof is about its own execution: what was observed is still only observed after that, and is freed a second time.
func freeable(r Record, now Instant) bool {
	return r.State == Unknown && now >= r.Lease || r.State == InProgress && r.Kind != Wrapped || r.onlyObserved(now)
}

// probed decides by what was found. Absence counts from when the question was put: what an answer does not cover is not
// judged by it.
func (x Change) probed(in Input, c *Config) (Change, Action) {
	switch {
	case in.Outcome == OutDelivered:
		return x.write(completed(x.Held, x.Answer, c.Life, false, in.Now, c.Skew), NoReason, in.Now, c)
	case in.Outcome == OutAbsent && (x.asked(in.Now, c) >= x.Held.Lease+c.AbsentAfter || c.off(NoProof)):
		return x.write(fencedOff(x.Held, c, in.Now), ProvenAbsent, in.Now, c)
	}
	return x.tell(Undecided)
}

// asked is from when an answer counts.
func (x Change) asked(now Instant, c *Config) Instant {
	if c.off(AbsentFromAnswer) {
		return now
	}
	return x.Asked
}

// amend changes how long a final record answers. It never shortens by accident, and never lets an expired record answer
// again.
func (x Change) amend(r Record, now Instant, c *Config) (Change, Action) {
	expired := r.State.Final() && r.Expires != 0 && now >= r.Expires
	switch {
	case x.Errand == Bust && r.Owner == x.Owner && r.State == Retryable && r.Lease > now+c.uncached():
		return x.sooner(now, c) // of somebody who did not hear of it
	case x.Errand == Bust && (r.Owner != x.Owner || r.State == Retryable || expired):
		return x.tell(Unchanged)
	case x.Errand == Bust && (r.State != Completed || r.Expires == 0 || !r.bustable()):
		return x.tell(Inadmissible)
	case x.Errand == Bust:
		age := c.uncached()
		if age != 0 && !c.off(NoWireWait) { // from its latest landing, though the one who sent it may be gone by then
			age += c.changeFor() + c.WireMax
		}
		next := busted(r, c, now, age)
		if !c.off(BustKeepsOwner) { // a copy of the completion that made the answer may land yet, and would settle what its owner left
			next.Owner = x.Seed
		}
		return x.write(next, OperatorSaid, now, c)
	case !r.State.Final():
		return x.tell(Inadmissible)
	case x.Errand == EndLife && r.Expires != 0:
		return x.tell(Unchanged)
	case x.Errand == EndLife:
		r.Expires, r.Free = now, now+c.Life.Held+c.Skew
		return x.write(r, NoReason, now, c)
	case expired:
		return x.tell(NotLive)
	case r.Expires == 0 || x.Until <= r.Expires:
		return x.tell(Unchanged)
	}
	r.Free += x.Until - r.Expires
	r.Expires = x.Until
	return x.write(r, NoReason, now, c)
}

// uncached is how long after a cache-bust has landed its key is free, on the clock of the one that takes it: as soon as no
// cache can hold the old answer, and at once where there is no cache.
func (c *Config) uncached() Millis {
	if c.CacheAge == 0 || c.off(NoCacheWait) {
		return 0
	}
	return c.CacheAge + c.Skew
}

// bustable says that executing again makes nothing happen twice. Beside what was only observed, another request may have
// written more than its record.
func (r Record) bustable() bool {
	return r.Kind == Wrapped && r.Safe || r.Kind != Wrapped && r.RecordOnly && !r.Observed
}

// write sends what the record becomes, where it still is what was read.
func (x Change) write(next Record, why Reason, now Instant, c *Config) (Change, Action) {
	next.Revision = x.Seed.Plus(uint64(x.Loops) + 1)
	next.Match = Same
	x.Phase = Releasing
	x.At = Attempt{W: Write{RecIf: seen(x.Held, c), RecAs: Put, Rec: next, Why: why}, Until: now + c.changeFor()}
	x.Held = next
	return x, Action{Do: Send, Write: x.At.W, Until: x.At.Until}
}
