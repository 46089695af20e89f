// Package memlog keeps the audit log of package operator in memory. Use it in tests and simulations, as the Audit of
// an operator.Config. Do not use it in production: the log of changes to money must outlive the process, so package
// auditlog keeps it in DynamoDB.
package memlog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
)

// Log implements [operator.AuditLog]. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	entries []operator.Entry
}

// New returns an empty log.
func New() *Log { return &Log{} }

// ErrBegun: there is an entry of that id already.
var ErrBegun = errors.New("memlog: the entry was begun before")

// ErrNotOpen: the entry was not begun, or was ended otherwise.
var ErrNotOpen = errors.New("memlog: the entry is not open")

// Begin implements [operator.AuditLog].
func (l *Log) Begin(ctx context.Context, e operator.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch there := l.find(e.ID); {
	case there == nil:
		l.entries = append(l.entries, e)
	case *there != e:
		return ErrBegun
	}
	return nil
}

// End implements [operator.AuditLog].
func (l *Log) End(ctx context.Context, e operator.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	there := l.find(e.ID)
	if there == nil || there.State != operator.EntryIntended && (there.State != e.State || !there.DoneAt.Equal(e.DoneAt)) {
		return ErrNotOpen
	}
	there.State, there.Outcome, there.DoneAt = e.State, e.Outcome, e.DoneAt
	return nil
}

// Entries implements [operator.AuditLog].
func (l *Log) Entries(ctx context.Context, from, to time.Time, subject string, limit int) ([]operator.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []operator.Entry
	for _, e := range l.entries {
		if !e.At.Before(from) && e.At.Before(to) && strings.HasPrefix(e.Subject, subject) {
			found = append(found, e)
		}
	}
	slices.Reverse(found) // the later begun first, where two are of the same instant
	slices.SortStableFunc(found, func(a, b operator.Entry) int { return b.At.Compare(a.At) })
	return found[:min(limit, len(found))], nil
}

// find returns the entry itself. The lock is held.
func (l *Log) find(id string) *operator.Entry {
	for i := range l.entries {
		if l.entries[i].ID == id {
			return &l.entries[i]
		}
	}
	return nil
}
