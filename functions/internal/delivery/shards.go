package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
)

// shardsTimeout bounds the recording at a start, which may be short of time.
const shardsTimeout = 2 * time.Second

// SameShards is for an operator's command, which does not decide the number: it ends where it has another than the functions, or where
// the table can't be asked. It writes nothing.
func (p Parts) SameShards(ctx context.Context) error {
	err := p.Store.rows.SameShards(ctx)
	if errors.As(err, new(*idem.ConfigError)) {
		return fmt.Errorf("configuration: OUTBOX_SHARDS: %w", err)
	}
	return err
}

// RecordShards is for the start of what only writes: its number is recorded, so that what lists looks into as many. It goes on where
// that fails.
func (p Parts) RecordShards(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shardsTimeout)
	defer cancel()
	if _, err := p.Store.rows.CheckShards(ctx); err != nil {
		p.Logger.WarnContext(ctx, "outbox.shards_not_recorded", "error", err)
	}
}

// RecordLedgerShards is for the start of what writes payments, as RecordShards: the drift job reads as many.
func (p Parts) RecordLedgerShards(ctx context.Context, cfg config.Tables) {
	ctx, cancel := context.WithTimeout(ctx, shardsTimeout)
	defer cancel()
	if err := (payments.LedgerShards{Client: p.Client, Table: cfg.PaymentsTable, Number: cfg.LedgerShards}).Record(ctx); err != nil {
		p.Logger.WarnContext(ctx, "ledger.shards_not_recorded", "error", err)
	}
}
