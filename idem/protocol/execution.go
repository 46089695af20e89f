package protocol

// Phase is where an execution is.
type Phase uint8

// The phases of an execution.
const (
	Looking      Phase = iota + 1 // reads what is in the way
	Admitting                     // asks whether a new key may begin
	Waiting                       // for another execution, as the policy says
	Reserving                     // inserts its record
	TakingOver                    // of a key that is free within its incarnation, or of a dead lease
	ParkingOther                  // a dead lease whose handler may have done anything, or whose retention is over
	GivingBack                    // a reserve without a reply
	Running                       // the handler is; nothing is sent but renewals
	Renewing                      // the lease, beside the handler
	Committing                    // the transaction of a handler's writes, messages and answer
	Storing                       // an answer by itself
	Completing                    // the answer of a wrapped handler
	FencingOff                    // a commit without a reply
	Releasing                     // what is held, because nothing happened
	Parking                       // what is held, because anything may have happened
	LastLook                      // reads once more before "unavailable" is told
	Ended
)

// Request is what distinguishes one execution from another of the same operation.
type Request struct {
	// Seed is random: every owner, revision and token is derived from it. Incarnation is another one, for operation ids.
	Seed, Incarnation ID
	// LookOnly answers from what is there and executes nothing.
	LookOnly bool
	// Barred executes nothing either: the key may be older than a loss of data. What is final replays.
	Barred bool
	// WaitUntil is until when a busy key is waited for; 0 is not at all.
	WaitUntil Instant
}

// Execution is one request, from its first look to its answer. The zero value is not ready: see [NewExecution].
type Execution struct {
	// Phase is what the execution waits for.
	Phase Phase
	// HandlerOn says that the handler is running, Holding that a lease is held, Loose that bytes which were sent may land
	// yet, Looked that the record was read, Asked that the quota
	// was asked, Turned that a new key may not begin, NewKey that one was reserved or may be,
	// Zombie that the record was found another's by its holder.
	HandlerOn, Holding, Loose, Looked, Asked, Turned, NewKey, Zombie bool
	// Runs counts runs of the handler, Loops what won a race, Sends transactions, Holds owners, Waits pauses, Writes revisions.
	Runs, Loops, Sends, Holds, Waits uint8
	Writes                           uint32

	// Request is what was asked for, Plan its instants, and Owner its identity as the holder of a lease.
	Request Request
	Plan    Plan
	Owner   ID
	// Held is the record as it is held, or as it would be inserted.
	Held Record
	// At is the write that is being tried, Result what the handler ended with, and Then what is told after a last write
	// whose reply does not matter.
	At     Attempt
	Result Result
	Then   Say
}

// NewExecution returns an execution that waits for its [Begin].
func NewExecution(r Request) Execution { return Execution{Request: r} }

// Next is the whole protocol of a request.
func (x Execution) Next(in Input, c *Config) (Execution, Action) {
	switch in.What {
	case Begin:
		return x.begin(in, c)
	case Admitted:
		return x.reserve(in.Now, c)
	case TurnedAway:
		return x.turnedAway(in.Now, c)
	case HandlerEnded:
		return x.handled(in, c)
	case Woke:
		return x.woke(in.Now, c)
	case Replied: // below
	case Answered, Called, Probed, Alerted: // never of an execution
	}
	switch x.Phase {
	case Looking:
		if in.Reply.Code != OK {
			return x.tell(Say{Code: Unavailable})
		}
		return x.judge(in.Reply.Rec, in.Now, c)
	case LastLook:
		return x.lastLook(in, c)
	default: // the reply is to a write
	}
	var v Verdict
	if x.At, v = x.At.Judge(in.Reply, in.Now, c); v == Again {
		if c.off(NoFrozenBytes) && x.Phase == Committing {
			return x.commit(in.Now, c)
		}
		return x, Action{Do: Send, Write: x.At.W, Until: x.At.Until, Pause: x.At.Tries}
	}
	return x.decided(v, in, c)
}

