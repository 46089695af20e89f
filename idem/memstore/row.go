package memstore

import (
	"bytes"
	"fmt"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Write is a business write on one row. A row is bytes, nil where there is none; an application encodes its own into them.
type Write struct {
	// Key names the row; no two writes of a transaction may have the same.
	Key string
	// Condition judges the row as it was before the transaction. Nil is no condition.
	Condition func(row []byte) bool
	// Apply returns what becomes of the row, nil to remove it. Nil leaves the row alone: the write only checks its
	// condition. It gets a copy that it may change, and is called at most once, after all conditions held.
	Apply func(row []byte) []byte
	// Failure is what a failed condition means.
	Failure storage.Failure
}

// IfConditionFails implements storage.Write.
func (w Write) IfConditionFails() storage.Failure { return w.Failure }

// native takes a write that is a Write already.
func native(w storage.Write) (Write, error) {
	native, ok := w.(Write)
	if !ok {
		return Write{}, fmt.Errorf("memstore: a write is a %T, which Config.Translate has to turn into a memstore.Write", w)
	}
	return native, nil
}

// writeRow is a business write, with its position among those of its transaction.
type writeRow struct {
	Position int
	Key      string
	write    Write
}

func (w writeRow) id() string { return "row " + w.Key }

func (w writeRow) validate(*Store) error { return nil }

func (w writeRow) judge(s *Store) error {
	if w.write.Condition == nil || w.write.Condition(bytes.Clone(s.rows[w.Key])) {
		return nil
	}
	return &storage.WriteFailedError{Indexes: []int{w.Position}}
}

func (w writeRow) apply(s *Store) {
	if w.write.Apply == nil {
		return
	}
	if row := w.write.Apply(bytes.Clone(s.rows[w.Key])); row != nil {
		s.rows[w.Key] = bytes.Clone(row)
	} else {
		delete(s.rows, w.Key)
	}
}

// translate turns the application's writes into items, in order.
func (s *Store) translate(writes []storage.Write) ([]item, error) {
	items := make([]item, len(writes))
	for position, w := range writes {
		native, err := s.cfg.Translate(w)
		if err != nil {
			return nil, fmt.Errorf("memstore: translate write %d: %w", position, err)
		}
		if native.Key == "" {
			return nil, fmt.Errorf("memstore: write %d has no key", position)
		}
		items[position] = writeRow{Position: position, Key: native.Key, write: native}
	}
	return items, nil
}

// Row returns a copy of the row, nil where there is none.
func (s *Store) Row(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.rows[key])
}

// Rows returns a copy of all rows.
func (s *Store) Rows() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make(map[string][]byte, len(s.rows))
	for key, row := range s.rows {
		rows[key] = bytes.Clone(row)
	}
	return rows
}

// PutRow writes a row outside any transaction, as a test's seed does; nil removes it.
func (s *Store) PutRow(key string, row []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if row == nil {
		delete(s.rows, key)
		return
	}
	s.rows[key] = bytes.Clone(row)
}

// WriteRows applies writes outside any operation, all or none, as an application's own job does: a
// [*storage.WriteFailedError] names those whose conditions failed.
func (s *Store) WriteRows(writes ...Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := make([]item, len(writes))
	for i, w := range writes {
		items[i] = writeRow{Position: i, Key: w.Key, write: w}
	}
	if err := s.judge(items); err != nil {
		return err
	}
	for _, i := range items {
		i.apply(s)
	}
	return nil
}
