//go:build prove

package check

import (
	"slices"

	p "github.com/idem-go/idem-aws/idem/protocol"
)

// Mutation is a rule that is removed, and the scenario that shows what it is for.
type Mutation struct {
	// Name says what is then the case.
	Name, Scenario string
	Off            p.Rules
	// Change alters the scenario.
	Change func(*Scenario)
	// Redundant says why nothing breaks within these bounds: which other rule covers it.
	Redundant string
}

// In is the scenario as the mutation has it.
func (m Mutation) In(sc Scenario) Scenario {
	if m.Change != nil {
		m.Change(&sc)
	}
	return sc
}

// Mutations are the rules that can be removed, one by one.
func Mutations() []Mutation {
	return slices.Concat(requestMutations(), holderMutations(), messageMutations(), assumptions())
}

// requestMutations are about one request and what it is told.
func requestMutations() []Mutation {
	return []Mutation{
		{Name: "contention counts after a try without a reply", Scenario: "wrapped, one fault", Off: p.NoTaint},
		{Name: "one's own reserve is another's", Scenario: "wrapped, one fault", Off: p.NoOwnReserve},
		{Name: "one's own reserve is left standing when it is too late", Scenario: "wrapped, reserve found late", Off: p.NoLateOwnReserve},
		{Name: "a condition counts beside one that was not judged", Scenario: "atomic, business conditions", Off: p.NoConflictWins},
		{Name: "fences see state, owner and epoch only, frozen holder", Scenario: "wrapped, frozen holder", Off: p.NoRevision},
		{Name: "fences see state, owner and epoch only, extension", Scenario: "extended twice", Off: p.NoRevision},
		{Name: "a lease is not renewed", Scenario: "wrapped", Off: p.NoRenewal},
		{Name: "a renewal is given up after a third of a lease", Scenario: "wrapped, long wire", Off: p.ShortRenewal,
			Redundant: "parking by every clock covers it within these bounds, in which a third of a lease is as long as one fault"},
		{Name: "a commit without a reply is answered at once", Scenario: "atomic, one 503", Off: p.NoFenceOff},
		{Name: "a resend carries new bytes", Scenario: "atomic, business conditions", Off: p.NoFrozenBytes},
		{Name: "two transactions share a token", Scenario: "atomic, business conditions", Off: p.SharedToken},
		{Name: "a try leaves after its own deadline", Scenario: "optimistic, expiry", Off: p.NoWireDeadline},
		{Name: "a late renewal shortens the lease", Scenario: "wrapped, long wire", Off: p.NoMonotonicLease},
		{Name: "an answer that is not stored proves something", Scenario: "wrapped", Off: p.UnstoredProves},
		{Name: "a completion settles from in_progress only", Scenario: "wrapped, freed under a living holder", Off: p.NoLateCompletion},
		{Name: "a completion does not settle from freed", Scenario: "wrapped, freed under a living holder", Off: p.NoFreedCompletion},
		{Name: "a completion gives up at contention", Scenario: "wrapped, one fault", Off: p.NoPersistence},
		{Name: "a reserve without a reply is not given back", Scenario: "atomic, one 503", Off: p.NoGiveBack},
		{Name: "giving back does not exclude a late reserve", Scenario: "wrapped, late reserve", Off: p.NoGiveBackInsert},
		{Name: "giving back does not exclude a late take-over", Scenario: "wrapped, late take-over", Off: p.NoGiveBackSeen},
		{Name: "giving back ends at contention", Scenario: "wrapped, late reserve", Off: p.NoGiveBackPersistence},
	}
}

// holderMutations are about holders and those who come to their records.
func holderMutations() []Mutation {
	return []Mutation{
		{Name: "nothing happened is told while bytes are loose", Scenario: "optimistic, business conditions", Off: p.NoLooseFence},
		{Name: "a key is free on the instant of its expiry", Scenario: "atomic, expiry", Off: p.NoSkew},
		{Name: "absence is proof at once", Scenario: "wrapped", Off: p.NoProof},
		{Name: "absence counts from the answer", Scenario: "wrapped, slow provider", Off: p.AbsentFromAnswer},
		{Name: "observe mode stores permission", Scenario: "observed beside enforced", Off: p.ObservedIsSafe},
		{Name: "a right goes back though its reserve stands", Scenario: "atomic, quota", Off: p.NoQuotaKept},
		{Name: "a lease is parked by one clock alone", Scenario: "wrapped", Off: p.NoParkSkew},
		{Name: "two holds of one execution have one owner", Scenario: "deploy, atomic becomes optimistic", Off: p.NoNewOwner,
			Redundant: "the epoch covers it: a second hold of the same record has a higher one; see the pair"},
		{Name: "two holds of one execution have one owner and one epoch", Scenario: "deploy, atomic becomes optimistic", Off: p.NoNewOwner | p.NoEpoch,
			Redundant: "states and tokens cover both: a first hold's bytes demand in_progress under its lease, and its token is not the second's"},
		{Name: "what others parked is not given back", Scenario: "wrapped, dead before it began", Off: p.NoParkedRelease,
			Redundant: "parking by every clock covers it: before the handler starts, time to send ends before anybody may park"},
		{Name: "what others parked is not given back after a promise", Scenario: "wrapped, promised late", Off: p.NoParkedRelease},
		{Name: "a take-over begins another incarnation", Scenario: "atomic", Off: p.NewIncarnation},
		{Name: "a cache-bust frees its key at once", Scenario: "cache-bust", Off: p.NoCacheWait},
		{Name: "one's own change is another's", Scenario: "extended twice", Off: p.NoOwnChange},
		{Name: "a decision does not carry its revision", Scenario: "wrapped, operator beside a reconciler", Off: p.NoSeenRevision},
		{Name: "a late promise is not stored", Scenario: "wrapped, late promise", Off: p.NoLatePromise},
		{Name: "the fingerprint is not compared", Scenario: "atomic, another payload", Off: p.NoMatch},
		{Name: "fencing off and taking over keep the epoch", Scenario: "deploy, atomic becomes optimistic", Off: p.NoEpoch,
			Redundant: "the owner covers it: whoever takes over is another"},
	}
}

