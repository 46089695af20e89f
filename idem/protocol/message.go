package protocol

// MessageState is the state of a message.
type MessageState uint8

// The states of a message.
const (
	NoMessage MessageState = iota
	Due                    // pending: to be claimed
	Claimed                // somebody has the right to call
	Delivered              // final: the provider has it
	Declined               // final: the provider said no
	InDoubt                // unknown: a call may have happened, and none may follow
	Evidenced              // a definite answer is kept that could not be settled yet
	Dead                   // an operator must decide
	Cancelled              // final: it was given up, and nothing happened
)

// Final says that the message is at its end.
func (s MessageState) Final() bool { return s == Delivered || s == Declined || s == Cancelled }

// Kept is the definite evidence that a message keeps because it could not be settled. Both may be there: then they
// contradict each other.
type Kept uint8

// The kinds of evidence, as bits.
const (
	KeptDelivered Kept = 1 << iota
	KeptDeclined
)

// Message is the header of a stored message.
type Message struct {
	// State is where the message is in its life.
	State MessageState
	// Index is its place in the chain, from 1.
	Index uint8
	// Detached messages belong to an operation that was complete without them. Undoes says that the message undoes an
	// earlier phase of its chain. Sealed says that nobody can open its payload any more, Foreign that its reader does
	// not know its topic, or can't read it: another release sends it.
	Detached, Undoes, Sealed, Foreign bool
	// Refused says that the provider refused the last call: no further one is wanted. Unfailed says that it is dead and nobody
	// was told that it did not happen: its record could not be failed with it, or evidence buried it beside a complete one. Ended says that its chain is at its end: it may go a retention later.
	Refused, Unfailed, Ended bool
	// Kept is the evidence that could not be settled yet.
	Kept Kept
	// Attempts counts the calls since the last redrive that neither delivered nor declined, without those of [OutUncalled], Died the
	// claims that ended without a word.
	Attempts, Died uint8
	// Epoch grows with each claim, and with each Redrive.
	Epoch uint32

	// Op is the operation, Owner the claim that holds or last held it, Revision the write that made the row.
	Op, Owner, Revision ID

	// Created is when it was committed, FirstClaimed when a worker first had it, and NextAttempt when it is due again.
	Created, FirstClaimed, NextAttempt Instant
	// LookAt is when the sweep, or the reconciler, looks at it.
	LookAt Instant
	// Lease is until when the claim is the right to call.
	Lease Instant
	// OpenSince is when the first call whose outcome is not known was allowed: what "may have happened" means.
	OpenSince Instant
	// Done is when it ended; 0 until then.
	Done Instant
	// Cleared is when the question was put by which absence was last proven: what is open was called after it.
	Cleared Instant
	// Redriven is when an operator last started it anew, or what it follows in a chain that was restored: its age counts from then.
	Redriven Instant
}

// Topic is what delivery depends on besides the message: the topic's promises and bounds. As in
// [Config], no field has a default.
type Topic struct {
	// KeysHonoured, KeyRetention and Margin say until when an open call may be repeated: while OpenSince + KeyRetention −
	// Margin lies ahead, and never where keys are not honoured.
	KeysHonoured         bool
	KeyRetention, Margin Millis
	// AbsentAfter is how long after a lease absence is proof: a freeze, the longest request, its listing, and skew.
	AbsentAfter Millis
	// Probed says that the provider can be asked what became of a call.
	Probed bool
	// AttemptsMax bounds Attempts, and apart from them Died.
	AttemptsMax uint8
	// AgeMax bounds the message's age, AbandonAfter that of a first message that nobody has claimed, UnknownMax the time for
	// which probes may decide nothing.
	AgeMax, AbandonAfter, UnknownMax Millis
	// ClaimLease is how long a claim is the right to call; no call leaves in its last SettleMargin.
	ClaimLease, SettleMargin Millis
	// CallFor is how long one call may take: the next message of a chain is claimed only where a call and its settlement
	// fit in.
	CallFor Millis
	// SettleFor is how long a settlement is sent before its evidence is kept instead; KeepFor how long that is sent, where
	// the caller has no deadline and somebody can bring the evidence again.
	SettleFor, KeepFor Millis
	// SweepGrace is how long the sweep leaves a due message to its wake-up.
	SweepGrace Millis
	// RefuseBefore is when data was lost: what was created before may have been called without a trace.
	RefuseBefore Instant
}

