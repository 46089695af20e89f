package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A payout is one transaction: its record, its message, its row and its account's debit. A refund's has the amount on its payment. Where a
// restore has brought back the record and the message and not the row, the provider is called all the same: money leaves of which no row
// knows. So neither the account nor the payment is corrected by rows before that one is there again.

// Rowless finds payouts and refunds that were accepted and have no row.
type Rowless struct {
	Table Table
	// Records is the name of the idempotency table. Store reads its records, and Messages the messages.
	Records  string
	Store    storage.Store
	Messages outbox.Messages
}

// RowlessEntry is a payout or a refund that is under way or was made, and whose row is not there. Where Trouble is set Of is not known.
type RowlessEntry struct {
	Operation idem.OperationID
	Tenant    string
	Kind      EntryKind
	// ID is the row's. Of is the account that a payout was taken from, or the payment that a refund gives back.
	ID, Of  string
	Trouble error
}

// Entries are the payouts and refunds since an instant that have no row. It scans the whole table of records. The error says that not all
// could be looked at; trouble with one of them is its own.
func (r Rowless) Entries(ctx context.Context, since time.Time) (found []RowlessEntry, err error) {
	records := Table{Client: r.Table.Client, Name: r.Records}
	filter := dynamodb.ScanInput{
		FilterExpression:     aws.String("#operation IN (:payout, :refund) AND #state IN (:pending, :completed) AND #created >= :since"),
		ProjectionExpression: aws.String("#key, #id, #tenant, #operation"),
		ExpressionAttributeNames: map[string]string{
			"#operation": schema.OperationName, "#state": schema.State, "#created": schema.CreatedAt,
			"#key": schema.RecordKey, "#id": schema.OperationID, "#tenant": schema.Tenant,
		},
		ExpressionAttributeValues: item{
			":payout": str(operationPayouts), ":refund": str(operationRefunds), ":pending": str(string(storage.StatePending)),
			":completed": str(string(storage.StateCompleted)), ":since": num(since.UnixMilli()),
		},
	}
	var batch []recorded
	look := func() error {
		missing, err := r.missing(ctx, batch)
		found, batch = append(found, missing...), nil
		return err
	}
	err = records.scan(ctx, filter, func(it item) error {
		one, err := decodeRecorded(it)
		if batch = append(batch, one); err != nil || len(batch) < batchGetMax {
			return err
		}
		return look()
	})
	if err == nil {
		err = look()
	}
	return found, err
}

// recorded is an operation's record, and the row that its transaction made.
type recorded struct {
	key   storage.RecordKey
	entry RowlessEntry
	row   string
}

func decodeRecorded(it item) (recorded, error) {
	operation, err := dynamo.OperationOf(it)
	if err != nil {
		return recorded{}, err
	}
	d := decoder{item: it}
	kind := EntryPayout
	if d.str(schema.OperationName) == operationRefunds {
		kind = EntryRefund
	}
	one := recorded{
		key:   storage.RecordKey(d.str(schema.RecordKey)),
		entry: RowlessEntry{Operation: operation, Tenant: d.str(schema.Tenant), Kind: kind, ID: EntryID(kind, operation)},
	}
	one.row, _ = EntryKey(kind, one.entry.Tenant, one.entry.ID)
	return one, d.err
}

// missing are those whose row is not there. Hardly any is, so the rows are read in batches, and a record by itself only where its row is
// missing.
func (r Rowless) missing(ctx context.Context, batch []recorded) (found []RowlessEntry, err error) {
	wanted := make([]item, len(batch))
	for i, one := range batch {
		wanted[i] = key(one.row)
	}
	rows, err := r.Table.rows(ctx, wanted)
	if err != nil {
		return nil, err
	}
	for _, one := range batch {
		if rows[one.row] != nil {
			continue
		}
		moves, err := r.moves(ctx, &one)
		if err != nil {
			return found, err
		}
		if moves {
			found = append(found, one.entry)
		}
	}
	return found, nil
}

// moves says whether money leaves, or has left, for an operation without a row, and of what: it was made, or its message is there, which the
// provider is called for. It may be a later one, where a loss took those before it. One that is pending without any message moves nothing;
// made again it takes its amount again ([Restorer.Restore]).
func (r Rowless) moves(ctx context.Context, one *recorded) (bool, error) {
	record, err := r.Store.Get(ctx, one.key)
	switch {
	case err != nil:
		return false, fmt.Errorf("payments: read record: %w", err)
	case record == nil || record.OperationID != one.entry.Operation || record.State != storage.StatePending && !wasMade(*record):
		return false, nil // it was not made, or is removed, or its key is another operation's by now
	}
	if record.State == storage.StatePending {
		called, err := r.called(ctx, record.OperationID)
		if one.entry.Trouble = err; err != nil || !called {
			return err != nil, nil
		}
	}
	one.entry.Of, one.entry.Trouble = r.of(ctx, *record)
	return true, nil
}

// called says whether a message of the operation is there.
func (r Rowless) called(ctx context.Context, operation idem.OperationID) (bool, error) {
	for n := 1; n <= outbox.ChainMax; n++ {
		switch m, err := r.Messages.Message(ctx, operation.Message(n)); {
		case err != nil:
			return false, fmt.Errorf("payments: read message: %w", err)
		case m != nil:
			return true, nil
		}
	}
	return false, nil
}

// of is the account or the payment that the record's answer names.
func (r Rowless) of(ctx context.Context, record storage.Record) (string, error) {
	loaded, err := r.Store.LoadResponse(ctx, record)
	if err != nil {
		return "", fmt.Errorf("payments: read its answer: %w", err)
	}
	switch view, ok := answeredView(loaded); {
	case ok && view.Payout != nil:
		return view.Payout.From, nil
	case ok && view.Refund != nil:
		return view.Refund.Payment, nil
	}
	return "", errors.New("payments: its answer does not say what was asked for")
}
