package payments

import (
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Status is the status of a payment.
type Status string

// The statuses of a payment. Unknown is never stored: it is derived from the payment's message when it is read.
const (
	StatusPending   Status = "pending"
	StatusSucceeded Status = "succeeded"
	StatusDeclined  Status = "declined"
	StatusUnknown   Status = "unknown"
	StatusFailed    Status = "failed"
)

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
	CreatedAt         time.Time
	// Message is the outbox message that charges it.
	Message idem.MessageID
}

// Account holds money of a tenant. Its balance is in minor units and never negative.
type Account struct {
	Tenant   string
	ID       string
	Currency string
	Balance  int64
}

// Transfer moved money between two accounts of a tenant.
type Transfer struct {
	Tenant    string
	ID        string
	From      string
	To        string
	Amount    int64
	Currency  string
	CreatedAt time.Time
}

// entityID derives an id from the operation's incarnation: it is the same however often the handler runs, and no other
// incarnation has it.
func entityID(prefix string, id idem.OperationID) string {
	const random = 22 // base64url characters that hold the incarnation's 128 random bits
	return prefix + strings.NewReplacer("-", "0", "_", "1").Replace(string(id[len(id)-random:]))
}
