package pgstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Shards implements outbox.Store: one. Shards spread the writes of an index that has partitions, and a B-tree has none.
func (s *Store) Shards() int { return 1 }

const (
	queuedMessages = "select id, tenant, topic, queue_at from idem_messages"
	queuedRecords  = "select key, operation_id, tenant, queue_at from idem_records"
)

// QueuedMessages implements outbox.Store. It refuses a shard that does not exist, a limit below 1 and a cursor that it did
// not return.
func (s *Store) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) ([]storage.MessageRef, string, error) {
	return list(ctx, s, queuedMessages, "id", page{queue, shard, until, limit, cursor}, func(rows pgx.CollectableRow) (ref storage.MessageRef, at time.Time, id string, err error) {
		err = rows.Scan(wordOf(&ref.ID), &ref.Tenant, &ref.Topic, instant{&at})
		ref.At = shown(at)
		return ref, at, string(ref.ID), err
	})
}

// QueuedRecords implements outbox.Store. It refuses what QueuedMessages does.
func (s *Store) QueuedRecords(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) ([]storage.RecordRef, string, error) {
	return list(ctx, s, queuedRecords, "key", page{queue, shard, until, limit, cursor}, func(rows pgx.CollectableRow) (ref storage.RecordRef, at time.Time, id string, err error) {
		err = rows.Scan(wordOf(&ref.Key), wordOf(&ref.OperationID), &ref.Tenant, instant{&at})
		ref.At = shown(at)
		return ref, at, string(ref.Key), err
	})
}

// shown is a place in a queue as its row says it: what is due at once names no time.
func shown(at time.Time) time.Time {
	if at.Equal(atOnce(time.Time{})) {
		return time.Time{}
	}
	return at
}

// page is what a listing asks for.
type page struct {
	queue  string
	shard  int
	until  time.Time
	limit  int
	cursor string
}

// list reads one page: by time, then by id, from behind the cursor. It reads one row more than the page has, to know whether
// there is another page.
func list[Ref any](ctx context.Context, s *Store, columns, id string, p page, scan func(pgx.CollectableRow) (Ref, time.Time, string, error)) (refs []Ref, next string, err error) {
	if p.shard < 0 || p.shard >= s.Shards() || p.limit < 1 {
		return nil, "", fmt.Errorf("pgstore: shard %d of %d, limit %d", p.shard, s.Shards(), p.limit)
	}
	after, afterID, err := parseCursor(p.cursor)
	if err != nil {
		return nil, "", err
	}
	sql := fmt.Sprintf("%s where queue = $1 and queue_at <= $2 and (queue_at, %s) > ($3, $4) order by queue_at, %[2]s limit $5", columns, id)
	rows, err := s.pool.Query(ctx, sql, p.queue, p.until.UTC(), after, afterID, p.limit+1)
	if err != nil {
		return nil, "", wrapped("list "+p.queue, err)
	}
	defer rows.Close()
	for rows.Next() {
		if len(refs) == p.limit {
			return refs, next, nil
		}
		ref, at, last, err := scan(rows)
		if err != nil {
			return nil, "", wrapped("list "+p.queue, err)
		}
		refs, next = append(refs, ref), strconv.FormatInt(at.UnixMilli(), 10)+" "+last
	}
	return refs, "", wrapped("list "+p.queue, rows.Err())
}

// parseCursor reads a cursor, which names the last place of a page: "<epoch ms> <id>". "" stands before every place.
func parseCursor(cursor string) (after time.Time, id string, err error) {
	if cursor == "" {
		return time.UnixMilli(-1).UTC(), "", nil
	}
	at, id, _ := strings.Cut(cursor, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("pgstore: cursor %q: %w", cursor, err)
	}
	return time.UnixMilli(ms).UTC(), id, nil
}