// dueAt is from when the message wants somebody.
func (m Message) dueAt() Instant {
	switch m.State {
	case Claimed:
		return m.Lease
	case Evidenced:
		return m.LookAt
	case NoMessage, Due, Delivered, Declined, InDoubt, Dead, Cancelled: // as planned
	}
	return m.NextAttempt
}

// restored says that the message may be older than what was lost: nobody knows what had become of it by then. Proof of
// absence after the loss ends that.
func (m Message) restored(c *Config) bool { return max(m.Created, m.Cleared) < c.Topic.RefuseBefore }

// openSince is since when a call may have happened. Of what was restored after a loss of data nobody knows better than
// that it may have been called since it was created.
func (m Message) openSince(c *Config) Instant {
	if m.OpenSince == 0 && m.restored(c) && !c.off(NoRestoredOpen) {
		return m.Created
	}
	return m.OpenSince
}

// offerable is the rule for every message with an open call, in whatever state: never a second call unless the provider
// will recognise it as the same.
func (m Message) offerable(now Instant, c *Config) bool {
	t := &c.Topic
	open := m.openSince(c)
	return open == 0 || c.off(NoOpenSince) || t.KeysHonoured && (now < open+t.KeyRetention-t.Margin || c.off(NoKeyMargin))
}

// ambiguous says that there may be several attempts of which the provider would have executed each, so that a decline says
// nothing unless its own attempt is known.
func (m Message) ambiguous(c *Config) bool {
	return !c.Topic.KeysHonoured && (m.Epoch > 1 || m.Created < c.Topic.RefuseBefore) && !c.off(WeakSettles)
}

// Doubted says that attempts may have been lost, each of which the provider would have executed: a decline is of one.
func (m Message) Doubted(c *Config) bool {
	return !c.Topic.KeysHonoured && m.restored(c) && !c.off(WeakSettles)
}

// Provable is from when absence is proof: no request can be under way any more, and all that was made is listed. What was
// restored after a loss of data may have been claimed on the last instant before it.
func (m Message) Provable(c *Config) Instant {
	t := &c.Topic
	if c.off(NoAbsenceWait) {
		return 0
	}
	lease := m.Lease
	if m.restored(c) && !c.off(NoRestoredLease) {
		lease = max(lease, t.RefuseBefore+t.ClaimLease)
	}
	return lease + t.AbsentAfter
}

// over says that no further call is wanted.
func (m Message) over(now Instant, c *Config) bool {
	t := &c.Topic
	return m.Refused || m.Attempts >= t.AttemptsMax || m.died() >= t.AttemptsMax || now >= m.began(c)+t.AgeMax
}

// began is from when the message's age counts: an operator may have started it anew.
func (m Message) began(c *Config) Instant {
	if c.off(NoRedrivenAge) {
		return m.Created
	}
	return max(m.Created, m.Redriven)
}

// died counts the claim that is dead now, too: a message that kills its workers comes to an end.
func (m Message) died() uint8 {
	if m.State == Claimed {
		return m.Died + 1
	}
	return m.Died
}

// Abandonable says that the message is the first of an operation of which nothing can have happened: nobody has ever had the right to call.
func (m Message) Abandonable(c *Config) bool {
	return m.State == Due && m.Index == 1 && !m.Detached && m.FirstClaimed == 0 && m.openSince(c) == 0
}

