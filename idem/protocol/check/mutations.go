//go:build prove

package check

import (
	"slices"

	p "github.com/idem-go/idem-aws/idem/protocol"
)

// Mutation is a rule that is removed, and the scenario that shows what it is for.
type Mutation struct {
	// Name says what is then the case, Keeps which section of the documents the rule keeps true.
	Name, Keeps, Scenario string
	// Off are the rules that are removed.
	Off p.Rules
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

// What rules keep true: a document, and the heading of the section that promises it.
const (
	lostReply    = "docs/design.md: What a lost reply means"
	whoWrites    = "docs/design.md: Who may write what"
	messageStory = "docs/design.md: One message, step by step"
	evidence     = "docs/design.md: Rules of evidence"
	visits       = "docs/design.md: Sweep, reconciler, webhook and operator"
	expiry       = "docs/design.md: Expiry, and loss of data"
	recordStates = "docs/semantics.md: States of a record"
	messageLife  = "docs/semantics.md: States of a message"
	leases       = "docs/semantics.md: Leases"
	chains       = "docs/semantics.md: Chains"
	policies     = "docs/semantics.md: Policies"
)

// Mutations are the rules that can be removed, one by one.
func Mutations() []Mutation {
	return slices.Concat(requestMutations(), holderMutations(), messageMutations(), assumptions())
}

// Removals are the mutations that remove rules, one for each set of rules: the first whose scenario breaks without it. In the real code,
// where nobody chooses the scenario, the others would be the same change.
func Removals() (all []Mutation) {
	for _, m := range Mutations() {
		same := slices.IndexFunc(all, func(other Mutation) bool { return other.Off == m.Off })
		switch {
		case m.Off == (p.Rules{}):
		case same < 0:
			all = append(all, m)
		case all[same].Redundant != "":
			all[same] = m
		}
	}
	return all
}

// requestMutations are about one request and what it is told.
func requestMutations() []Mutation {
	return []Mutation{
		{Name: "contention counts after a try without a reply", Keeps: lostReply, Scenario: "wrapped, one fault", Off: p.Without(p.NoTaint)},
		{Name: "contention counts after a commit without a reply", Keeps: lostReply, Scenario: "inline", Off: p.Without(p.NoTaint),
			Redundant: "what is loose is excluded before anybody is told that nothing happened, and the record that is in the way says otherwise; see the pair"},
		{Name: "contention counts after a commit without a reply, and nothing excludes what is loose", Keeps: lostReply, Scenario: "inline", Off: p.Without(p.NoTaint, p.NoLooseFence)},
		{Name: "one's own reserve is another's", Keeps: lostReply, Scenario: "wrapped, one fault", Off: p.Without(p.NoOwnReserve)},
		{Name: "one's own reserve is left standing when it is too late", Keeps: lostReply, Scenario: "wrapped, reserve found late", Off: p.Without(p.NoLateOwnReserve)},
		{Name: "a condition counts beside one that was not judged", Keeps: lostReply, Scenario: "atomic, business conditions", Off: p.Without(p.NoConflictWins)},
		{Name: "fences see state, owner and epoch only, frozen holder", Keeps: whoWrites, Scenario: "wrapped, frozen holder", Off: p.Without(p.NoRevision)},
		{Name: "fences see state, owner and epoch only, extension", Keeps: whoWrites, Scenario: "extended twice", Off: p.Without(p.NoRevision)},
		{Name: "a lease is not renewed", Keeps: leases, Scenario: "wrapped", Off: p.Without(p.NoRenewal)},
		{Name: "a renewal is given up after a third of a lease", Keeps: leases, Scenario: "wrapped, long wire", Off: p.Without(p.ShortRenewal),
			Redundant: "parking by every clock covers it within these bounds, in which a third of a lease is as long as one fault"},
		{Name: "a commit without a reply is answered at once", Keeps: lostReply, Scenario: "atomic, one 503", Off: p.Without(p.NoFenceOff)},
		{Name: "a resend carries new bytes", Keeps: lostReply, Scenario: "atomic, store trouble", Off: p.Without(p.NoFrozenBytes)},
		{Name: "two transactions share a token", Keeps: lostReply, Scenario: "atomic, business conditions", Off: p.Without(p.SharedToken)},
		{Name: "a try leaves after its own deadline", Keeps: lostReply, Scenario: "optimistic, expiry", Off: p.Without(p.NoWireDeadline)},
		{Name: "a late renewal shortens the lease", Keeps: leases, Scenario: "wrapped, long wire", Off: p.Without(p.NoMonotonicLease)},
		{Name: "an answer that is not stored proves something", Keeps: leases, Scenario: "wrapped", Off: p.Without(p.UnstoredProves)},
		{Name: "a completion settles from in_progress only", Keeps: whoWrites, Scenario: "wrapped, freed under a living holder", Off: p.Without(p.NoLateCompletion)},
		{Name: "a completion does not settle from freed", Keeps: whoWrites, Scenario: "wrapped, freed under a living holder", Off: p.Without(p.NoFreedCompletion)},
		{Name: "a completion gives up at contention", Keeps: leases, Scenario: "wrapped, one fault", Off: p.Without(p.NoPersistence)},
		{Name: "a completion is tried until its request's time is over", Keeps: leases, Scenario: "wrapped, one fault", Off: p.Without(p.PlanEndsAnswer)},
		{Name: "a completion is not tried for the rest of its lease", Keeps: leases, Scenario: "wrapped, store trouble", Off: p.Without(p.LeaseGivesNoTime)},
		{Name: "a reserve without a reply is not given back", Keeps: lostReply, Scenario: "atomic, one 503", Off: p.Without(p.NoGiveBack)},
		{Name: "giving back does not exclude a late reserve", Keeps: lostReply, Scenario: "wrapped, late reserve", Off: p.Without(p.NoGiveBackInsert)},
		{Name: "giving back does not exclude a late take-over", Keeps: lostReply, Scenario: "wrapped, late take-over", Off: p.Without(p.NoGiveBackSeen)},
		{Name: "giving back ends at contention", Keeps: lostReply, Scenario: "wrapped, late reserve", Off: p.Without(p.NoGiveBackPersistence)},
		{Name: "giving an unused lease back ends at contention", Keeps: lostReply, Scenario: "wrapped, reserve found late", Off: p.Without(p.NoGiveBackPersistence)},
	}
}

// holderMutations are about holders and those who come to their records.
func holderMutations() []Mutation {
	return []Mutation{
		{Name: "nothing happened is told while bytes are loose", Keeps: lostReply, Scenario: "optimistic, business conditions", Off: p.Without(p.NoLooseFence)},
		{Name: "a key is free on the instant of its expiry", Keeps: expiry, Scenario: "atomic, expiry", Off: p.Without(p.NoSkew)},
		{Name: "what was freed holds its key until somebody executes it", Keeps: expiry, Scenario: "atomic, another payload", Off: p.Without(p.NoFreedEnd)},
		{Name: "absence is proof at once", Keeps: visits, Scenario: "wrapped", Off: p.Without(p.NoProof)},
		{Name: "absence counts from the answer", Keeps: visits, Scenario: "wrapped, slow provider", Off: p.Without(p.AbsentFromAnswer)},
		{Name: "a rejection lives as long as a resource that was not made", Keeps: policies, Scenario: "as long as its resource", Off: p.Without(p.RejectionLasts)},
		{Name: "observe mode stores permission", Keeps: policies, Scenario: "observed beside enforced", Off: p.Without(p.ObservedIsSafe)},
		{Name: "what was observed permits", Keeps: policies, Scenario: "observed twice, wrapped", Off: p.Without(p.ObservedPermits)},
		{Name: "what was observed permits a take-over", Keeps: policies, Scenario: "observed twice, atomic", Off: p.Without(p.ObservedPermits)},
		{Name: "proof about an observed record is proof about what ran beside it", Keeps: policies, Scenario: "observed at once, wrapped", Off: p.Without(p.ProofIsOfAll)},
		{Name: "who fences off what was observed knows what ran beside it", Keeps: policies, Scenario: "observed at once, atomic", Off: p.Without(p.ProofIsOfAll)},
		{Name: "a right goes back though its reserve stands", Keeps: lostReply, Scenario: "atomic, quota", Off: p.Without(p.NoQuotaKept)},
		{Name: "a lease is parked by one clock alone", Keeps: leases, Scenario: "wrapped", Off: p.Without(p.NoParkSkew)},
		{Name: "two holds of one execution have one owner", Keeps: whoWrites, Scenario: "deploy, atomic becomes optimistic", Off: p.Without(p.NoNewOwner),
			Redundant: "the epoch covers it: a second hold of the same record has a higher one; see the pair"},
		{Name: "two holds of one execution have one owner and one epoch", Keeps: whoWrites, Scenario: "deploy, atomic becomes optimistic", Off: p.Without(p.NoNewOwner, p.NoEpoch),
			Redundant: "states and tokens cover both: a first hold's bytes demand in_progress under its lease, and its token is not the second's"},
		{Name: "what others parked is not given back", Keeps: whoWrites, Scenario: "wrapped, dead before it began", Off: p.Without(p.NoParkedRelease),
			Redundant: "parking by every clock covers it: before the handler starts, time to send ends before anybody may park"},
		{Name: "what others parked is not given back after a promise", Keeps: whoWrites, Scenario: "wrapped, promised late", Off: p.Without(p.NoParkedRelease)},
		{Name: "a take-over begins another incarnation", Keeps: whoWrites, Scenario: "atomic", Off: p.Without(p.NewIncarnation)},
		{Name: "a cache-bust frees its key at once", Keeps: expiry, Scenario: "cache-bust", Off: p.Without(p.NoCacheWait)},
		{Name: "a cache-bust counts from when it was prepared", Keeps: expiry, Scenario: "cache-bust", Off: p.Without(p.NoWireWait)},
		{Name: "what is taken out of use still belongs to the execution that answered", Keeps: whoWrites, Scenario: "cache-bust, wrapped", Off: p.Without(p.BustKeepsOwner)},
		{Name: "one's own change is another's", Keeps: lostReply, Scenario: "extended twice", Off: p.Without(p.NoOwnChange)},
		{Name: "a decision does not carry its revision", Keeps: whoWrites, Scenario: "wrapped, operator beside a reconciler", Off: p.Without(p.NoSeenRevision)},
		{Name: "a late promise is not stored", Keeps: leases, Scenario: "wrapped, late promise", Off: p.Without(p.NoLatePromise)},
		{Name: "the fingerprint is not compared", Keeps: recordStates, Scenario: "atomic, another payload", Off: p.Without(p.NoMatch)},
		{Name: "fencing off and taking over keep the epoch", Keeps: whoWrites, Scenario: "deploy, atomic becomes optimistic", Off: p.Without(p.NoEpoch),
			Redundant: "the owner covers it: the one that takes over is another"},
	}
}

// messageMutations are about messages.
func messageMutations() []Mutation {
	return []Mutation{
		{Name: "inline delivery acts on what was sent", Keeps: lostReply, Scenario: "inline, lock lost", Off: p.Without(p.NoConfirmedClaim)},
		{Name: "inline delivery acts on what was sent, and a worker has what is stored", Keeps: lostReply, Scenario: "inline, first left, then lock lost", Off: p.Without(p.NoConfirmedClaim)},
		{Name: "a message's fences see state, owner and epoch only", Keeps: whoWrites, Scenario: "message, dead", Off: p.Without(p.NoRevision)},
		{Name: "an open call is offered again", Keeps: messageStory, Scenario: "message, keyless", Off: p.Without(p.NoOpenSince)},
		{Name: "an open call is repeated beyond what the provider remembers", Keeps: messageStory, Scenario: "message, keys honoured", Off: p.Without(p.NoKeyMargin)},
		{Name: "absence of a message counts at once", Keeps: visits, Scenario: "message, probed", Off: p.Without(p.NoAbsenceWait)},
		{Name: "a call leaves after its own claim", Keeps: messageStory, Scenario: "message, declined", Off: p.Without(p.NoCallDeadline)},
		{Name: "what can't be settled is dropped", Keeps: messageStory, Scenario: "message, evidence", Off: p.Without(p.NoEvidenceKept)},
		{Name: "what can't be settled is given back for another call", Keeps: messageStory, Scenario: "message, refused", Off: p.Without(p.CallsAgain)},
		{Name: "what keeps its answer is called again", Keeps: messageStory, Scenario: "message, refused", Off: p.Without(p.KeptIsCalled)},
		{Name: "a call that never left counts as an attempt", Keeps: messageStory, Scenario: "message, swept", Off: p.Without(p.UncalledCounts)},
		{Name: "what was started anew is as old as it was", Keeps: visits, Scenario: "message, swept", Off: p.Without(p.NoRedrivenAge)},
		{Name: "a message of another release is judged", Keeps: messageLife, Scenario: "message, of another release", Off: p.Without(p.OthersJudged)},
		{Name: "evidence that nobody could bring again is given up after a while", Keeps: messageStory, Scenario: "message, store trouble", Off: p.Without(p.KeepEnds)},
		{Name: "evidence that nobody could bring again is given up after the deadline", Keeps: messageStory, Scenario: "message, store trouble past a deadline", Off: p.Without(p.KeepEnds)},
		{Name: "evidence is given up at the deadline although the process goes on", Keeps: messageStory, Scenario: "inline, store trouble past the deadline", Change: func(s *Scenario) { s.Actors[0].Outlives = false }},
		{Name: "a decline settles from any attempt", Keeps: evidence, Scenario: "message, declined", Off: p.Without(p.NoOwnEpoch)},
		{Name: "a decline settles of which nobody knows the attempt", Keeps: evidence, Scenario: "message, weak decline", Off: p.Without(p.WeakSettles)},
		{Name: "what was told not to happen is started anew", Keeps: visits, Scenario: "message, detached", Off: p.Without(p.RedriveAnyway)},
		{Name: "a settlement takes all of its caller's time", Keeps: messageStory, Scenario: "message, deadline", Off: p.Without(p.SettleTakesAll)},
		{Name: "a decline settles whatever is not final", Keeps: evidence, Scenario: "message, contradicted", Off: p.Without(p.NoSeenDecline)},
		{Name: "a decline settles what is kept as delivered", Keeps: evidence, Scenario: "message, contradicted", Off: p.Without(p.NoDeliveredWins)},
		{Name: "a chain goes on although its record has its answer", Keeps: chains, Scenario: "chain, failed and then delivered", Off: p.Without(p.NoRecordCheck)},
		{Name: "what is dead and keeps evidence is left to the workers", Keeps: chains, Scenario: "chain, failed and then redriven", Off: p.Without(p.DeadIsEvidenced)},
		{Name: "what undoes an earlier phase is not sent", Keeps: chains, Scenario: "chain, undone", Off: p.Without(p.NoCompensation)},
		{Name: "what undoes after a decline is a phase like any other", Keeps: chains, Scenario: "chain, undone", Off: p.Without(p.NoUndoing)},
		{Name: "a message may go before its chain", Keeps: chains, Scenario: "chain", Off: p.Without(p.NoChainEnd)},
		{Name: "an undoing that is given up fails its record", Keeps: chains, Scenario: "chain, undone", Off: p.Without(p.UndoFails)},
		{Name: "what was restored counts as never called", Keeps: expiry, Scenario: "message, restored", Off: p.Without(p.NoRestoredOpen)},
		{Name: "what follows a restored message counts as never called", Keeps: expiry, Scenario: "chain, restored", Off: p.Without(p.NoRestoredChain)},
		{Name: "absence of what was restored counts from its own lease", Keeps: expiry, Scenario: "message, restored under a call", Off: p.Without(p.NoRestoredLease)},
		{Name: "evidence that can't be settled buries whatever is not final", Keeps: whoWrites, Scenario: "message, refused", Off: p.Without(p.NoSeenDeath),
			Redundant: "what is dead stays dead until it is settled, so that a late copy of its death finds it dead, or final"},
		{Name: "what was lost in a call, or while the topic was asked, is not heeded", Keeps: expiry, Scenario: "loss, chain", Off: p.Without(p.LossUnheeded)},
		{Name: "what was lost under a call that is refused is not heeded", Keeps: expiry, Scenario: "loss, refused", Off: p.Without(p.LossUnheeded)},
		{Name: "nobody knows what was lost, and it ends", Keeps: expiry, Scenario: "loss, refused", Off: p.Without(p.UnreadEnds)},
		{Name: "a decline that outlived its claim settles after a loss", Keeps: evidence, Scenario: "loss, declined", Off: p.Without(p.StrayedSettles)},
		{Name: "a kept decline settles after a loss", Keeps: evidence, Scenario: "loss, declined", Off: p.Without(p.KeptSettles)},
		{Name: "a decision from before a loss is carried out", Keeps: whoWrites, Scenario: "loss, person", Off: p.Without(p.NoSeenLoss)},
		{Name: "a person's evidence from before a loss is settled", Keeps: whoWrites, Scenario: "loss, judged", Off: p.Without(p.NoSeenLoss)},
		{Name: "of what has died nobody tells but who wrote it", Keeps: messageStory, Scenario: "message, dead", Off: p.Without(p.NoReminder)},
	}
}

// assumptions are what the protocol relies on and can't enforce: it breaks without them.
func assumptions() []Mutation {
	return []Mutation{
		{Name: "assumption: the store keeps a record as long as a request may be under way", Keeps: expiry, Scenario: "atomic, another payload", Change: func(s *Scenario) { s.Hasty = true }},
		{Name: "assumption: a handler's calls leave only under a lease", Keeps: leases, Scenario: "wrapped, past the longest run", Change: func(s *Scenario) {
			s.Actors[0].Heeds, s.Actors[1].Heeds = false, false
		}},
	}
}
