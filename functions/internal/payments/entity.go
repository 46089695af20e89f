package payments

import (
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Status is the status of a payment, refund or payout.
type Status string

// The statuses. Unknown is never stored: it is derived from the open message when the entity is read.
const (
	StatusPending   Status = "pending"
	StatusSucceeded Status = "succeeded"
	StatusDeclined  Status = "declined"
	StatusUnknown   Status = "unknown"
	StatusFailed    Status = "failed"
)

// Stored says whether a row may have the status.
func (s Status) Stored() bool {
	switch s {
	case StatusPending, StatusSucceeded, StatusDeclined, StatusFailed:
		return true
	case StatusUnknown:
	}
	return false
}

// Payment is a charge that a client asked for. Amounts are in minor units.
type Payment struct {
	Tenant            string
	ID                string
	Status            Status
	Amount            int64
	Currency          string
	Source            string
	Reference         string
	ProviderReference string
	// Refunded is the sum of its refunds that are pending or succeeded; it never exceeds Amount.
	Refunded  int64
	CreatedAt time.Time
	// Message is the outbox message that charges it.
	Message idem.MessageID
	// Comparison names the last comparison that has corrected Refunded ([Table.CorrectRefunded]); it is empty before the first.
	Comparison string
}

// Refund gives a part of a payment back, or all of it.
type Refund struct {
	Tenant            string
	ID                string
	Payment           string
	Status            Status
	Amount            int64
	Currency          string
	ProviderReference string
	CreatedAt         time.Time
	// Message is the outbox message that refunds it; refunds of older releases have none.
	Message idem.MessageID
}

// Payout sends money of an account to a destination outside. From its first moment the account does not hold the money
// any more; a payout that is declined or failed has given it back.
type Payout struct {
	Tenant            string
	ID                string
	Status            Status
	From              string
	Amount            int64
	Currency          string
	Destination       string
	ProviderReference string
	CreatedAt         time.Time
	// Message is the first outbox message of its chain.
	Message idem.MessageID
	// Counted and GivenBack say that the debit of the payout, and the credit of one that was not made, are in its account's Moved.
	Counted, GivenBack bool
}

// Account holds money of a tenant. Its balance is in minor units and never negative.
type Account struct {
	Tenant   string
	ID       string
	Currency string
	// Balance is what can be spent.
	Balance int64
	// Partitions is over how many partitions of the ledger index the transfers to a collecting account are spread that wait to be
	// folded into its balance ([Folder]). 0: the account collects nothing, and each transfer changes the balance itself.
	Partitions int
	// Moved is what transfers and payouts have done to Balance at once, in the same writes: what the rows that are marked as counted
	// must add up to. Folding is not in it.
	Moved Moved
	// Folded is all that was ever folded into the balance, in the same writes: what its transfers must add up to that are marked so.
	Folded Total
	// ComparedTo is the RefuseBefore of the last loss of data after which Folded was compared with the transfers. Nothing is folded
	// after a later one. First it is the time at which the account began to collect; the zero time where it does not.
	ComparedTo time.Time
	// Comparison names the last comparison that was written ([Table.Compared]); it is empty before the first.
	Comparison string
}

// Total is a number of transfers and the sum of their amounts.
type Total struct {
	Transfers int64 `json:"transfers"`
	Amount    int64 `json:"amount"`
}

// Moved is a number of debits and credits, and what they have changed a balance by.
type Moved struct {
	Movements int64 `json:"movements"`
	Amount    int64 `json:"amount"`
}

// Collects says that transfers to the account wait to be folded into its balance.
func (a Account) Collects() bool { return a.Partitions > 0 }

// Transfer moved money between two accounts of a tenant.
type Transfer struct {
	Tenant    string
	ID        string
	From      string
	To        string
	Amount    int64
	Currency  string
	CreatedAt time.Time
	// Partition is that of the receiver's incoming transfers that this one waits in, from 1. 0: the receiver's balance has it.
	Partition int
	// Counted says that its debit and its credit are in the accounts' Moved, but for a credit that waits or was folded. A transfer that a
	// release before that total has made is not counted.
	Counted bool
	// Folded says that the receiver's balance has it by being folded.
	Folded bool
}

// The prefixes of the ids.
const (
	paymentPrefix  = "pay_"
	refundPrefix   = "re_"
	payoutPrefix   = "po_"
	transferPrefix = "tr_"
)

// entityRandom is how many characters of an id follow its prefix: they hold the 128 random bits of the operation's incarnation.
const entityRandom = 22

// entityID derives an id from the operation's incarnation: it is the same however often the handler runs, and no other
// incarnation has it.
func entityID(prefix string, id idem.OperationID) string {
	return prefix + strings.NewReplacer("-", "0", "_", "1").Replace(string(id[len(id)-entityRandom:]))
}
