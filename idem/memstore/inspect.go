package memstore

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Expire removes what native TTL may remove at now: native TTL does so late or never, so a test that wants to see both
// calls it or does not. It returns how many records and messages went.
func (s *Store) Expire(now time.Time) (records, messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records, messages = len(s.records), len(s.messages)
	maps.DeleteFunc(s.records, func(_ storage.RecordKey, r storage.Record) bool { return due(now)(r.RemoveAfter()) })
	maps.DeleteFunc(s.messages, func(_ storage.MessageID, m storage.Message) bool {
		return due(now)(m.RemoveAt, m.State.Final() && !m.RemoveAt.IsZero())
	})
	return records - len(s.records), messages - len(s.messages)
}

func due(now time.Time) func(time.Time, bool) bool {
	return func(after time.Time, may bool) bool { return may && !now.Before(after) }
}

// Records returns copies of all records, bodies included, ordered by key.
func (s *Store) Records() []storage.Record { return copies(s, s.records, copyRecord) }

// Messages returns copies of all messages, ordered by id.
func (s *Store) Messages() []storage.Message { return copies(s, s.messages, copyMessage) }

func copies[ID cmp.Ordered, Row any](s *Store, rows map[ID]Row, copyOf func(Row) Row) []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Row, 0, len(rows))
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, copyOf(rows[id]))
	}
	return all
}
