package recovery

import (
	"context"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Store is what recovery reads; what it writes goes through the engine. dynamo.Store and memstore.Store implement it,
// and so do their decorators that a worker is wired with.
type Store interface {
	// Get is as in [storage.Store].
	Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error)
	// QueuedRecords lists records of a queue's shard that are due at until, oldest first, at most limit of them, from the
	// sparse index: stale. The cursor is "" to begin with and "" when there is no more.
	QueuedRecords(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.RecordRef, next string, err error)
	// Shards is the number of shards that each queue has, numbered from 0.
	Shards() int
}