func (x Execution) begin(in Input, c *Config) (Execution, Action) {
	x.Plan, x.Owner = PlanOf(in.Now, in.Deadline, c), x.Request.Seed
	if !x.Plan.Fits(c) && !c.runsAnyway() {
		return x.tell(Say{Code: Late})
	}
	if x.Request.LookOnly || x.Request.Barred || c.ReadFirst || !c.Kind.leases() {
		return x.look(Looking, in.Now, c)
	}
	return x.admit()
}

// decided goes on once a write and all its tries are judged.
func (x Execution) decided(v Verdict, in Input, c *Config) (Execution, Action) {
	switch x.Phase {
	case Reserving, TakingOver:
		return x.reserveDecided(v, in, c)
	case ParkingOther:
		return x.parkedOther(v, in, c)
	case Renewing:
		return x.renewDecided(v, in, c)
	case Committing, Storing:
		return x.commitDecided(v, in, c)
	case Completing:
		return x.completeDecided(v, in, c)
	case FencingOff:
		return x.fenceDecided(v, in, c)
	case Releasing:
		return x.releaseDecided(v, in, c)
	case Parking:
		x.Zombie = x.Zombie || v == Conflict && !x.mine(in.Reply.Rec)
	case Looking, Admitting, Waiting, GivingBack, Running, LastLook, Ended: // only GivingBack waits for a verdict
	}
	return x.tell(x.Then) // Parking, GivingBack: best effort
}

// tell ends the execution.
func (x Execution) tell(s Say) (Execution, Action) {
	x.Phase, s.Zombie = Ended, x.Zombie
	return x, Action{Do: Tell, Say: s}
}

// look reads the record.
func (x Execution) look(p Phase, now Instant, c *Config) (Execution, Action) {
	x.Phase, x.Looked = p, true
	return x, Action{Do: Read, Until: x.ReadUntil(now, c)}
}

// ReadUntil is until when a reply to a read is waited for, 0 is for as long as to any: a store that does not answer must not take the
// time in which the caller is told so. Once that is over, because a handler has overstayed, the process lives on, perhaps until it is
// killed.
func (x Execution) ReadUntil(now Instant, c *Config) Instant {
	until := x.Plan.ReplyUntil()
	switch killed := x.killed(c); {
	case now < until:
		return until
	case now < killed:
		return now + (killed-now)/2
	}
	return 0
}

// killed is when the platform ends the process, 0 where it does not.
func (x Execution) killed(c *Config) Instant {
	if !c.Kills || !x.Plan.Bounded {
		return 0
	}
	return x.Plan.LeaseUntil - c.LeaseMargin
}

// send freezes a write of the record and sends it for the first time. Each write makes a revision of its own: a write has
// landed if the row has it.
func (x Execution) send(p Phase, w Write, until Instant) (Execution, Action) {
	x.Writes++
	w.Rec.Revision = x.Request.Seed.Plus(uint64(x.Writes))
	w.Rec.Match = Same
	x.Phase, x.At = p, Attempt{W: w, Until: until, Persists: p == Completing || p == Parking}
	return x, Action{Do: Send, Write: w, Until: until}
}

// mine says that the row is this execution's own, in whatever state.
func (x Execution) mine(r Record) bool {
	return r.State != Absent && r.Op == x.Held.Op && r.Owner == x.Owner
}

// own says that the row is an answer that this execution wrote: any of its sendings may have landed.
func (x Execution) own(r Record) bool { return x.mine(r) && (r.State == Pending || r.State.Final()) }

// executed answers with what this execution wrote and the store has.
func (x Execution) executed(r Record, m Message) (Execution, Action) {
	return x.tell(Say{Code: Executed, Answer: r.Answer, State: r.State, Op: r.Op, Carry: m})
}

// replay answers with what is stored.
func (x Execution) replay(r Record) (Execution, Action) {
	return x.tell(Say{Code: Replayed, Answer: r.Answer, State: r.State, Op: r.Op})
}

// answers says that the row answers requests at now.
func answers(r Record, now Instant) bool {
	return r.Match == Same && (r.State == Pending || r.State.Final() && !r.FreeAt(now) && !(r.Tombstone && now >= r.Expires && r.Expires != 0))
}
