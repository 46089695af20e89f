package protocol

// MessageState is the state of a message.
type MessageState uint8

// The states of a message.
const (
	NoMessage MessageState = iota
	Due
	Claimed
	Delivered
	Declined
	InDoubt   // unknown
	Evidenced // a definite answer is kept that could not be settled yet
	Dead
	Cancelled
)

// Final says that the message is at its end.
func (s MessageState) Final() bool { return s == Delivered || s == Declined || s == Cancelled }

// Message is the header of a stored message.
type Message struct {
	State MessageState
	// Index is its place in the chain, from 1.
	Index               uint8
	Epoch               uint32
	Op, Owner, Revision ID
	Lease               Instant
	OpenSince           Instant
}

// claim takes the right to call until the lease ends.
func claim(m Message, owner ID, lease, now Instant) Message {
	m.State, m.Owner, m.Lease = Claimed, owner, lease
	m.Epoch++
	if m.OpenSince == 0 {
		m.OpenSince = now
	}
	return m
}

// Topic is what delivery depends on.
type Topic struct {
	// ClaimLease is how long a claim is the right to call.
	ClaimLease Millis
}

// Asked is what the topic's Settle is asked.
type Asked uint8

// Meant is what the topic's Settle answered.
type Meant struct{}

// Outcome is what a provider's answer means.
type Outcome uint8

// The outcomes of a probe of a wrapped record.
const (
	OutUnclear Outcome = iota + 1
	OutAbsent
	OutFound
)
