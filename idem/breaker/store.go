package breaker

import (
	"context"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// ResponseBytesMax implements storage.ResponseBound, as the store within does.
func (s *Store) ResponseBytesMax() int { return storage.ResponseBytesMaxOf(s.inner) }

// Decrypts implements storage.Decrypter, as the store within does.
func (s *Store) Decrypts() bool { return storage.Decrypts(s.inner) }

// RefuseBefore implements storage.Loss, as the store within does. What it admits begins.
func (s *Store) RefuseBefore(ctx context.Context) (at time.Time, err error) {
	err = s.begin(ctx, func(ctx context.Context) (err error) {
		at, err = s.inner.RefuseBefore(ctx)
		return err
	})
	return at, err
}

// SetRefuseBefore implements storage.Loss, as the store within does. It is always sent.
func (s *Store) SetRefuseBefore(ctx context.Context, at time.Time) (kept time.Time, err error) {
	err = s.end(ctx, func(ctx context.Context) (err error) {
		kept, err = s.inner.SetRefuseBefore(ctx, at)
		return err
	})
	return kept, err
}

// Get implements storage.Store.
func (s *Store) Get(ctx context.Context, key storage.RecordKey) (r *storage.Record, err error) {
	err = s.begin(ctx, func(ctx context.Context) (err error) {
		r, err = s.inner.Get(ctx, key)
		return err
	})
	return r, err
}

// ScopeMark implements storage.Store.
func (s *Store) ScopeMark(ctx context.Context, keep string) (kept string, err error) {
	err = s.begin(ctx, func(ctx context.Context) (err error) {
		kept, err = s.inner.ScopeMark(ctx, keep)
		return err
	})
	return kept, err
}

// LoadResponse implements storage.Store.
func (s *Store) LoadResponse(ctx context.Context, r storage.Record) (loaded storage.Record, err error) {
	err = s.end(ctx, func(ctx context.Context) (err error) {
		loaded, err = s.inner.LoadResponse(ctx, r)
		return err
	})
	return loaded, err
}

// Insert implements storage.Store.
func (s *Store) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	return s.writing(r)(ctx, func(ctx context.Context) error { return s.inner.Insert(ctx, r, now) })
}

// Update implements storage.Store.
func (s *Store) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.writing(r)(ctx, func(ctx context.Context) error { return s.inner.Update(ctx, r, fence) })
}

// writing says what writing the record is: a reserve or a take-over begins, everything else ends.
func (s *Store) writing(r storage.Record) func(context.Context, func(context.Context) error) error {
	if r.State == storage.StateInProgress {
		return s.begin
	}
	return s.end
}

// Renew implements storage.Store. It goes on with what has begun: a handler that runs is never refused its lease.
func (s *Store) Renew(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.end(ctx, func(ctx context.Context) error { return s.inner.Renew(ctx, r, fence) })
}

// Postpone implements storage.Store.
func (s *Store) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.end(ctx, func(ctx context.Context) error { return s.inner.Postpone(ctx, r, fence) })
}

// Prepare implements storage.Store.
func (s *Store) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	inner, err := s.inner.Prepare(c)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.end(ctx, inner) }, nil
}

// Message implements outbox.Store.
func (s *Store) Message(ctx context.Context, id storage.MessageID) (m *storage.Message, err error) {
	err = s.end(ctx, func(ctx context.Context) (err error) {
		m, err = s.inner.Message(ctx, id)
		return err
	})
	return m, err
}

// UpdateMessage implements outbox.Store. A claim begins: the call that follows it could not be settled.
func (s *Store) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	update := func(ctx context.Context) error { return s.inner.UpdateMessage(ctx, m, fence) }
	if m.State == storage.MessageClaimed {
		return s.begin(ctx, update)
	}
	return s.end(ctx, update)
}

// PatchMessage implements outbox.Store.
func (s *Store) PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error {
	return s.end(ctx, func(ctx context.Context) error { return s.inner.PatchMessage(ctx, end, fence) })
}

// PostponeMessage implements outbox.Store.
func (s *Store) PostponeMessage(ctx context.Context, id storage.MessageID, at time.Time, fence storage.MessageFence) error {
	return s.end(ctx, func(ctx context.Context) error { return s.inner.PostponeMessage(ctx, id, at, fence) })
}

// PrepareSettle implements outbox.Store.
func (s *Store) PrepareSettle(settlement storage.Settlement) (send func(context.Context) error, err error) {
	inner, err := s.inner.PrepareSettle(settlement)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.end(ctx, inner) }, nil
}

// Place implements outbox.Store.
func (s *Store) Place(ctx context.Context, name string) (cursor string, err error) {
	err = s.begin(ctx, func(ctx context.Context) (err error) {
		cursor, err = s.inner.Place(ctx, name)
		return err
	})
	return cursor, err
}

// SetPlace implements outbox.Store.
func (s *Store) SetPlace(ctx context.Context, name, cursor string) error {
	return s.end(ctx, func(ctx context.Context) error { return s.inner.SetPlace(ctx, name, cursor) })
}

// QueuedMessages implements outbox.Store.
func (s *Store) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.MessageRef, next string, err error) {
	err = s.begin(ctx, func(ctx context.Context) (err error) {
		refs, next, err = s.inner.QueuedMessages(ctx, queue, shard, until, limit, cursor)
		return err
	})
	return refs, next, err
}

// QueuedRecords implements outbox.Store.
func (s *Store) QueuedRecords(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.RecordRef, next string, err error) {
	err = s.begin(ctx, func(ctx context.Context) (err error) {
		refs, next, err = s.inner.QueuedRecords(ctx, queue, shard, until, limit, cursor)
		return err
	})
	return refs, next, err
}

// Shards implements outbox.Store. It makes no call.
func (s *Store) Shards() int { return s.inner.Shards() }
