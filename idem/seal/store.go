package seal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Store is a store that seals. It implements storage.Store and outbox.Store, and is safe for concurrent use.
type Store struct {
	inner    Inner
	cfg      Config
	envelope envelope
	keys     *ring
}

// ResponseBytesMax implements storage.ResponseBound: what the inner store takes, less what a response grows by.
func (s *Store) ResponseBytesMax() int {
	return min(storage.ResponseBytesMaxOf(s.inner), plainBytesMax) - OverheadBytes
}

// Decrypts implements storage.Decrypter.
func (s *Store) Decrypts() bool { return true }

// RefuseBefore implements storage.Loss, as the store within does.
func (s *Store) RefuseBefore(ctx context.Context) (time.Time, error) {
	return s.inner.RefuseBefore(ctx)
}

// SetRefuseBefore implements storage.Loss, as the store within does.
func (s *Store) SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error) {
	return s.inner.SetRefuseBefore(ctx, at)
}

// Get implements storage.Store. A sealed response stays sealed until LoadResponse, and so does one that Config.SealedOnly
// refuses.
func (s *Store) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	r, err := s.inner.Get(ctx, key)
	if r != nil && s.refuses(*r) {
		r.Sealed = true
	}
	return r, err
}

// refuses says whether the record has a response that lies in the open and must not.
func (s *Store) refuses(r storage.Record) bool {
	return s.cfg.SealedOnly && !r.Sealed && (r.Chunks > 0 || !empty(r.Response))
}

// ScopeMark implements storage.Store, as the store within does.
func (s *Store) ScopeMark(ctx context.Context, keep string) (string, error) {
	return s.inner.ScopeMark(ctx, keep)
}

// LoadResponse implements storage.Store. Besides what the inner store returns: [storage.ErrErased], [ErrNotAuthentic], among them
// a [*NotSealedError], and a [*KeysError].
func (s *Store) LoadResponse(ctx context.Context, r storage.Record) (storage.Record, error) {
	if !r.Sealed && !s.refuses(r) {
		return s.inner.LoadResponse(ctx, r)
	}
	whole := r
	whole.Sealed = false // the inner store hands out bytes, whatever they are
	whole, err := s.inner.LoadResponse(ctx, whole)
	if err != nil {
		return r, err
	}
	plain, err := s.open(ctx, responsePlace(r.Tenant, r.Key, r.OperationID, r.State, r.Response.Status), whole.Response.Body)
	if err != nil {
		return r, fmt.Errorf("seal: load response %s: %w", r.Key, err)
	}
	if whole.Response, err = unpack(r.Response.Status, plain); err != nil {
		return r, fmt.Errorf("seal: load response %s: %w", r.Key, err)
	}
	whole.Chunks, whole.ChunksDigest = 0, ""
	return whole, nil
}

// open opens what lies at a place, in an envelope.
func (s *Store) open(ctx context.Context, p place, b []byte) ([]byte, error) {
	plain, err := s.opens(ctx, p, b)
	if errors.Is(err, ErrNotAuthentic) {
		s.cfg.Logger.ErrorContext(ctx, "seal.not_authentic", "what", string(p.what), "key_hash", p.record, "id", p.id, "error", err, "alarm", true)
	}
	return plain, err
}

func (s *Store) opens(ctx context.Context, p place, b []byte) ([]byte, error) {
	if !sealed(b) {
		return nil, &NotSealedError{What: string(p.what), ID: p.id}
	}
	id, err := keyOf(b)
	if err != nil {
		return nil, err
	}
	key, err := s.keys.get(ctx, p.tenant, id)
	if err != nil {
		return nil, err
	}
	return s.envelope.open(key, p, b)
}

// Insert implements storage.Store. The tenant's key must be there even where nothing is sealed yet, so that no handler runs
// whose response could not be stored. Where it is not, a record that is in the way is still told of: it can be judged.
func (s *Store) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	sealed, err := s.beginning(ctx, r)
	if err == nil {
		return s.met(s.inner.Insert(ctx, sealed, now))
	}
	existing, lookErr := s.Get(ctx, r.Key)
	if lookErr == nil && existing != nil && !existing.KeyFree(now) {
		return &storage.RecordConflictError{Existing: existing}
	}
	return fmt.Errorf("seal: insert %s: %w", r.Key, err)
}

