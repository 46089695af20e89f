package protocol

// Rule is a rule of the protocol that the checker can remove, to show what it is for. That is possible in its build only
// (build tag prove); elsewhere every rule holds, and [Config] has no switch.
type Rule uint8

// The rules that can be removed. Each is named after what is then the case.
const (
	NoTaint               Rule = iota // contention after a try without a reply counts as "nothing happened"
	NoOwnReserve                      // one's own record in the way of a resent reserve is another's
	NoConflictWins                    // a failed business condition counts although another item was not judged
	NoRevision                        // everybody's fences see state, owner and epoch only
	NoRenewal                         // the lease of a handler that runs is not renewed
	NoFenceOff                        // a commit without a reply is answered 503 at once
	NoFrozenBytes                     // a resend carries new bytes under a new token
	SharedToken                       // two transactions of one execution carry the same token
	NoWireDeadline                    // a try may leave after its own deadline
	NoMonotonicLease                  // a late renewal may shorten the lease
	UnstoredProves                    // an answer that is not stored frees the key of a wrapped operation
	NoLateCompletion                  // a wrapped completion settles from in_progress only
	NoConfirmedClaim                  // inline delivery acts on what was sent, not on what was stored
	NoGiveBack                        // a reserve without a reply is not given back
	NoGiveBackInsert                  // giving a reserve back does not exclude one that lands later
	NoLooseFence                      // "nothing happened" is told while bytes are loose
	NoPersistence                     // a wrapped completion gives up at contention
	NoSkew                            // a key is free on the instant of its expiry
	NoProof                           // absence frees a wrapped record at once
	ObservedIsSafe                    // observe mode stores that running again is safe
	ObservedPermits                   // who enforces goes on with what was only observed and has not ended
	ProofIsOfAll                      // proof about the execution of an observed record is proof about what ran beside it
	NoQuotaKept                       // the right to a new key goes back though its own reserve stands
	NoFreedCompletion                 // a wrapped completion does not settle from freed
	NoParkSkew                        // a dead lease is parked by the clock of the one that meets it
	NoNewOwner                        // another hold of one execution has the same owner
	NoParkedRelease                   // what others parked is not given back by a holder whose handler never ran
	NoLateOwnReserve                  // one's own reserve that is found when it is too late to run is left standing
	NoGiveBackSeen                    // giving a take-over back does not exclude one that lands later
	NoGiveBackPersistence             // giving a reserve or an unused lease back ends at contention
	NewIncarnation                    // a take-over begins another incarnation
	NoCacheWait                       // a cache-bust frees its key at once
	NoWireWait                        // a cache-bust frees its key as if it had landed when it was prepared
	BustKeepsOwner                    // what is taken out of use still belongs to the execution that answered
	NoOwnChange                       // one's own change in the way of its resend is another's
	AbsentFromAnswer                  // absence counts from when the answer came
	NoSeenRevision                    // a person's decision does not carry the revision that it is about
	NoMatch                           // the fingerprint is not compared
	NoEpoch                           // fencing off and taking over keep the epoch
	NoLatePromise                     // what a handler promises after its caller's time is not stored
	ShortRenewal                      // a renewal is given up a third of a lease after it began
	NoFreedEnd                        // what was freed holds its key for as long as nobody executes it
	PlanEndsAnswer                    // a wrapped completion is tried until the request's own time is over
	LeaseGivesNoTime                  // the rest of the lease is no time to try a wrapped completion in

	NoOpenSince     // a message with an open call is offered again whatever it may have called
	NoKeyMargin     // an open call is repeated beyond what the provider remembers
	NoAbsenceWait   // absence counts at once
	NoCallDeadline  // a call leaves after its own claim
	NoEvidenceKept  // what can't be settled now is dropped
	NoOwnEpoch      // a decline settles from any attempt where keys are not honoured
	NoSeenDecline   // a decline settles whatever is not final
	NoDeliveredWins // a decline settles what is kept as delivered
	NoRecordCheck   // a chain goes on from a dead message whose record has its answer
	NoCompensation  // what undoes an earlier phase is not sent
	NoChainEnd      // a message of a chain may go before the chain has ended
	UndoFails       // an undoing that is given up fails its record
	KeepEnds        // evidence that nobody could bring again is given up after a while
	RedriveAnyway   // what the application was told will not happen is started anew
	WeakSettles     // a decline settles although nobody knows which attempt it is about
	SettleTakesAll  // a settlement may take all of the time that its caller has
	NoRestoredOpen  // what was restored after a loss of data counts as never called
	NoRestoredChain // what follows a restored message counts as never called
	NoRestoredLease // absence of what was restored counts from the lease that was restored
	NoSeenDeath     // evidence that can't be settled buries whatever is not final
	NoUndoing       // what undoes an earlier phase after a decline is a phase like any other
	DeadIsEvidenced // dead with evidence that can't be settled, it is left to the workers
	NoReminder      // of what has died nobody tells but who wrote it
	NoRedrivenAge   // the age of what was started anew counts from its creation
	CallsAgain      // what can't be settled now is given back for another call
	KeptIsCalled    // what keeps a definite answer is claimed and called again
	UncalledCounts  // a call that never left counts as an attempt
	OthersJudged    // a message of another release is judged as one's own
	RejectionLasts  // a rejection lives as long as the resource that it did not make
	LossUnheeded    // what was lost while a provider was called, or a topic was asked, is not heeded
	UnreadEnds      // what was not executed, or declined, ends although nobody knows what was lost
	StrayedSettles  // a decline that answers a call which outlived its claim settles after a loss
	KeptSettles     // a decline that was kept settles after a loss
	NoSeenLoss      // a person's decision is carried out after a loss that they did not know of
)
