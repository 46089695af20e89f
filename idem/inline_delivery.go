package idem

import (
	"context"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// InlineDelivery delivers a deferred operation's messages within its request, after the commit: the request then
// answers with the end instead of a 202. A worker finishes what it leaves open. outbox.NewInline makes one.
//
// outlives says that the process goes on after the context has ended ([Config].KillsAtDeadline is not set). Deliver and
// Resume return by the context's deadline all the same, and may go on with what nobody else can finish: keeping a
// provider's answer.
type InlineDelivery interface {
	// Leaves says that a new message is left to a worker, because a call could hold its request for long. The message is then
	// inserted as pending, and the request is answered with its 202.
	Leaves(m storage.Message) bool
	// Left is told of a message that Leaves was true of, once it is committed.
	Left(ctx context.Context, m storage.Message)
	// Claimed returns the message as it is inserted: claimed already, by the execution that will call.
	Claimed(m storage.Message, owner storage.Owner, now time.Time) (storage.Message, error)
	// Deliver makes the call of a message that the caller has inserted as claimed, settles it, and continues the chain
	// for as long as the context leaves time. It returns the record's end, or nil where the chain has not ended yet.
	Deliver(ctx context.Context, m storage.Message, outlives bool) (*storage.RecordEnd, error)
	// Resume finds the open message of the operation's chain, claims it if it is due or its claim is dead, and continues
	// as Deliver does. It returns nil where another worker has the message or it is not due.
	Resume(ctx context.Context, id OperationID, outlives bool) (*storage.RecordEnd, error)
}