// Update implements storage.Store. A take-over demands the tenant's key as Insert does; anything else tells of what has
// happened, and is stored although the key is erased.
func (s *Store) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	seal := s.ended
	if r.State == storage.StateInProgress {
		seal = s.beginning
	}
	sealed, err := seal(ctx, r)
	if err != nil {
		return fmt.Errorf("seal: update %s: %w", r.Key, err)
	}
	return s.met(s.inner.Update(ctx, sealed, fence))
}

// Renew implements storage.Store. Nothing of it is sealed, so it asks for no key.
func (s *Store) Renew(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.inner.Renew(ctx, r, fence)
}

// Postpone implements storage.Store, as Renew does.
func (s *Store) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.inner.Postpone(ctx, r, fence)
}

func (s *Store) beginning(ctx context.Context, r storage.Record) (storage.Record, error) {
	x := s.sealing(r.Tenant, false)
	if !s.cfg.OpenOnly {
		if _, err := x.current(ctx); err != nil {
			return r, err
		}
	}
	return x.record(ctx, r)
}

func (s *Store) ended(ctx context.Context, r storage.Record) (storage.Record, error) {
	return s.sealing(r.Tenant, true).record(ctx, r)
}

// Prepare implements storage.Store. Everything is sealed here, once: sending again sends the same bytes. A key that is not
// held is fetched within Config.KeyTimeout; a [*KeysError] says that it could not be, and that nothing was sent.
func (s *Store) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	ctx, x := context.Background(), s.sealing(c.Record.Tenant, false)
	if c.Record, err = x.record(ctx, c.Record); err != nil {
		return nil, fmt.Errorf("seal: commit %s: %w", c.Record.Key, err)
	}
	if c.Messages, err = x.messages(ctx, c.Messages); err != nil {
		return nil, fmt.Errorf("seal: commit %s: %w", c.Record.Key, err)
	}
	inner, err := s.inner.Prepare(c)
	if err != nil {
		return nil, err
	}
	return s.opening(inner), nil
}

// PrepareSettle implements outbox.Store, as Prepare does. It tells of what has happened, and is stored although the
// tenant's key is erased.
func (s *Store) PrepareSettle(settlement storage.Settlement) (send func(context.Context) error, err error) {
	sealed, err := s.sealing(settlement.Message.Tenant, true).settlement(context.Background(), settlement)
	if err != nil {
		return nil, fmt.Errorf("seal: settle %s: %w", settlement.Message.ID, err)
	}
	inner, err := s.inner.PrepareSettle(sealed)
	if err != nil {
		return nil, err
	}
	return s.opening(inner), nil
}

// opening opens the message that a sending found in its way, and refuses the record as Get does.
func (s *Store) opening(send func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return s.opened(ctx, s.met(send(ctx))) }
}

// met is the error of a write, whose record in the way is as Get returns it.
func (s *Store) met(err error) error {
	var conflict *storage.RecordConflictError
	if !errors.As(err, &conflict) || conflict.Existing == nil || !s.refuses(*conflict.Existing) {
		return err
	}
	existing := *conflict.Existing
	existing.Sealed = true
	return &storage.RecordConflictError{Existing: &existing}
}

func (s *Store) opened(ctx context.Context, err error) error {
	var conflict *storage.MessageConflictError
	var record *storage.RecordConflictError
	switch {
	case errors.As(err, &record) && record.Message != nil:
		existing, openErr := s.OpenMessage(ctx, *record.Message)
		if openErr != nil {
			existing = *record.Message // still sealed, as it says; the record's conflict holds all the same
		}
		return &storage.RecordConflictError{Existing: record.Existing, Message: &existing}
	case errors.As(err, &conflict) && conflict.Existing != nil:
		existing, err := s.OpenMessage(ctx, *conflict.Existing)
		if err != nil {
			return err // nothing happened, and what was in the way can't be told
		}
		return &storage.MessageConflictError{Existing: &existing}
	}
	return err
}

