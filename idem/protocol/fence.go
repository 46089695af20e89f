package protocol

// Fence is the condition of a write on one row: one of its alternatives must hold. The zero Fence has none, and is for
// rows that the write leaves alone.
type Fence struct {
	// Free, where set, admits a row that is absent, or free at this instant.
	Free Instant
	// Absent admits no row.
	Absent bool
	// Seen, where set, admits exactly the row that was seen: Op and this revision.
	Seen ID
	// States, where set, admits the holder's own row: Op, Owner, one of these states (a bit for each), and Epoch unless
	// AnyEpoch is set.
	States   uint16
	Epoch    uint32
	AnyEpoch bool
	// Open admits a message that is not final, held by any worker or by none: definite evidence has no other fence.
	Open bool
	// Pending admits the record of Op while its chain has not ended, Ended once it has: its record is final, or another's.
	Pending, Ended bool
	// NotDead demands besides that a message is not dead.
	NotDead bool

	// Op is the incarnation and Owner the execution that Seen, States, Pending and Ended are about.
	Op, Owner ID
	// LeaseBelow, where set, demands besides that the stored lease ends before: a renewal never shortens one.
	LeaseBelow Instant
}

// bits is a set of states.
func bits[S ~uint8](states ...S) (set uint16) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

// freeKey admits a key that may be reserved at now.
func freeKey(now Instant) Fence { return Fence{Free: now} }

// holder admits the row that the execution holds.
func holder(r Record, states ...State) Fence {
	return Fence{Op: r.Op, Owner: r.Owner, Epoch: r.Epoch, States: bits(states...)}
}

// seen admits exactly the row that was read: any write since gave it another revision.
func seen(r Record, c *Config) Fence {
	if c.off(NoRevision) {
		return Fence{Op: r.Op, Owner: r.Owner, Epoch: r.Epoch, States: bits(r.State)}
	}
	return Fence{Op: r.Op, Seen: r.Revision}
}

// AdmitsRecord says whether a stored record satisfies the fence.
func (f Fence) AdmitsRecord(r Record) bool {
	if f == (Fence{}) {
		return true
	}
	if f.LeaseBelow != 0 && r.Lease >= f.LeaseBelow {
		return false
	}
	if f.Absent && r.State == Absent || f.Free != 0 && r.FreeAt(f.Free) {
		return true
	}
	if f.Ended {
		return r.Op != f.Op || r.State.Final()
	}
	if r.State == Absent || r.Op != f.Op {
		return false
	}
	return !f.Seen.None() && r.Revision == f.Seen ||
		f.States&(1<<r.State) != 0 && r.Owner == f.Owner && (f.AnyEpoch || r.Epoch == f.Epoch) ||
		f.Pending && r.State == Pending
}

// AdmitsMessage says whether a stored message satisfies the fence.
func (f Fence) AdmitsMessage(m Message) bool {
	switch {
	case f == (Fence{}):
		return true
	case m.State == NoMessage:
		return f.Absent
	case f.NotDead && m.State == Dead || m.Op != f.Op:
		return false
	}
	return !f.Seen.None() && m.Revision == f.Seen ||
		f.States&(1<<m.State) != 0 && m.Owner == f.Owner && (f.AnyEpoch || m.Epoch == f.Epoch) ||
		f.Open && !m.State.Final()
}
