package pgstore

import (
	"context"
	"time"
)

// tokenKept is for how long a token is remembered. Nobody sends the same bytes for longer than an execution lasts.
const tokenKept = time.Hour

// purgeRows bounds what one statement deletes, and so for how long it holds its locks.
const purgeRows = 1000

// Purge deletes what may be gone at now, and returns how many rows that were. It does what native TTL does on DynamoDB: a row
// is deleted only when the contract lets it go, which is some time after its key is free, and nothing depends on whether it
// has been. A row that somebody holds is left to the next run.
func (s *Store) Purge(ctx context.Context, now time.Time) (deleted int, err error) {
	for _, job := range []struct {
		sql    string
		before time.Time
	}{
		{purge("idem_records", "key", "remove_after"), now},
		{purge("idem_messages", "id", "remove_after"), now},
		{purge("idem_tokens", "token", "sent_at"), now.Add(-tokenKept)},
	} {
		for more := true; more; {
			tag, err := s.pool.Exec(ctx, job.sql, job.before.UTC(), purgeRows)
			if err != nil {
				return deleted, wrapped("purge", err)
			}
			deleted += int(tag.RowsAffected())
			more = tag.RowsAffected() == purgeRows
		}
	}
	return deleted, nil
}

// purge skips a row that is locked: its holder may be about to keep it.
func purge(table, key, column string) string {
	return "delete from " + table + " where " + key + " in (select " + key + " from " + table +
		" where " + column + " <= $1 order by " + column + " limit $2 for update skip locked)"
}
