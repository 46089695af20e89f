package idem

import (
	"context"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// InlineDelivery delivers a deferred operation's messages within its request: inline first (docs/design.md "Kinds of
// operation"). Whatever it does not finish, a worker does. Package outbox has it.
type InlineDelivery interface {
	// Claimed returns the message as it is inserted: claimed already, by the execution that will call.
	Claimed(m storage.Message, owner storage.Owner, now time.Time) (storage.Message, error)
	// Deliver makes the call of a message that the caller has inserted as claimed, settles, and goes on with the chain as
	// long as the context leaves time. It returns the record's end, or nil where the chain is not at its end yet.
	Deliver(ctx context.Context, m storage.Message) (*storage.RecordEnd, error)
	// Resume finds the open message of the operation's chain, claims it if it is due or its claim is dead, and goes on
	// as Deliver does; nil where somebody else is at it or it has to wait.
	Resume(ctx context.Context, id OperationID) (*storage.RecordEnd, error)
}
