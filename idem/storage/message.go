package storage

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// MessageState is the state of an outbox message.
type MessageState string

// The states of a message. Delivered, declined and cancelled are final; dead is not, because late evidence settles it.
// Evidenced means that the message keeps a definite answer, which is to be settled without another call.
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

// Settler is who ended a message.
type Settler string

// The settlers of a message. Who comes to a message decides it, not which process that was: a worker that settles what its own
// claim called, and one that settles evidence which an earlier one kept, are both the worker.
const (
	SettledByWorker     Settler = "worker"     // woken by the stream or the queue
	SettledByInline     Settler = "inline"     // the request that sent it, or a later one with its key
	SettledBySweep      Settler = "sweep"      // what was overdue
	SettledByReconciler Settler = "reconciler" // by what the provider answered when it was asked
	SettledByWebhook    Settler = "webhook"    // by what the provider said of itself
	SettledByOperator   Settler = "operator"   // a person; the audit log says who
)

// Message is an outbox row that asks for one effect. The state of a message is its row; a stream record, a queue message
// and the sweep are only wake-ups. Times are UTC with millisecond resolution; a zero time is absent.
type Message struct {
	// ID is "<operation id>.<n>" and the downstream key.
	ID MessageID
	// Index is the message's place in its chain, from 1.
	Index int
	// OperationID is the incarnation that sent it, RecordKey its record's key, and Tenant its tenant.
	OperationID OperationID
	RecordKey   RecordKey
	Tenant      string
	// Topic says how the effect is made, and Payload what of: bytes that only the topic reads.
	Topic   string
	Payload []byte
	// Sealed says that payload and evidence are encrypted. A store that encrypts decrypts them when it reads the message.
	// If Sealed is still set then, nobody can decrypt them any more.
	Sealed bool
	// EvidenceRefused says that what the message keeps as evidence was not written by a store that encrypts: it counts as none, and
	// what the provider did is not known. A store that decrypts says so when it reads the message. It is not stored.
	EvidenceRefused bool

	// State is where the message is in its life.
	State MessageState
	// Epoch grows with each claim, and when an operator starts the message again. Owner is the claim that holds or last held the message.
	Epoch int64
	Owner Owner
	// Revision names the write that made the row.
	Revision Revision
	// LeaseUntil is the end of the claim's right to call the provider.
	LeaseUntil time.Time

	// CreatedAt is when the message was committed.
	CreatedAt time.Time
	// FirstClaimedAt is when a worker first had it, and NextAttemptAt when it is due again.
	FirstClaimedAt time.Time
	NextAttemptAt  time.Time
	// SweepAt is when the sweep reads the message, if it is not finished by then. A claim moves it only if its lease ends
	// later, so that most messages are written to the sparse index twice: when they enter and when they leave it.
	SweepAt time.Time
	// OpenSince is when the first call whose outcome is not known was allowed. Zero means that no call is open.
	OpenSince time.Time
	// DoneAt is when the message ended.
	DoneAt time.Time
	// RedrivenAt is when an operator last started the message again, or the one before it in a chain that was restored after a loss of
	// data. Its age counts from then.
	RedrivenAt time.Time
	// ClearedAt is when the provider was asked last, and it was proof that it had nothing. A call that is open was made after it.
	ClearedAt time.Time
	// RemoveAt is from when native TTL may remove the message, which is never before its record is final. Zero is never.
	// It is stored in seconds.
	RemoveAt time.Time

	// Attempts counts the calls since the last redrive that neither delivered nor declined, Died the claims whose worker died.
	Attempts, Died int
	// Refused says that the provider refused the last call, so that no other is made. Unfailed says that the message is
	// dead and nobody was told that it did not happen: its record could not be failed with it, or, of a detached message,
	// evidence that could not be settled buried it.
	Refused, Unfailed bool
	// Undoes says that the message undoes an earlier message of its chain. Once it is delivered the operation fails.
	Undoes bool
	// Retention is the operation's: the final record expires that long after it is done.
	Retention time.Duration
	// Expiry is the record's, for the settlement that makes it final without reading it.
	Expiry Expiry
	// Detached says that the message belongs to an operation that was complete without it. Its settlement does not change
	// the record.
	Detached bool
	// Reference is the provider's name for what it made.
	Reference string
	// LastOutcome is what the last call or question came to; empty where there was none.
	LastOutcome string
	// SettledBy is who ended the message. It is empty before, and in rows of releases that did not write it.
	SettledBy Settler
	// KeptDelivered and KeptDeclined are definite answers that could not be settled. If both are set they contradict each
	// other; delivered is settled, with an alarm.
	KeptDelivered, KeptDeclined *Kept

	// Trace is the position in a trace that sent the message; none where nobody traced it.
	Trace trace.Context

	// Unknown is what the row holds besides, written by a release that knows more: the store's own, not to be looked at or
	// changed. A release that rewrites the message carries it through.
	Unknown any

	// SchemaVersion is that of the release that wrote the row.
	SchemaVersion int
}

// Kept is a definite answer of the provider that is kept on its message.
type Kept struct {
	// Reference is the provider's name for what it made or declined.
	Reference string
	// Evidence is what the provider said, byte for byte.
	Evidence []byte
}

// Readable says whether this release knows the message's schema version and state.
func (m Message) Readable() bool { return m.SchemaVersion == SchemaVersion && m.State.Known() }

// QueueOffer and QueueDead are, with [QueueUnknown], the queues of the messages' sparse index.
const (
	QueueOffer = "offer"
	QueueDead  = "dead"
)

// Queue returns the queue of the sparse index that the message is in, and the time from which it should be processed.
// Final messages are in no queue.
func (m Message) Queue() (queue string, at time.Time, ok bool) {
	switch m.State {
	case MessagePending, MessageClaimed, MessageEvidenced:
		return QueueOffer, m.SweepAt, true
	case MessageUnknown:
		return QueueUnknown, m.SweepAt, true
	case MessageDead:
		return QueueDead, m.SweepAt, true
	case MessageDelivered, MessageDeclined, MessageCancelled: // final
	}
	return "", time.Time{}, false
}

// messageOutlives is how much longer than its record a message stays, so that a late webhook or operator still finds what it
// is about.
const messageOutlives = 24 * time.Hour

// RemovedAfter returns the message's RemoveAt once its operation has ended with a record that expires at the given time:
// zero if the record lives as long as its resource.
func (m Message) RemovedAfter(expires time.Time) time.Time {
	if expires.IsZero() {
		return time.Time{}
	}
	return expires.Add(m.Expiry.KeepFor + messageOutlives + time.Second - 1).Truncate(time.Second)
}

// MessageFence is the condition of a write on the stored message. One of its alternatives must hold, and NotDead too. It
// never holds if there is no message. A fence without an alternative admits nothing, and stores refuse it.
type MessageFence struct {
	// Revision, where set, admits exactly the row that was seen.
	Revision Revision
	// States, where not empty, admits what a claim has made of the message: Owner, Epoch and one of these states.
	Owner  Owner
	Epoch  int64
	States []MessageState
	// Open admits any message that this release can read and that is not final. It is the fence of definite evidence.
	Open bool
	// NotDead demands as well that the message is not dead.
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
		f.Open && m.Readable() && !m.State.Final()
}

// MessageRef is a message as a sparse index shows it: the attributes that never change, and when to process it. The rest
// is in the row.
type MessageRef struct {
	// ID, Tenant and Topic are the message's.
	ID     MessageID
	Tenant string
	Topic  string
	// At is when somebody should look at it.
	At time.Time
}
