package protocol

// As is what a write makes of a row.
type As uint8

// What a write makes of a row.
const (
	Leave    As = iota // the row is not touched
	Put                // the whole row is replaced, with a new revision
	Renew              // a record's lease and revision change, and nothing else
	End                // a record that is pending gets its state, answer and times; nothing else changes
	Patch              // a message's state, times and Ended change, and Kept is added to; nothing else does
	Check              // the fence is judged; nothing changes
	Postpone           // the time to look again changes, and nothing else: not even the revision
)

// Write is one request to the store: a conditional update of either row, or of both and of the application's items in one
// transaction. It is frozen: sending it again is sending the same value.
type Write struct {
	// Token is the transaction's; zero where the write is no transaction.
	Token Token
	// RecAs is what the write makes of the record, and MsgAs of the message.
	RecAs As
	MsgAs As
	// Slot is the run of the handler whose writes ride along, with their conditions; 0 is none.
	Slot uint8
	// Said is what the topic's Settle is asked for the writes, the answer and the next message that ride along.
	Said Asked
	// Why is the reason that is kept on the record.
	Why Reason

	// RecIf is the condition on the record, and Rec the record as it will be.
	RecIf Fence
	Rec   Record
	// MsgIf is the condition on the message, and Msg the message as it will be.
	MsgIf Fence
	Msg   Message
	// Next is inserted, if absent: the next message of the chain, or the one that undoes a phase.
	Next Message
	// Earlier counts the messages of the chain before this one that are marked as ended: the record is final with this write,
	// and nothing of a chain goes before.
	Earlier uint8
}

// Reason says in a stored record why it is what it is.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota
	LeaseOver
	ReserveUnanswered
	CommitUnanswered
	HandlerFailed
	NotStored
	NotStorable
	ConditionLost
	StoreFailed
	ToldNothingHappened
	ProvenAbsent
	OperatorSaid
)

var reasons = [...]string{
	"", "the lease ran out", "the reserve had no reply", "the commit had no reply and was fenced off", "the handler failed",
	"the handler's answer is not stored", "the handler's answer can't be stored", "an optimistic lock was lost each time",
	"the store could not be asked", "the handler said that nothing happened", "proven absent", "an operator said so",
}

// String says it.
func (r Reason) String() string { return reasons[r] }

// Conds are the conditions that failed, or that nobody judged.
type Conds uint8

// The conditions of a cancelled transaction.
const (
	CondRecord      Conds = 1 << iota // the record's; its old image came along
	CondMessage                       // the message's; its old image came along
	CondReject                        // a business condition declared Reject
	CondRetry                         // a business condition declared Retry: a lost optimistic lock
	CondUndeclared                    // a business condition of which nothing was declared
	Unjudged                          // an item was not judged: another transaction was at it, or a throttle
	UnjudgedRetry                     // one of those declared Retry
	CondNextMessage                   // the next message's: it is there already
)

// Code is what became of one try.
type Code uint8

// The codes of a reply.
const (
	OK         Code = iota + 1 // it happened
	Refused                    // conditions failed: Conds says which
	Contention                 // nothing happened by this try: another transaction was at a row
	Throttled                  // nothing happened by this try: too many requests
	NotSent                    // the try never left: too late, or the store is known to be down
	Broken                     // nothing happened by this try, and sending it again is not known to help
	Lost                       // no reply
)

// Reply is the store's. Rec and Msg are the rows as they are where a condition on them failed, or what a read found.
type Reply struct {
	// Code is what became of the try, and Conds the conditions that failed or were not judged.
	Code  Code
	Conds Conds
	// Rec and Msg are zero where the row is absent.
	Rec Record
	Msg Message
}
