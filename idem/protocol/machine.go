package protocol

// Verb is what a machine asks its driver for.
type Verb uint8

// The verbs.
const (
	Read  Verb = iota + 1 // read the row, strongly
	Admit                 // ask whether a new key may begin: its time, the tenant's quota
	Send                  // send the write once, unless it is Until
	Run                   // start the handler, and go on as with Wait
	Wait                  // for the handler's end, for Wake, or for a pause
	Ask                   // ask the topic's Settle what Action.Asked means
	Call                  // call the provider once, unless it is Until
	Probe                 // ask the provider what became of it
	Alert                 // tell an operator of the message
	Tell                  // the machine is at its end: Say is the answer
)

// Action is what a machine asks its driver for. The driver performs it with one call.
type Action struct {
	// Do is what to do: send Write, ask the topic's Settle as Asked says, end with Say, or another verb.
	Do Verb
	// Write is the request to be sent. For Send.
	Write Write
	// Until is from when the request may not leave any more. It is judged last before the wire. For Read it is from when nobody waits
	// for the reply; 0 is never.
	Until Instant
	// Wake ends a Wait; 0 is never.
	Wake Instant
	// Pause counts the pauses before this action, 0 for none: the driver draws each from its one backoff.
	Pause uint8
	// Asked is what the topic's Settle is asked. For Ask.
	Asked Asked
	// Say is what the machine ends with. For Tell.
	Say Say
}

// What is the kind of an input.
type What uint8

// The kinds of an input.
const (
	Begin        What = iota + 1
	Replied           // of Read and Send
	Admitted          // of Admit
	TurnedAway        // of Admit
	HandlerEnded      // of Run and Wait
	Woke              // of Wait
	Answered          // of Ask: Meant
	Called            // of Call: Outcome
	Probed            // of Probe: Outcome
	Alerted           // of Alert
)

// Input is what a driver tells a machine. Now is read once, when the input is made.
type Input struct {
	// What is the kind of the input: which of the other fields count.
	What What
	// Now is the driver's clock.
	Now Instant
	// Deadline is the caller's, 0 where it has none. For Begin.
	Deadline Instant
	// Reply is the store's. For Replied.
	Reply Reply
	// Rejection is the answer that a failed business condition declared.
	Rejection Answer
	// Result is how the handler ended. For HandlerEnded.
	Result Result
	// Outcome is what the call or the question came to. For Called and Probed.
	Outcome Outcome
	// Backoff is the pause that the driver drew for whatever comes next. For Called and Probed.
	Backoff Millis
	// Meant is what the topic's Settle answered. For Answered.
	Meant Meant
	// Lost is until when data may have been lost; Unread says that nobody knows. For what a delivery heeds ([Delivery.Heeds]).
	Lost   Instant
	Unread bool
}

// ResultCode is what a handler ended with, by the operation's policy.
type ResultCode uint8

// The results of a handler.
const (
	Responded       ResultCode = iota + 1 // an answer that is committed with its writes
	Stored                                // an answer that is stored by itself: a rejection, or the 500 of a failure
	Unstored                              // an answer that the policy does not store
	Broke                                 // an error, a panic, or an answer that can't be stored
	NothingHappened                       // as Unstored, and it was declared that nothing has happened
)

// Result is what a handler ended with.
type Result struct {
	// Code is how the handler ended, by the operation's policy.
	Code ResultCode
	// Answer is the response that it gave.
	Answer Answer
	// Slot names the writes that the run collected.
	Slot uint8
	// Alone says that it collected neither writes nor messages.
	Alone bool
	// Chain says that it collected the first message of a deferred operation, and answered 202; Left that this message is a
	// worker's from the start, although the operation delivers inline.
	Chain, Left bool
}

// SayCode is an answer to a request, or the end of a delivery.
type SayCode uint8

// The answers.
const (
	Executed     SayCode = iota + 1 // by this execution, and stored
	Replayed                        // the stored answer
	Busy                            // another execution holds the key
	NotKnown                        // it may have happened
	Mismatch                        // the key belongs to another request
	Gone                            // the record has expired and holds its key
	Vacant                          // nothing is in the way, and nothing was asked to execute
	TurnedOff                       // a new key may not begin
	Unavailable                     // not known, or not now: the same key may be sent again
	Late                            // no time is left to execute anything
	Passed                          // the handler's own answer or error, which is not stored
	Undeclared                      // a condition of which nothing was declared failed, or a write can't be made
	Changed                         // a change was made
	Unchanged                       // there was nothing to change
	Undecided                       // the provider's answer decides nothing, or nothing yet
	Stale                           // the row is not what was seen
	Inadmissible                    // the row's state does not admit the change
	NotLive                         // there is no such row
	Quiet                           // the end of a delivery
	OtherRelease                    // the message is another release's: nothing was written
)

// Say is what a machine ends with.
type Say struct {
	// Code is how it ended.
	Code SayCode
	// Answer is the response to be given; zero where there is none.
	Answer Answer
	// State is the record's after the request, as far as it is known.
	State State
	// Op is the incarnation that it is about.
	Op ID
	// Zombie says that the record was found another's by its holder, OnlyObserved that a NotKnown is about what was only observed:
	// nobody finds out by themselves.
	Zombie, OnlyObserved bool
	// Carry is the message to be delivered inline: claimed by this execution, as it is stored.
	Carry Message
	// Message is the message as a delivery left it, Alarms what an operator must hear of it.
	Message Message
	Alarms  Alarm
}
