package protocol

import "cmp"

// Config is what the machines of one operation, or of one topic, depend on besides their input. It does not change while
// they run. Spans are in milliseconds, and no field has a default: packages idem and outbox fill all of them from their own
// configurations.
type Config struct {
	switches

	// Kind is the operation's, Safe says that it was declared safe to run again, and ReadFirst that a record is read before
	// one is reserved. Kinds without a lease always read first.
	Kind      Kind
	Safe      bool
	ReadFirst bool
	// Observed says that the operation acts on nothing that it finds.
	Observed bool
	// Inline says that a deferred operation's message is claimed by its own commit.
	Inline bool
	// Life is how long the record answers once it is final.
	Life Life

	// ExecutionMax bounds an execution where its caller has no earlier deadline. The margins are those of idem.Config, and
	// shrink together where there is less time: see [PlanOf].
	ExecutionMax, HandlerMargin, FenceMargin, AnswerMargin, LeaseMargin Millis
	// WorkMin is the least time in which anything is executed.
	WorkMin Millis
	// ReserveFor bounds how long a reserve without a reply is sent again.
	ReserveFor Millis
	// GiveBackFor bounds how long it is given back then; 0 is for as long as the execution has.
	GiveBackFor Millis
	// CompleteFor is how long the answer of a wrapped handler is sent at least, lease or not: it is evidence.
	CompleteFor Millis
	// Kills says that the platform ends a process that has passed its caller's deadline: no lease is renewed.
	Kills bool
	// RunMax ends the renewal of a handler's lease.
	RunMax Millis
	// AbsentAfter is how long after a lease absence is proof: the longest request, its listing, a freeze, and Skew.
	AbsentAfter Millis
	// Skew is more than two clocks differ by.
	Skew Millis
	// CacheAge is how long a cache may hold an answer.
	CacheAge Millis
	// WireMax is how long after it was sent a write may land.
	WireMax Millis

	// ChangeFor bounds how long a change without a reply is sent again; 0 is 10 seconds.
	ChangeFor Millis

	// TriesMax bounds the tries of one write, 0 by time alone; ContentionMax those that met another transaction or a throttle.
	TriesMax, ContentionMax uint8
	// RunsMax bounds how often a handler runs within one execution, LoopsMax how often one request judges what won a race.
	RunsMax, LoopsMax uint8

	// Topic is what delivery depends on.
	Topic Topic
}

func (c *Config) changeFor() Millis { return cmp.Or(c.ChangeFor, 10_000) }

// leases says whether the kind holds a lease while its handler runs.
func (k Kind) leases() bool { return k == Atomic || k == Wrapped }

// safeToStore is what a record says of running again. An operation that is only observed stores no permission that an
// enforcing instance could act on.
func (c *Config) safeToStore() bool {
	return c.Safe || c.Observed && c.off(ObservedIsSafe)
}

// runsAnyway says that the handler runs whatever becomes of the execution: a wrapped one that is only observed. Without a record the next
// request that is not would run it again.
func (c *Config) runsAnyway() bool { return c.Observed && c.Kind == Wrapped }

// renews says whether the lease is kept up while the handler runs.
func (c *Config) renews() bool { return c.Kind == Wrapped && !c.Kills && !c.off(NoRenewal) }

// Plan holds the instants of an execution: its handler's context ends, a commit is no longer sent, nothing is sent any
// more, the lease ends.
type Plan struct {
	// Began is when the execution began. HandlerUntil ends the handler's context, CommitUntil is the last instant for a
	// commit, StoreUntil for any write, and LeaseUntil ends the lease.
	Began, HandlerUntil, CommitUntil, StoreUntil, LeaseUntil Instant
	// AnswerMargin is what is left to answer in after StoreUntil.
	AnswerMargin Millis
	// Bounded says that the caller has a deadline.
	Bounded bool
}

// Fits says whether the plan leaves time to execute anything.
func (p Plan) Fits(c *Config) bool { return p.HandlerUntil-p.Began >= c.WorkMin }

// WorkLeast is the time that a handler has at least where it starts: WorkMin, or half of a short time, of which the other half may be used
// up by what comes before.
func (p Plan) WorkLeast(c *Config) Millis { return min(c.WorkMin, (p.HandlerUntil-p.Began)/2) }

// ReplyUntil is until when a reply is of use: halfway between the last write and the caller's deadline.
func (p Plan) ReplyUntil() Instant { return p.StoreUntil + p.AnswerMargin/2 }

// PlanOf divides the time until the caller's deadline (0: it has none) or ExecutionMax. Where less is left than twice the
// margins, they shrink in proportion, so that the handler always has half of it. A platform that kills may let a handler
// run until the caller's own deadline, however late: the lease outlives that.
func PlanOf(now, deadline Instant, c *Config) Plan {
	p := Plan{Began: now, Bounded: deadline != 0}
	end := now + c.ExecutionMax
	last := end
	if deadline != 0 {
		if end = min(end, deadline); c.Kills {
			last = deadline
		} else {
			last = end
		}
	}
	total, margins := max(0, end-now), c.HandlerMargin+c.AnswerMargin
	scale := func(margin Millis) Millis {
		if total < 2*margins {
			return margin * total / (2 * margins)
		}
		return margin
	}
	p.AnswerMargin = scale(c.AnswerMargin)
	p.StoreUntil = end - p.AnswerMargin
	p.CommitUntil = p.StoreUntil - scale(c.FenceMargin)
	p.HandlerUntil = p.StoreUntil - scale(c.HandlerMargin)
	p.LeaseUntil = last + c.LeaseMargin
	return p
}
