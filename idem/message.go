package idem

import "time"

// MessageState is the state of an outbox message.
type MessageState string

// The states of a message. Delivered, declined and cancelled are final; dead is not: late evidence settles it.
const (
	MessagePending   MessageState = "pending"
	MessageClaimed   MessageState = "claimed"
	MessageDelivered MessageState = "delivered"
	MessageDeclined  MessageState = "declined"
	MessageUnknown   MessageState = "unknown"
	MessageDead      MessageState = "dead"
	MessageCancelled MessageState = "cancelled"
)

// Known says whether this release knows the state.
func (s MessageState) Known() bool {
	switch s {
	case MessagePending, MessageClaimed, MessageDelivered, MessageDeclined, MessageUnknown, MessageDead, MessageCancelled:
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

	Attempts int
	// Retention is the operation's: the final record expires that long after it is done.
	Retention time.Duration
	// Expiry is the record's, for the settlement that makes it final without reading it.
	Expiry Expiry
	// Detached messages belong to an operation that was complete without them: their settlement leaves the record alone.
	Detached bool
	// Reference is the provider's name for what it made.
	Reference   string
	LastOutcome string
	// Evidence is kept where a definite answer could not be settled.
	Evidence []byte

	// Unknown is what the row holds besides, written by a release that knows more: the store's own, not to be looked at or
	// changed. Whoever writes the message on carries it through.
	Unknown any

	SchemaVersion int
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
	case MessagePending, MessageClaimed:
		return QueueOffer, m.SweepAt, true
	case MessageUnknown:
		return QueueUnknown, m.SweepAt, true
	case MessageDead:
		return QueueDead, m.SweepAt, true
	}
	return "", time.Time{}, false
}

// messageOutlives is how much longer than its record a final message stays, so that a late webhook or operator still
// finds what it is about.
const messageOutlives = 24 * time.Hour

// RemoveAfter is when native TTL may remove the message, and whether it may at all: only when it is final, and later
// than its record.
func (m Message) RemoveAfter() (time.Time, bool) {
	if !m.State.Final() || m.DoneAt.IsZero() {
		return time.Time{}, false
	}
	return m.DoneAt.Add(m.Retention + messageOutlives), true
}

// MessageFence is what a conditional write on a message demands of the stored one: exactly what was seen.
type MessageFence struct {
	State MessageState
	Epoch int64
	Owner Owner
	// Revision, where set, is demanded besides: exactly the row that was seen.
	Revision Revision
}

// FenceOfMessage returns the fence that demands the message exactly as it was seen.
func FenceOfMessage(m Message) MessageFence {
	return MessageFence{State: m.State, Epoch: m.Epoch, Owner: m.Owner}
}

// Admits says whether a stored message satisfies the fence.
func (f MessageFence) Admits(m Message) bool {
	return m.State == f.State && m.Epoch == f.Epoch && m.Owner == f.Owner && (f.Revision == "" || m.Revision == f.Revision)
}

// MessageRef is what a sparse index tells of a message: what never changes, and when to look. The rest is in the row.
type MessageRef struct {
	ID     MessageID
	Tenant string
	Topic  string
	// At is when somebody should look at it.
	At time.Time
}
