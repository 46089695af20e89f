package drift

import (
	"strings"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// family is what an object of the provider is, whether its endpoint honours keys or not.
type family string

// The families. An entry's own one is where its money moves. A payout's destination is screened besides, and the hold of
// the screening is released where the payout is not made.
const (
	charges    family = "charge"
	refunds    family = "refund"
	screenings family = "screening"
	releases   family = "release"
	payouts    family = "payout"
)

const legacyPrefix = "legacy_"

// object is what is compared of an object of the provider.
type object struct {
	ID        string    `json:"id"`
	Kind      string    `json:"object"`
	Status    string    `json:"status"`
	Key       string    `json:"key"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	Reference string    `json:"reference"`
	Charge    string    `json:"charge"`
	Hold      string    `json:"hold"` // only of a screening, and only where the provider shows it
	CreatedAt time.Time `json:"created_at"`
}

// holdStanding is a hold that nothing has released.
const holdStanding = "standing"

func (o object) family() family { return family(strings.TrimPrefix(o.Kind, legacyPrefix)) }

// operation is whose key made the object; "" where its key is none of ours.
func (o object) operation() idem.OperationID {
	operation, _, err := idem.MessageID(o.Key).Operation()
	if err != nil {
		return ""
	}
	return operation
}

func (o object) succeeded() bool { return o.Status == string(payments.StatusSucceeded) }
func (o object) declined() bool  { return o.Status == string(payments.StatusDeclined) }

func (o object) side() Side {
	return Side{What: "provider " + o.Kind, ID: o.ID, State: o.Status, Amount: o.Amount, Currency: o.Currency}
}

// entryKind is the kind of row that stands behind objects of a family.
func (f family) entryKind() (payments.EntryKind, bool) {
	switch f {
	case charges:
		return payments.EntryPayment, true
	case refunds:
		return payments.EntryRefund, true
	case screenings, payouts, releases:
		return payments.EntryPayout, true
	}
	return "", false
}

// effect is one message of an entry's chain, and what it makes at the provider.
type effect struct {
	position int // in the chain, from 1
	family   family
}

// effects are an entry's chain. What follows the one that moves its money undoes what came before it: there is such a
// message only where the money was not moved.
func effects(kind payments.EntryKind) []effect {
	switch kind {
	case payments.EntryPayment:
		return []effect{{1, charges}}
	case payments.EntryRefund:
		return []effect{{1, refunds}}
	case payments.EntryPayout:
		return []effect{{1, screenings}, {2, payouts}, {3, releases}}
	}
	return nil
}

// money is the effect that moves an entry's money: its row is about that one.
func money(kind payments.EntryKind) effect {
	chain := effects(kind)
	if kind == payments.EntryPayout {
		return chain[1]
	}
	return chain[0]
}

// record is what is compared of a record.
type record struct {
	operation idem.OperationID
	tenant    string
	state     storage.State
	doneAt    time.Time
	readable  bool
	// erased says that a person ended the operation because nobody can open its message any more: it has failed, whatever became of it.
	erased bool
}

// story is everything that is known of one entry.
type story struct {
	entry     payments.Entry
	operation idem.OperationID
	// messages are the chain by position, from 0; nil where there is none.
	messages []*storage.Message
	// record is nil where there is none, or where the key's is another operation's.
	record *record
	// objects are those under the operation's keys, and those whose reference is the entry's id.
	objects []object
}

// readable says that nothing of the story is another release's.
func (s story) readable() bool {
	for _, m := range s.messages {
		if m != nil && !m.Readable() {
			return false
		}
	}
	return s.record == nil || s.record.readable
}

func (s story) row() Side {
	return Side{What: string(s.entry.Kind), ID: s.entry.ID, State: string(s.entry.Status), Amount: s.entry.Amount, Currency: s.entry.Currency}
}

// message is a message of the chain as a side; n from 1.
func (s story) message(n int) Side {
	side := Side{What: "message", ID: string(s.operation.Message(n)), State: absent}
	if m := s.messages[n-1]; m != nil {
		side.State = string(m.State)
	}
	return side
}

func (s story) recordSide() Side {
	side := Side{What: "record", ID: string(s.operation), State: absent}
	if s.record != nil {
		side.State = string(s.record.state)
	}
	return side
}

// last is the furthest message there is, and its position; nil and 0 where there is none.
func (s story) last() (*storage.Message, int) {
	for n := len(s.messages); n > 0; n-- {
		if m := s.messages[n-1]; m != nil {
			return m, n
		}
	}
	return nil, 0
}

// ended says that the message is final and that no further one is to come.
func (s story) ended() bool {
	m, n := s.last()
	return m != nil && m.State.Final() && !s.continues(m, n)
}

// continues says that the n-th message's end is another message: the next effect, or the one that undoes.
func (s story) continues(m *storage.Message, n int) bool {
	moves := money(s.entry.Kind).position
	switch m.State {
	case storage.MessageDelivered:
		return n < moves
	case storage.MessageDeclined, storage.MessageCancelled:
		return n == moves && moves < len(s.messages)
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced, storage.MessageUnknown, storage.MessageDead:
	}
	return false
}

// undoes says that the n-th message undoes what came before the money.
func (s story) undoes(n int) bool { return n > money(s.entry.Kind).position }
