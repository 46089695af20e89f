package outbox

import (
	"context"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Store is what workers and runners need of a store. dynamo.Store and memstore.Store implement it, and so do their decorators;
// their errors mean what [storage.Store] says. Implementations must be safe for concurrent use.
type Store interface {
	Messages
	Records
	storage.Loss
	// UpdateMessage replaces the whole message where the stored one satisfies the fence: claim, back-off, parking, offering.
	UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error
	// PatchMessage changes the attributes that the end names, where the stored message satisfies the fence, and leaves
	// the rest. So evidence whose fence is only "not final" erases no claim.
	PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error
	// PostponeMessage moves the message to another place in its queue, where the stored one satisfies the fence. Everything
	// else stays, the revision too. No time at all is refused.
	PostponeMessage(ctx context.Context, id idem.MessageID, at time.Time, fence storage.MessageFence) error
	// PrepareSettle freezes a settlement into one transaction and returns what sends it; sending again sends identical
	// bytes with the same token.
	PrepareSettle(s storage.Settlement) (send func(context.Context) error, err error)
	// QueuedMessages lists messages of a queue's shard that are due at until, oldest first, at most limit of them, from
	// the sparse index: stale. The cursor is "" to begin with and "" when there is no more.
	QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.MessageRef, next string, err error)
	// Place returns the cursor that was last set under the name: where the next run of a [Runner] goes on. "" if none was set. A place
	// that is lost or out of date makes a run begin elsewhere; what it names may be gone.
	Place(ctx context.Context, name string) (cursor string, err error)
	// SetPlace sets the cursor, whatever is stored; "" is none. Names are letters, digits and dots.
	SetPlace(ctx context.Context, name, cursor string) error
	// Shards is the number of shards of each queue that rows are written into, numbered from 0. A store that knows of more, which
	// another release has written into, lists those too ([Runner.AdoptShards]).
	Shards() int
}

// Records is what a [Runner] needs of a store to look at records of wrapped operations, beside what it does through the engine.
type Records interface {
	// Postpone is as in [storage.Store].
	Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error
	// QueuedRecords lists records as QueuedMessages lists messages.
	QueuedRecords(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.RecordRef, next string, err error)
}