// givenUp says of a detached message that the application has written what it means that it was not executed.
func (m Message) givenUp() bool {
	return m.Detached && m.State == Dead && m.OpenSince == 0 && !m.Unfailed
}

// foreign says that another release decides about the message: nobody else writes anything to it.
func (m Message) foreign(c *Config) bool { return m.Foreign && !c.off(OthersJudged) }

// The transitions of a message, each in one place.

// following is the first message of a chain, or the next one.
func following(op ID, index uint8, undoes bool, now Instant, c *Config) Message {
	return Message{
		State: Due, Index: index, Op: op, Undoes: undoes, Created: now, NextAttempt: now, LookAt: now + c.Topic.SweepGrace,
	}
}

// next follows the message in its chain. Where the message was restored after a loss of data, nobody knows whether the next one was
// there already, under the same id, and called: it counts as old as the one that it follows. What an operator has started anew is young
// in all of its chain: else the release of a hold, or the payout itself, would be given up for its age before it is called. That admits
// no second call, because Created alone tells since when one may be open.
func (m Message) next(undoes bool, now Instant, c *Config) Message {
	n := following(m.Op, m.Index+1, undoes, now, c)
	if m.restored(c) && !c.off(NoRestoredChain) {
		n.Created, n.Redriven = m.Created, m.Redriven
	}
	return n
}

// claim takes the right to call until the lease ends. It moves LookAt only where the lease ends later, so that most
// messages pay for entering and leaving the index and for nothing between.
func claim(m Message, owner ID, now Instant, c *Config) Message {
	m.OpenSince = m.openSince(c)
	m.Died = m.died()
	m.State, m.Owner, m.Lease = Claimed, owner, now+c.Topic.ClaimLease
	m.Epoch++
	if m.FirstClaimed == 0 {
		m.FirstClaimed = now
	}
	if m.OpenSince == 0 {
		m.OpenSince = now
	}
	m.LookAt = max(m.LookAt, m.Lease)
	return m
}

// park keeps owner, epoch and lease. Nobody needs to look before absence could be proven.
func park(m Message, now Instant, c *Config) Message {
	m.OpenSince = m.openSince(c)
	m.Died = m.died()
	m.State, m.LookAt = InDoubt, max(now, m.Provable(c))
	return m
}

// backOff gives the claim back until its next attempt. Nothing is open any more where this very call did nothing and none
// was open before it.
func backOff(m Message, at Instant, stillOpen bool, c *Config) Message {
	m.State, m.NextAttempt = Due, at
	if !stillOpen {
		m.OpenSince = 0
	}
	if m.LookAt < at {
		m.LookAt = at + c.Topic.SweepGrace
	}
	return m
}

// offer starts it again, its absence being proven: as of when the question was put, for what is lost later is no part of the answer.
func offer(m Message, asked, now Instant, c *Config) Message {
	m.State, m.OpenSince, m.Cleared = Due, 0, asked
	m.NextAttempt, m.LookAt = now, now+c.Topic.SweepGrace
	return m
}

// bury puts it before an operator.
func bury(m Message, now Instant, c *Config) Message {
	m.OpenSince = m.openSince(c)
	m.Died = m.died()
	m.State, m.LookAt = Dead, now
	return m
}

// cancel ends it without an effect.
func cancel(m Message, now Instant) Message {
	m.State, m.Done = Cancelled, now
	return m
}

// redriven has what is open probed, at once, and what is not delivered, with attempts and age counted anew. The epoch
// grows, so that nothing that was under way when the message died can still match its fence.
func redriven(m Message, now Instant, c *Config) Message {
	m.OpenSince = m.openSince(c)
	m.Epoch++
	m.Attempts, m.Died, m.Refused, m.Unfailed, m.Redriven = 0, 0, false, false, now
	if m.OpenSince != 0 {
		m.State, m.LookAt = InDoubt, now
		return m
	}
	m.State, m.NextAttempt, m.LookAt = Due, now, now+c.Topic.SweepGrace
	return m
}
