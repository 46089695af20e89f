package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// shardsTimeout bounds the check at a start, which may be short of time.
const shardsTimeout = 2 * time.Second

// shards remembers that the number of shards was checked.
type shards struct{ checked atomic.Bool }

// checkShards asks the table until it has answered once.
func (s *Store) checkShards(ctx context.Context) error {
	if s.shards.checked.Load() {
		return nil
	}
	err := s.rows.CheckShards(ctx)
	if err == nil {
		s.shards.checked.Store(true)
	}
	return err
}

// QueuedMessages implements outbox.Store. It lists nothing before it is known that no shard is missed.
func (s *Store) QueuedMessages(
	ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string,
) ([]storage.MessageRef, string, error) {
	if err := s.checkShards(ctx); err != nil {
		return nil, "", err
	}
	return s.stored.QueuedMessages(ctx, queue, shard, until, limit, cursor)
}

// QueuedRecords implements outbox.Store, as QueuedMessages does.
func (s *Store) QueuedRecords(
	ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string,
) ([]storage.RecordRef, string, error) {
	if err := s.checkShards(ctx); err != nil {
		return nil, "", err
	}
	return s.stored.QueuedRecords(ctx, queue, shard, until, limit, cursor)
}

// CheckShards ends the start of what lists the queues, sweep and reconciler, where it has fewer shards than rows were written with.
// Where the table can't be asked now, they start, and ask before they list.
func (p Parts) CheckShards(ctx context.Context) error {
	if err := p.askShards(ctx); errors.As(err, new(*idem.ConfigError)) {
		return fmt.Errorf("configuration: OUTBOX_SHARDS: %w", err)
	}
	return nil
}

// SameShards is for an operator's command, which does not decide the number: it ends where it has another than the functions, or where
// the table can't be asked. It writes nothing, and what lists does not ask again.
func (p Parts) SameShards(ctx context.Context) error {
	err := p.Store.rows.SameShards(ctx)
	if errors.As(err, new(*idem.ConfigError)) {
		return fmt.Errorf("configuration: OUTBOX_SHARDS: %w", err)
	}
	p.Store.shards.checked.Store(err == nil)
	return err
}

// RecordShards is for the start of what only writes: its number is recorded, so that those who list are refused a lower one. It
// goes on where that fails, also under a lower number itself: while a deployment raises it, instances of the one before start
// still, and what they write is listed.
func (p Parts) RecordShards(ctx context.Context) {
	if err := p.askShards(ctx); err != nil {
		p.Logger.WarnContext(ctx, "outbox.shards_not_recorded", "error", err)
	}
}

// RecordLedgerShards is for the start of what writes payments, as RecordShards: the drift job is refused a lower number.
func (p Parts) RecordLedgerShards(ctx context.Context, cfg config.Tables) {
	ctx, cancel := context.WithTimeout(ctx, shardsTimeout)
	defer cancel()
	if err := (payments.LedgerShards{Client: p.Client, Table: cfg.PaymentsTable, Number: cfg.LedgerShards}).Record(ctx); err != nil {
		p.Logger.WarnContext(ctx, "ledger.shards_not_recorded", "error", err)
	}
}

func (p Parts) askShards(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shardsTimeout)
	defer cancel()
	return p.Store.checkShards(ctx)
}
