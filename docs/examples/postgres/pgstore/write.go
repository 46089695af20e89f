package pgstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Write is a business write: one statement of SQL. It runs in the transaction that stores the response, after the store's own
// rows are locked and judged.
type Write struct {
	row         string
	sql         string
	args        []any
	conditional bool
	failure     storage.Failure
}

// Exec makes a business write without a condition. The statement must not end the transaction. Row names what it writes, such
// as "orders/17": no two writes of a transaction may have the same name, so that each condition is judged on the state before
// the transaction. Writes run in the order of these names, whatever the order in which a handler adds them: so two transfers
// between the same accounts wait for each other, and do not deadlock.
func Exec(row, sql string, args ...any) Write {
	return Write{row: row, sql: sql, args: kept(args)}
}

// ExecIf makes a business write with a condition: the statement must affect a row. The failure, idem.Reject or idem.Retry,
// says what it means if it affects none; a settlement's write needs none and takes the zero Failure. An insert says so with
// "on conflict do nothing", an update with its where clause. A constraint that refuses a statement is an error and no failed
// condition: nothing is written, and nothing is answered but that.
func ExecIf(row string, failure storage.Failure, sql string, args ...any) Write {
	return Write{row: row, sql: sql, args: kept(args), conditional: true, failure: failure}
}

// IfConditionFails implements storage.Write.
func (w Write) IfConditionFails() storage.Failure { return w.failure }

// MarshalJSON is what a token stands for.
func (w Write) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{w.row, w.sql, w.args, w.conditional})
}

// kept are copies of arguments that a caller might change.
func kept(args []any) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		if raw, ok := arg.([]byte); ok {
			arg = bytes.Clone(raw)
		}
		all[i] = arg
	}
	return all
}

// native are the writes as this package's, in order.
func native(writes []storage.Write) ([]Write, error) {
	all := make([]Write, len(writes))
	for i, w := range writes {
		own, ok := w.(Write)
		if !ok {
			return nil, fmt.Errorf("pgstore: write %d is a %T, not a pgstore.Write", i, w)
		}
		if own.row == "" || own.sql == "" {
			return nil, fmt.Errorf("pgstore: write %d names no row, or has no statement", i)
		}
		all[i] = own
	}
	return all, nil
}

// execute sends the writes together. It returns a [storage.WriteFailedError] that names all whose conditions fail.
func execute(ctx context.Context, tx pgx.Tx, writes []Write) error {
	if len(writes) == 0 {
		return nil
	}
	order := byName(writes, func(w Write) string { return w.row })
	var batch pgx.Batch
	for _, i := range order {
		batch.Queue(writes[i].sql, writes[i].args...)
	}
	results := tx.SendBatch(ctx, &batch)
	var failed []int
	for _, i := range order {
		tag, err := results.Exec()
		if err != nil {
			_ = results.Close() // says the same
			return fmt.Errorf("write %d on %s: %w", i, writes[i].row, err)
		}
		if writes[i].conditional && tag.RowsAffected() == 0 {
			failed = append(failed, i)
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	return writesFailed(failed)
}