// Message implements outbox.Store. A message that nobody can open any more is returned as it is stored, and says so.
func (s *Store) Message(ctx context.Context, id storage.MessageID) (*storage.Message, error) {
	m, err := s.inner.Message(ctx, id)
	if err != nil || m == nil {
		return nil, err
	}
	opened, err := s.OpenMessage(ctx, *m)
	if err != nil {
		return nil, err
	}
	return &opened, nil
}

// OpenMessage opens a message that came another way than through this store: an image of the outbox table's stream. One
// whose key is erased, or that is not authentic, is returned as it is: Sealed. So is one that lies in the open although its
// row says that it is sealed, or although Config.SealedOnly refuses that; EvidenceRefused says that this is so of evidence. Other
// errors: a [*KeysError].
func (s *Store) OpenMessage(ctx context.Context, m storage.Message) (storage.Message, error) {
	opened, unopened := m, false
	opened.Sealed = false
	for _, part := range []struct {
		place place
		bytes *[]byte
		// must says that it is not taken where it lies in the open. Evidence may come to a sealed message from a process that
		// seals nothing.
		must, evidence bool
	}{
		{payloadPlace(m), &opened.Payload, m.Sealed || s.cfg.SealedOnly, false},
		{evidencePlace(aDelivery, m.Tenant, m.RecordKey, m.ID, m.Topic), evidenceOf(&opened.KeptDelivered), s.cfg.SealedOnly, true},
		{evidencePlace(aDecline, m.Tenant, m.RecordKey, m.ID, m.Topic), evidenceOf(&opened.KeptDeclined), s.cfg.SealedOnly, true},
	} {
		if part.bytes == nil || !part.must && !sealed(*part.bytes) {
			continue
		}
		plain, err := s.open(ctx, part.place, *part.bytes)
		switch {
		case errors.Is(err, storage.ErrErased):
			unopened = true
		case errors.Is(err, ErrNotAuthentic):
			unopened, m.EvidenceRefused = true, m.EvidenceRefused || part.evidence
		case err != nil:
			return m, fmt.Errorf("seal: message %s: %w", m.ID, err)
		}
		*part.bytes = plain
	}
	if unopened { // nothing of it is told in part
		m.Sealed = true
		return m, nil
	}
	return opened, nil
}

// evidenceOf is the evidence in a copy of what is kept; nil where nothing is.
func evidenceOf(k **storage.Kept) *[]byte {
	if *k == nil {
		return nil
	}
	own := **k
	*k = &own
	return &own.Evidence
}

// UpdateMessage implements outbox.Store. It is written although the tenant's key is erased.
func (s *Store) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	sealed, err := s.sealing(m.Tenant, true).message(ctx, m)
	if err != nil {
		return fmt.Errorf("seal: update message %s: %w", m.ID, err)
	}
	return s.opened(ctx, s.inner.UpdateMessage(ctx, sealed, fence))
}

// PatchMessage implements outbox.Store. It is written although the tenant's key is erased.
func (s *Store) PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error {
	sealed, err := s.sealing(end.Tenant, true).end(ctx, end)
	if err != nil {
		return fmt.Errorf("seal: patch message %s: %w", end.ID, err)
	}
	return s.opened(ctx, s.inner.PatchMessage(ctx, sealed, fence))
}

// PostponeMessage implements outbox.Store.
func (s *Store) PostponeMessage(ctx context.Context, id storage.MessageID, at time.Time, fence storage.MessageFence) error {
	return s.opened(ctx, s.inner.PostponeMessage(ctx, id, at, fence))
}

// Place implements outbox.Store.
func (s *Store) Place(ctx context.Context, name string) (string, error) {
	return s.inner.Place(ctx, name)
}

// SetPlace implements outbox.Store.
func (s *Store) SetPlace(ctx context.Context, name, cursor string) error {
	return s.inner.SetPlace(ctx, name, cursor)
}

// QueuedMessages implements outbox.Store.
func (s *Store) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.MessageRef, next string, err error) {
	return s.inner.QueuedMessages(ctx, queue, shard, until, limit, cursor)
}

// QueuedRecords implements outbox.Store.
func (s *Store) QueuedRecords(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.RecordRef, next string, err error) {
	return s.inner.QueuedRecords(ctx, queue, shard, until, limit, cursor)
}

// Shards implements outbox.Store.
func (s *Store) Shards() int { return s.inner.Shards() }
