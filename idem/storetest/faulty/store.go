// Package faulty wraps a store with faults, for tests of the code above it. A call can be refused before it runs,
// lose its reply after it ran, run late, wait, or let the test act just before or after it. It is for tests only. Use
// it around a memstore.Store, to see what an engine or a worker makes of a fault; package wirefault does the same to
// the HTTP client of package dynamo.
//
//	store := faulty.New(inner)
//	store.On(faulty.Commit, 1, faulty.LoseReply())                // the next commit happens, but nobody hears of it
//	store.On(faulty.Update, 2, faulty.Refuse(storage.ErrContention)) // the update after the next is in somebody's way
package faulty

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Call names what is called. Each sending of a prepared transaction is one call.
type Call string

// The calls of storage.Store, storage.Loss and outbox.Store that reach the store.
const (
	Get            Call = "Get"
	ScopeMark      Call = "ScopeMark"
	LoadResponse   Call = "LoadResponse"
	Insert         Call = "Insert"
	Update         Call = "Update"
	Renew          Call = "Renew"
	Postpone       Call = "Postpone"
	Commit         Call = "Commit" // a sending of what Prepare returned
	Message        Call = "Message"
	UpdateMessage  Call = "UpdateMessage"
	Settle         Call = "Settle" // a sending of what PrepareSettle returned
	PatchMessage   Call = "PatchMessage"
	QueuedMessages Call = "QueuedMessages"
	QueuedRecords  Call = "QueuedRecords"

	Place           Call = "Place"
	SetPlace        Call = "SetPlace"
	PostponeMessage Call = "PostponeMessage"
	RefuseBefore    Call = "RefuseBefore"
	SetRefuseBefore Call = "SetRefuseBefore"
)

// Inner is the store that is wrapped.
type Inner interface {
	storage.Store
	outbox.Store
}

// Store is a store with faults. It implements storage.Store and outbox.Store, and is safe for concurrent use.
type Store struct {
	inner Inner

	mu     sync.Mutex
	counts map[Call]int
	rules  []rule
	all    []Around
	tokens []string
}

// Around gives each call of a name its fault.
type Around func(call Call) Fault

// rule is a fault for the call with that number, counted from the beginning.
type rule struct {
	call   Call
	number int
	fault  Fault
}

// New wraps the store. Without faults it behaves like the store itself.
func New(inner Inner) *Store {
	return &Store{inner: inner, counts: map[Call]int{}}
}

// On gives the n-th call from now on the fault, n from 1. Where one call has several, the first given is the outermost.
func (s *Store) On(call Call, n int, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rule{call, s.counts[call] + n, fault})
}

// All gives every call from now on the fault, outside those that On gave: a store that is down, or a process that was
// killed and reaches it no more.
func (s *Store) All(fault Fault) { s.Each(func(Call) Fault { return fault }) }

// Each is as All, with a fault that may differ from call to call. It is asked before every call, concurrently.
func (s *Store) Each(around Around) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, around)
}

// Clear takes all faults away that have not begun.
func (s *Store) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.all = nil, nil
}

// Count returns how often the call was made, faults included.
func (s *Store) Count(call Call) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[call]
}

// Prepared returns the token of each transaction that was prepared, in that order. One that is sent again is prepared once.
func (s *Store) Prepared() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tokens)
}

func (s *Store) prepared(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, token)
}

// call counts the call and makes it through its faults.
func (s *Store) call(ctx context.Context, call Call, run func(context.Context) error) error {
	s.mu.Lock()
	s.counts[call]++
	all := slices.Clone(s.all)
	var faults []Fault
	for _, r := range s.rules {
		if r.call == call && r.number == s.counts[call] {
			faults = append(faults, r.fault)
		}
	}
	s.mu.Unlock()
	for _, around := range slices.Backward(all) {
		faults = slices.Insert(faults, 0, around(call))
	}
	for _, fault := range slices.Backward(faults) {
		within := run
		run = func(ctx context.Context) error { return fault(ctx, within) }
	}
	return run(ctx)
}

// ResponseBytesMax implements storage.ResponseBound, as the store within does.
func (s *Store) ResponseBytesMax() int { return storage.ResponseBytesMaxOf(s.inner) }

// Decrypts implements storage.Decrypter, as the store within does.
func (s *Store) Decrypts() bool { return storage.Decrypts(s.inner) }

