package sim

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// prepared is a transaction that was prepared once, and may be sent several times. loose says that a sending had no reply, and
// that no later one was judged.
type prepared struct{ loose bool }

// judged notes what a sending of a transaction came to.
func (c *prepared) judged(err error) {
	var unknown *storage.OutcomeUnknownError
	var contention *storage.ContentionError
	switch {
	case errors.As(err, &unknown):
		c.loose = true
	case errors.As(err, &contention) && len(contention.Unjudged) > 0: // at a lock: the handler runs again
		c.loose = false
	case err == nil, !errors.Is(err, storage.ErrContention):
		c.loose = false
	}
}

// wire is the store as a process reaches it. It tells the judge what is read, and what is to be written.
type wire struct {
	*faulty.Store
	world *world
}

// Get implements storage.Store.
func (s wire) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	r, err := s.Store.Get(about(ctx, s.world.nameOf(key)), key)
	if r != nil {
		s.world.saw(ctx, r.Revision)
	}
	return r, err
}

// Insert implements storage.Store.
func (s wire) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	return s.Store.Insert(s.writes(ctx, r), r, now)
}

// Update implements storage.Store.
func (s wire) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.Store.Update(s.writes(ctx, r), r, fence)
}

// Postpone implements storage.Store.
func (s wire) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return s.Store.Postpone(about(ctx, s.world.nameOf(r.Key)), r, fence)
}

func (s wire) writes(ctx context.Context, r storage.Record) context.Context {
	return aiming(about(ctx, s.world.nameOf(r.Key)), r.State)
}

// Prepare implements storage.Store.
func (s wire) Prepare(c storage.Commit) (func(context.Context) error, error) {
	send, err := s.Store.Prepare(c)
	if err != nil {
		return nil, err
	}
	this := &prepared{}
	return func(ctx context.Context) error {
		s.world.commits(actOf(ctx), this, c.Token)
		err := send(s.writes(ctx, c.Record))
		this.judged(err)
		return err
	}, nil
}

// Message implements outbox.Store.
func (s wire) Message(ctx context.Context, id storage.MessageID) (*storage.Message, error) {
	m, err := s.Store.Message(about(ctx, s.world.ofMessage(id)), id)
	if m != nil {
		s.world.saw(ctx, m.Revision)
	}
	return m, err
}

// UpdateMessage implements outbox.Store.
func (s wire) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	return s.Store.UpdateMessage(about(ctx, s.world.ofMessage(m.ID)), m, fence)
}

// PatchMessage implements outbox.Store.
func (s wire) PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error {
	return s.Store.PatchMessage(about(ctx, s.world.ofMessage(end.ID)), end, fence)
}

// PostponeMessage implements outbox.Store.
func (s wire) PostponeMessage(ctx context.Context, id storage.MessageID, at time.Time, fence storage.MessageFence) error {
	return s.Store.PostponeMessage(about(ctx, s.world.ofMessage(id)), id, at, fence)
}

// PrepareSettle implements outbox.Store.
func (s wire) PrepareSettle(settlement storage.Settlement) (func(context.Context) error, error) {
	send, err := s.Store.PrepareSettle(settlement)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return send(about(ctx, s.world.ofMessage(settlement.Message.ID))) }, nil
}

// QueuedMessages implements outbox.Store.
func (s wire) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) ([]storage.MessageRef, string, error) {
	return s.Store.QueuedMessages(about(ctx, queue), queue, shard, until, limit, cursor)
}

// QueuedRecords implements outbox.Store.
func (s wire) QueuedRecords(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) ([]storage.RecordRef, string, error) {
	return s.Store.QueuedRecords(about(ctx, queue), queue, shard, until, limit, cursor)
}

// saw notes that the act of a context has seen a row.
func (w *world) saw(ctx context.Context, r storage.Revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	actOf(ctx).saw[r] = true
}

// commits judges the transactions that one act sends: what had no reply is sent again as it was, and each has a token of its own.
func (w *world) commits(a *act, this *prepared, token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.commit != nil && a.commit != this && a.commit.loose {
		w.broken("frozen: %s sends another transaction after one without a reply", a.name)
	}
	if other := a.tokens[token]; other != nil && other != this {
		w.broken("token: %s sends two transactions under one token", a.name)
	}
	a.commit, a.tokens[token] = this, this
}