// messageMutations are about messages.
func messageMutations() []Mutation {
	return []Mutation{
		{Name: "inline delivery acts on what was sent", Scenario: "inline", Off: p.NoConfirmedClaim,
			Redundant: "frozen bytes cover it: a resend carries the same claim under the same token, so what was sent is what is stored"},
		{Name: "a message's fences see state, owner and epoch only", Scenario: "message, dead", Off: p.NoRevision},
		{Name: "an open call is offered again", Scenario: "message, keyless", Off: p.NoOpenSince},
		{Name: "an open call is repeated beyond what the provider remembers", Scenario: "message, keys honoured", Off: p.NoKeyMargin},
		{Name: "absence of a message counts at once", Scenario: "message, probed", Off: p.NoAbsenceWait},
		{Name: "a call leaves after its own claim", Scenario: "message, declined", Off: p.NoCallDeadline},
		{Name: "what can't be settled is dropped", Scenario: "message, evidence", Off: p.NoEvidenceKept},
		{Name: "evidence that nobody could bring again is given up after a while", Scenario: "message, store trouble", Off: p.KeepEnds},
		{Name: "evidence that nobody could bring again is given up after the deadline", Scenario: "message, store trouble past a deadline", Off: p.KeepEnds},
		{Name: "evidence is given up at the deadline although the process goes on", Scenario: "inline, store trouble past the deadline", Change: func(s *Scenario) { s.Actors[0].Outlives = false }},
		{Name: "a decline settles from any attempt", Scenario: "message, declined", Off: p.NoOwnEpoch},
		{Name: "a decline settles of which nobody knows the attempt", Scenario: "message, weak decline", Off: p.WeakSettles},
		{Name: "what was told not to happen is started anew", Scenario: "message, detached", Off: p.RedriveAnyway},
		{Name: "a settlement takes all of its caller's time", Scenario: "message, deadline", Off: p.SettleTakesAll},
		{Name: "a decline settles whatever is not final", Scenario: "message, contradicted", Off: p.NoSeenDecline},
		{Name: "a decline settles what is kept as delivered", Scenario: "message, contradicted", Off: p.NoDeliveredWins},
		{Name: "a chain goes on although its record has its answer", Scenario: "chain, failed and then delivered", Off: p.NoRecordCheck},
		{Name: "what undoes an earlier phase is not sent", Scenario: "chain, undone", Off: p.NoCompensation},
		{Name: "a message may go before its chain", Scenario: "chain", Off: p.NoChainEnd},
		{Name: "an undoing that is given up fails its record", Scenario: "chain, undone", Off: p.UndoFails},
		{Name: "what was restored counts as never called", Scenario: "message, restored", Off: p.NoRestoredOpen},
		{Name: "what follows a restored message counts as never called", Scenario: "chain, restored", Off: p.NoRestoredChain},
		{Name: "absence of what was restored counts from its own lease", Scenario: "message, restored under a call", Off: p.NoRestoredLease},
		{Name: "evidence that can't be settled buries whatever is not final", Scenario: "message, refused", Off: p.NoSeenDeath,
			Change: func(s *Scenario) { s.Budget[Total] = 3 }},
		{Name: "of what has died nobody tells but who wrote it", Scenario: "message, dead", Off: p.NoReminder},
	}
}

// assumptions are what the protocol relies on and can't enforce: it breaks without them.
func assumptions() []Mutation {
	return []Mutation{
		{Name: "assumption: the store keeps a record as long as a request may be under way", Scenario: "atomic, another payload", Change: func(s *Scenario) { s.Hasty = true }},
		{Name: "assumption: a handler's calls leave only under a lease", Scenario: "wrapped, past the longest run", Change: func(s *Scenario) {
			s.Actors[0].Heeds, s.Actors[1].Heeds = false, false
		}},
	}
}