// RefuseBefore implements storage.Loss, as the store within does.
func (s *Store) RefuseBefore(ctx context.Context) (time.Time, error) {
	var at time.Time
	err := s.call(ctx, RefuseBefore, func(ctx context.Context) (err error) {
		at, err = s.inner.RefuseBefore(ctx)
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	return at, nil
}

// SetRefuseBefore implements storage.Loss, as the store within does.
func (s *Store) SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error) {
	var kept time.Time
	err := s.call(ctx, SetRefuseBefore, func(ctx context.Context) (err error) {
		kept, err = s.inner.SetRefuseBefore(ctx, at)
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	return kept, nil
}

// Get implements storage.Store.
func (s *Store) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	var found *storage.Record
	err := s.call(ctx, Get, func(ctx context.Context) (err error) {
		found, err = s.inner.Get(ctx, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// ScopeMark implements storage.Store.
func (s *Store) ScopeMark(ctx context.Context, keep string) (kept string, err error) {
	err = s.call(ctx, ScopeMark, func(ctx context.Context) (err error) {
		kept, err = s.inner.ScopeMark(ctx, keep)
		return err
	})
	if err != nil {
		return "", err
	}
	return kept, nil
}

// LoadResponse implements storage.Store.
func (s *Store) LoadResponse(ctx context.Context, r storage.Record) (storage.Record, error) {
	var loaded storage.Record
	err := s.call(ctx, LoadResponse, func(ctx context.Context) (err error) {
		loaded, err = s.inner.LoadResponse(ctx, r)
		return err
	})
	if err != nil {
		return storage.Record{}, err
	}
	return loaded, nil
}

// Insert implements storage.Store.
func (s *Store) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	return s.call(ctx, Insert, func(ctx context.Context) error { return s.inner.Insert(ctx, r, now) })
}

// Update implements storage.Store.
func (s *Store) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.call(ctx, Update, func(ctx context.Context) error { return s.inner.Update(ctx, r, fence) })
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.call(ctx, Renew, func(ctx context.Context) error { return s.inner.Renew(ctx, r, fence) })
}

// Postpone implements storage.Store.
func (s *Store) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.call(ctx, Postpone, func(ctx context.Context) error { return s.inner.Postpone(ctx, r, fence) })
}

// Prepare implements storage.Store.
func (s *Store) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	inner, err := s.inner.Prepare(c)
	if err != nil {
		return nil, err
	}
	s.prepared(c.Token)
	return func(ctx context.Context) error { return s.call(ctx, Commit, inner) }, nil
}

// Message implements outbox.Store.
func (s *Store) Message(ctx context.Context, id storage.MessageID) (*storage.Message, error) {
	var found *storage.Message
	err := s.call(ctx, Message, func(ctx context.Context) (err error) {
		found, err = s.inner.Message(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// UpdateMessage implements outbox.Store.
func (s *Store) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	return s.call(ctx, UpdateMessage, func(ctx context.Context) error { return s.inner.UpdateMessage(ctx, m, fence) })
}

// PatchMessage implements outbox.Store.
func (s *Store) PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error {
	return s.call(ctx, PatchMessage, func(ctx context.Context) error { return s.inner.PatchMessage(ctx, end, fence) })
}

// PostponeMessage implements outbox.Store.
func (s *Store) PostponeMessage(ctx context.Context, id storage.MessageID, at time.Time, fence storage.MessageFence) error {
	return s.call(ctx, PostponeMessage, func(ctx context.Context) error { return s.inner.PostponeMessage(ctx, id, at, fence) })
}

// PrepareSettle implements outbox.Store.
func (s *Store) PrepareSettle(settlement storage.Settlement) (send func(context.Context) error, err error) {
	inner, err := s.inner.PrepareSettle(settlement)
	if err != nil {
		return nil, err
	}
	s.prepared(settlement.Token)
	return func(ctx context.Context) error { return s.call(ctx, Settle, inner) }, nil
}

// Place implements outbox.Store.
func (s *Store) Place(ctx context.Context, name string) (string, error) {
	var cursor string
	err := s.call(ctx, Place, func(ctx context.Context) (err error) {
		cursor, err = s.inner.Place(ctx, name)
		return err
	})
	if err != nil {
		return "", err
	}
	return cursor, nil
}

// SetPlace implements outbox.Store.
func (s *Store) SetPlace(ctx context.Context, name, cursor string) error {
	return s.call(ctx, SetPlace, func(ctx context.Context) error { return s.inner.SetPlace(ctx, name, cursor) })
}

// QueuedMessages implements outbox.Store.
func (s *Store) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.MessageRef, next string, err error) {
	err = s.call(ctx, QueuedMessages, func(ctx context.Context) (err error) {
		refs, next, err = s.inner.QueuedMessages(ctx, queue, shard, until, limit, cursor)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return refs, next, nil
}

// QueuedRecords implements outbox.Store.
func (s *Store) QueuedRecords(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.RecordRef, next string, err error) {
	err = s.call(ctx, QueuedRecords, func(ctx context.Context) (err error) {
		refs, next, err = s.inner.QueuedRecords(ctx, queue, shard, until, limit, cursor)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return refs, next, nil
}

// Shards implements outbox.Store. It never fails.
func (s *Store) Shards() int { return s.inner.Shards() }
