package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// CheckTables ends the start of a function on imported tables that have another shape than the application's. Where the tables
// can't be asked now, it starts: they are what they were.
func (p Parts) CheckTables(ctx context.Context, cfg config.Tables) error {
	if !cfg.ImportedTables {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shardsTimeout)
	defer cancel()
	var found []error
	for _, t := range []struct {
		variable, name string
		shape          schema.Table
	}{
		{"IDEMPOTENCY_TABLE", cfg.IdempotencyTable, schema.Idempotency()}, {"OUTBOX_TABLE", cfg.OutboxTable, schema.Outbox()},
		{"PAYMENTS_TABLE", cfg.PaymentsTable, table.Payments()},
	} {
		_, err := dynamo.CheckTable(ctx, p.Client, t.name, t.shape)
		if _, differs := errors.AsType[*dynamo.TableError](err); differs {
			found = append(found, fmt.Errorf("configuration: %s: %w", t.variable, err))
		} else if err != nil {
			p.Logger.WarnContext(ctx, "tables not checked", "error", err)
		}
	}
	return errors.Join(found...)
}
