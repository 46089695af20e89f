package storage

import (
	"slices"
	"time"
)

// MessageState is the state of an outbox message.
type MessageState string

// The states of a message. Delivered, declined and cancelled are final; dead is not: late evidence settles it. Evidenced says
// that it keeps a definite answer, which is to be settled without another call.
const (
	MessagePending   MessageState = "pending"
	MessageClaimed   MessageState = "claimed"
	MessageDelivered MessageState = "delivered"
	MessageDeclined  MessageState = "declined"
	MessageUnknown   MessageState = "unknown"
	MessageEvidenced MessageState = "evidenced"
	MessageDead      MessageState = "dead"
	MessageCancelled MessageState = "cancelled"
)

// Known says whether this release knows the state.
func (s MessageState) Known() bool {
	switch s {
	case MessagePending, MessageClaimed, MessageDelivered, MessageDeclined, MessageUnknown, MessageEvidenced, MessageDead, MessageCancelled:
		return true
	}
	return false
}

// Final says whether nothing can change the message any more.
func (s MessageState) Final() bool {
	return s == MessageDelivered || s == MessageDeclined || s == MessageCancelled
}

// Message is an outbox row that asks for one effect. The row is the truth; a stream record, a queue message and the
// sweeper are only wake-ups. Times are UTC with millisecond resolution; a zero time is absent.
type Message struct {
	// ID is "<operation id>.<n>" and the downstream key.
	ID          MessageID
	Index       int
	OperationID OperationID
	RecordKey   RecordKey
	Tenant      string
	Topic       string
	Payload     []byte
	// Sealed says that payload and evidence are encrypted. A store that encrypts opens them as it reads; where it still says
	// so, nobody can open them any more.
	Sealed bool

	State MessageState
	Epoch int64
	Owner Owner
	// Revision names the write that made the row.
	Revision   Revision
	LeaseUntil time.Time

	CreatedAt      time.Time
	FirstClaimedAt time.Time
	NextAttemptAt  time.Time
	// SweepAt is when the sweep looks at the message, if nobody else has finished it. A claim moves it only when its
	// lease ends later, so that most messages pay for entering and leaving the sparse index and for nothing between.
	SweepAt time.Time
	// OpenSince is when the first call whose outcome is not known was allowed: what "may have happened" means.
	OpenSince time.Time
	DoneAt    time.Time
	// RedrivenAt is when an operator last started the message anew: its age counts from then.
	RedrivenAt time.Time
	// ClearedAt is when the provider's having nothing was last proof: what is open was called after it.
	ClearedAt time.Time
	// RemoveAt is from when native TTL may remove the message: nothing of a chain goes before its record is final. Zero is
	// never. It is kept in seconds.
	RemoveAt time.Time

	// Attempts counts calls, Died the claims that ended without a word.
	Attempts, Died int
	// Refused says that the provider refused the last call, and no other is wanted; Unfailed that the message is dead and its
	// record could not be failed with it.
	Refused, Unfailed bool
	// Undoes says that the message undoes what an earlier one of its chain did: once it is delivered the operation fails.
	Undoes bool
	// Retention is the operation's: the final record expires that long after it is done.
	Retention time.Duration
	// Expiry is the record's, for the settlement that makes it final without reading it.
	Expiry Expiry
	// Detached messages belong to an operation that was complete without them: their settlement leaves the record alone.
	Detached bool
	// Reference is the provider's name for what it made.
	Reference   string
	LastOutcome string
	// KeptDelivered and KeptDeclined are definite answers that could not be settled. Where both are there they contradict
	// each other, and a person decides.
	KeptDelivered, KeptDeclined *Kept

	// Unknown is what the row holds besides, written by a release that knows more: the store's own, not to be looked at or
	// changed. Whoever writes the message on carries it through.
	Unknown any

	SchemaVersion int
}

// Kept is a definite answer of the provider that is kept on its message.
type Kept struct {
	// Reference is the provider's name for what it made or declined.
	Reference string
	// Evidence is what the provider said, byte for byte.
	Evidence []byte
}

// Readable says whether this release may judge the message.
func (m Message) Readable() bool { return m.SchemaVersion == SchemaVersion && m.State.Known() }

// QueueOffer and QueueDead are, with [QueueUnknown], the queues of the messages' sparse index.
const (
	QueueOffer = "offer"
	QueueDead  = "dead"
)

// Queue says in which queue of the sparse index the message stands and from when somebody should look at it; final
// messages stand in none.
func (m Message) Queue() (queue string, at time.Time, ok bool) {
	switch m.State {
	case MessagePending, MessageClaimed, MessageEvidenced:
		return QueueOffer, m.SweepAt, true
	case MessageUnknown:
		return QueueUnknown, m.SweepAt, true
	case MessageDead:
		return QueueDead, m.SweepAt, true
	}
	return "", time.Time{}, false
}

// messageOutlives is how much longer than its record a message stays, so that a late webhook or operator still finds what it
// is about.
const messageOutlives = 24 * time.Hour

// RemovedAfter is the message's RemoveAt once its operation has ended with a record that expires at the given time: zero
// where the record lives as long as its resource.
func (m Message) RemovedAfter(expires time.Time) time.Time {
	if expires.IsZero() {
		return time.Time{}
	}
	return expires.Add(m.Expiry.KeepFor + messageOutlives + time.Second - 1).Truncate(time.Second)
}

// MessageFence is what a conditional write on a message demands of the stored one. One of its alternatives must hold, and
// NotDead besides. Where there is no message it holds never. A fence without an alternative admits nothing, and stores
// refuse it.
type MessageFence struct {
	// Revision, where set, admits exactly the row that was seen.
	Revision Revision
	// States, where not empty, admits what a claim has made of the message: Owner, Epoch and one of these states.
	Owner  Owner
	Epoch  int64
	States []MessageState
	// Open admits a message that is not final, whoever holds it: definite evidence has no other fence.
	Open bool
	// NotDead demands besides that the message is not dead.
	NotDead bool
}

// FenceOfMessage returns the fence that demands the message exactly as it was seen.
func FenceOfMessage(m Message) MessageFence { return MessageFence{Revision: m.Revision} }

// Empty says that the fence has no alternative.
func (f MessageFence) Empty() bool { return f.Revision == "" && len(f.States) == 0 && !f.Open }

// Admits says whether a stored message satisfies the fence.
func (f MessageFence) Admits(m Message) bool {
	if f.NotDead && m.State == MessageDead {
		return false
	}
	return f.Revision != "" && m.Revision == f.Revision ||
		slices.Contains(f.States, m.State) && m.Owner == f.Owner && m.Epoch == f.Epoch ||
		f.Open && !m.State.Final()
}

// MessageRef is what a sparse index tells of a message: what never changes, and when to look. The rest is in the row.
type MessageRef struct {
	ID     MessageID
	Tenant string
	Topic  string
	// At is when somebody should look at it.
	At time.Time
}
