//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// Role is which machine a process runs.
type Role uint8

// The roles.
const (
	Nobody   Role = iota
	Client        // an Execution
	Visitor       // a Change with the actor's errand
	Operator      // a Change: Resolve or Free, as the truth was when the operator looked
	Courier       // a Delivery with the actor\'s purpose
)

// Actor is a process: it comes once or several times, each time as a new execution or change.
type Actor struct {
	// Role is what the process does.
	Role Role
	// Errand is a Visitor's.
	Errand p.Errand
	// Purpose is a Courier's. Judgement, Close and Redrive are a person's, who looks first and comes later.
	Purpose p.MessageErrand
	// Runs is how often it comes; 0 is once.
	Runs uint8
	// Skew is what its clock is ahead of the store's.
	Skew p.Instant
	// Deadline is the caller's, counted from the start; 0 is none. A courier's message must be settled or kept by then.
	Deadline p.Millis
	// Outlives says of what delivers that its process goes on after the deadline.
	Outlives bool
	// Payload distinguishes requests that are not the same. Clients with the same key may differ in it.
	Payload uint8
	// LookOnly, Barred and Waits are those of the request; Waits counts from the start.
	LookOnly, Barred bool
	Waits            p.Millis
	// Obeys says that its handler ends when its context does.
	Obeys bool
	// Heeds says that calls of its handler leave only under a lease that the store has confirmed.
	Heeds bool
	// Blind says that an operator's decision does not carry the revision that it was made about.
	Blind bool
	// Alone says that the handler collects nothing besides its answer, Chain that it begins a chain.
	Alone, Chain bool
	// Leaves is the run of its handler that leaves the chain's first message to a worker; where it is not 0, its deliveries leave
	// the message that follows.
	Leaves uint8
	// Foreign says that its release does not know the topics of messages.
	Foreign bool
	// Config is how this process differs from the scenario, as releases differ during a deploy.
	Config func(*p.Config)
}

// Fault is something that a budget allows.
type Fault uint8

// The faults, and what else a budget bounds.
const (
	Total       Fault = iota // of all faults that count, together; 0 is 3
	Lost                     // a request lands, or a row is read, and the reply does not arrive
	Slow                     // a request lands, and its reply takes any time
	Late                     // no reply; the request lands later, or never
	Contend                  // another transaction is at the row: nothing happens by this try
	Throttle                 // too many requests: nothing happens by this try
	Unjudge                  // an item of a transaction that fails is not judged
	Down                     // the store is known to be down: the try never leaves
	Reject                   // credentials have expired: nothing happens by this try
	Stall                    // time passes although a process has something to do
	Die                      // a process ends without a word
	Fail                     // a handler fails
	Unstored                 // a handler's answer is not stored
	Promise                  // a handler promises, truly, that nothing happened
	LateCall                 // a handler's call takes effect later, or never; the handler is not told
	Turn                     // a new key may not begin
	Ambiguous                // a call to a provider takes effect, and its reply is lost
	NotExecuted              // a provider proves that a call did nothing
	Refusal                  // a provider proves besides that another call would do nothing either
	Decline                  // a provider says no, once and for all
	SlowCall                 // a call is answered, and the reply takes any time
	Lie                      // a webhook says the opposite of what is true
	Settle                   // a topic has no answer
	Unclear                  // a probe decides nothing
	charged                  // the faults before this count in Total
	Refuse                   // a handler stores a refusal of its own
	Lock                     // somebody changes the business data
	Poor                     // the business condition begins or ceases to hold
	Erase                    // the key that opens the messages is erased
	Crowd                    // from now on other transactions are in the way of every settlement
	Loss                     // the rows are lost, and restored as they were once; who is frozen lives on
	Unread                   // until when data was lost can't be read from now on, or can be again
	TTL                      // the store removes what has expired
	Ticks                    // all time that passes
	faults
)

// Budget is how often each fault may happen in one story.
type Budget [faults]uint8

// Scenario is a bounded world.
type Scenario struct {
	// Name is what a report and a command line call the scenario.
	Name string
	// Config is the protocol's, for every process.
	Config p.Config
	// Actors are the processes; the zero Actor is none.
	Actors [4]Actor
	// Budget bounds the faults.
	Budget Budget
	// Wire is how long a late request may be under way.
	Wire p.Instant
	// Hasty stores remove a record on the instant on which its key is free. Others wait as long as a request may be under way.
	Hasty bool
	// Chain is how many messages a chain has; 0 is one. Undo says that the topic undoes a first phase where a later one is
	// refused.
	Chain uint8
	Undo  bool
	// Pending begins with a record that is pending, and its message; Restored says that the message, and all that follow it in
	// its chain, had been called before the data was lost, without a trace; Leaving that it was claimed on the last instant
	// before, and its call is under way.
	Pending, Restored, Leaving bool
	// Detached says of a Pending scenario that its record has its answer already: the message came with it. Writes says that
	// the topic's Settle has business writes where nothing was executed: the application was told so.
	Detached, Writes bool
	// Large lifts the bound on states.
	Large bool

	// What is demanded besides, where the faults leave time for it.

	// NoLeaseLeft: a request that is told to try again leaves no lease of its own behind that its handler never used.
	NoLeaseLeft bool
	// NoBurn: a key whose handler never ran is never unknown.
	NoBurn bool
	// NoParkAlive: a holder whose handler runs is not parked.
	NoParkAlive bool
	// NoDrop: the answer of a wrapped handler that has run is stored, whatever others have made of the record; a provider's
	// definite answer is settled or kept.
	NoDrop bool
	// NoForget: where it was told that nothing happened, the record does not stay unknown.
	NoForget bool
	// Outlives: a handler runs on beyond every allowance, so that absence is no proof.
	Outlives bool
	// NoHeal leaves out the judgement of "stuck".
	NoHeal bool
}

// keeps is how long the store keeps a record whose key is free.
func (sc *Scenario) keeps() p.Instant {
	if sc.Hasty {
		return 0
	}
	return sc.Wire
}

// Enlarged is the scenario with one more fault and two more units of time, for a soak run. A living holder may be parked
// then: three faults in a row leave no time to renew its lease in.
func (sc Scenario) Enlarged() Scenario {
	sc.Large, sc.NoParkAlive = true, false
	sc.Budget[Ticks] += 2
	if sc.Budget[Total] == 0 {
		sc.Budget[Total] = 3
	}
	sc.Budget[Total]++
	return sc
}
