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
func (s *Store) Records() []storage.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := make([]storage.Record, 0, len(s.records))
	for _, r := range s.records {
		records = append(records, copyRecord(r))
	}
	slices.SortFunc(records, func(a, b storage.Record) int { return cmp.Compare(a.Key, b.Key) })
	return records
}

// Messages returns copies of all messages, ordered by id.
func (s *Store) Messages() []storage.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := make([]storage.Message, 0, len(s.messages))
	for _, m := range s.messages {
		messages = append(messages, copyMessage(m))
	}
	slices.SortFunc(messages, func(a, b storage.Message) int { return cmp.Compare(a.ID, b.ID) })
	return messages
}
