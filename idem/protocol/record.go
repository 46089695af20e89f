package protocol

import "cmp"

// Kind is how an operation is protected.
type Kind uint8

// The kinds of operation.
const (
	Atomic     Kind = iota + 1 // leased; every write goes through the commit
	Optimistic                 // no lease; the commit inserts the record
	Deferred                   // as Optimistic; the record is pending until its chain of messages has ended
	Wrapped                    // leased; the handler writes for itself
)

// State is the state of a record.
type State uint8

// The states of a record.
const (
	Absent State = iota
	InProgress
	Pending
	Completed
	Failed
	Retryable // nothing happened: the next request executes
	Unknown   // it may have happened: nobody executes
)

// Final says that the record holds its last answer.
func (s State) Final() bool { return s == Completed || s == Failed }

// Answer is a handle of an immutable response, which the driver holds. Zero is none.
type Answer uint16

// Match is how the request at hand compares with the one that a record is about.
type Match uint8

// The results of comparing.
const (
	Same      Match = iota // as after a reserve of one's own; the zero value
	Different              // another operation, or another payload
)

// Record is the header of a stored record.
type Record struct {
	// State is where the record is in its life, and Kind its operation's kind.
	State State
	Kind  Kind
	// Match compares the record with the request that reads it.
	Match Match
	// Safe says that running the handler of a wrapped operation twice does no harm.
	Safe bool
	// Observed says that who executes it acts on nothing that it finds: another request may have run beside it, and left no trace.
	Observed bool
	// RecordOnly says that nothing else was written with the answer.
	RecordOnly bool
	// Tombstone says that the key is held after the record has expired: it answers 410.
	Tombstone bool
	// Epoch counts take-overs within an incarnation, from 1.
	Epoch uint32
	// Answer is the stored response.
	Answer Answer
	// Op is the incarnation, Owner the execution that holds or last held it, Revision the write that made the row.
	Op, Owner, Revision ID
	// Lease is until when the holder counts as alive. On a Retryable row it is from when the key may be taken.
	Lease Instant
	// Expires is until when a final record is promised to answer, 0 where nothing is promised yet; Free is from when
	// another request may replace a row that is final or Retryable, 0 where that is not known yet.
	Expires, Free Instant
	// Retention is that of the policy by which the row was written, 0 in a row that is yet to be written.
	Retention Millis
}

// FreeAt says whether the key may be reserved anew at now.
func (r Record) FreeAt(now Instant) bool {
	switch r.State {
	case Absent:
		return true
	case Completed, Failed, Retryable:
		return r.Free != 0 && now >= r.Free
	case InProgress, Pending, Unknown: // never free
	}
	return false
}

// Dead says that the lease of a held record is over.
func (r Record) Dead(now Instant) bool { return r.State == InProgress && now >= r.Lease }

// deadOnEveryClock says that the lease is over for its holder too, whose clock may be behind.
func (r Record) deadOnEveryClock(now Instant, c *Config) bool {
	if c.off(NoParkSkew) {
		return r.Dead(now)
	}
	return r.Dead(now - c.Skew)
}

// RunsAgain says whether a dead lease may be taken over: whether running twice can do no harm.
func (r Record) RunsAgain() bool { return r.Kind != Wrapped || r.Safe }

// permits says whether who executes by this configuration may go on with what has not ended. What was only observed permits
// nobody but those who observe.
func (r Record) permits(c *Config) bool {
	return !r.Observed || r.Safe || c.Observed || c.off(ObservedPermits)
}

// onlyObserved says that who enforces is told that it is unknown what happened, and that no state says so.
func (r Record) onlyObserved(now Instant) bool {
	return r.Observed && !r.Safe && (r.State == Retryable || r.Dead(now) && r.RunsAgain())
}

// abandoned says that nobody has taken a dead lease over for as long as what is freed holds its key, and that the request may
// not: the record ends with its retention.
func (r Record) abandoned(now Instant, c *Config) bool {
	return r.Dead(now-r.retention(c)-c.Skew) && r.RunsAgain() && !r.permits(c)
}

// retention is the row's own, whoever reads it: its store removes it by that. A row that is yet to be written gets its writer's.
func (r Record) retention(c *Config) Millis { return cmp.Or(r.Retention, c.Life.Retention) }

// The transitions of a record, each in one place. They say what the row becomes; the fence of the write says when it may.

// reserved is a new incarnation.
func reserved(c *Config, op, owner ID, lease Instant) Record {
	return Record{State: InProgress, Kind: c.Kind, Safe: c.safeToStore(), Observed: c.Observed, Op: op, Owner: owner, Epoch: 1, Lease: lease}
}

// takenOver keeps the incarnation, so that an earlier holder's writes stay within its fences.
func takenOver(r Record, c *Config, owner ID, lease Instant) Record {
	next := reserved(c, r.Op, owner, lease)
	next.Epoch = r.Epoch + 1
	return next
}

// renewed keeps the state: a record that somebody parked meanwhile stays parked.
func renewed(r Record, lease Instant) Record {
	r.Lease = lease
	return r
}

// accepted holds the 202 of a chain that has begun.
func accepted(r Record, answer Answer) Record {
	r.State, r.Answer, r.Lease, r.Expires, r.Free = Pending, answer, 0, 0, 0
	return r
}

// Life is how long a final record answers, and how long it holds its key.
type Life struct {
	// Retention is how long it answers, from its end.
	Retention Millis
	// Held is how long the key is held after that: a tombstone, for which it answers 410. 0 is no tombstone.
	Held Millis
	// Endless says that it answers until somebody ends it with the resource that it made.
	Endless bool
}

// completed is a record with its last answer. The clocks of two instances differ by up to skew: the key is free only when
// the promise to answer is over on each of them.
func completed(r Record, answer Answer, life Life, recordOnly bool, now, skew Instant) Record {
	r.State, r.Answer, r.Lease, r.RecordOnly = Completed, answer, 0, recordOnly
	r.Expires, r.Free, r.Tombstone = 0, 0, life.Held != 0
	if !life.Endless {
		r.Expires = now + life.Retention
		r.Free = r.Expires + life.Held + skew
	}
	return r
}

// released says that nothing happened. It ends with its retention: what is never retried does not hold its key for ever.
func released(r Record, c *Config, now Instant) Record {
	r.State, r.Answer, r.Lease, r.RecordOnly = Retryable, 0, 0, false
	if r.Expires, r.Free = 0, now+r.retention(c); c.off(NoFreedEnd) {
		r.Free = 0
	}
	return r
}

// fencedOff is released under another epoch: whatever its holder has sent can't land any more.
func fencedOff(r Record, c *Config, now Instant) Record {
	r = released(r, c, now)
	r.Epoch++
	return r
}

// parked keeps owner, epoch and lease, so that the holder's own late evidence still settles.
func parked(r Record) Record {
	r.State = Unknown
	return r
}

// busted does not answer any more; its key is free when no cache can hold the old answer: at once where there is none.
func busted(r Record, c *Config, now, cacheAge Instant) Record {
	r = released(r, c, now+cacheAge)
	if cacheAge != 0 {
		r.Lease = now + cacheAge
	}
	return r
}
