package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
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
	ID, Of string
	// Status is what the row must say; empty where only the last of its messages says it, and nobody can read that.
	Status  Status
	Trouble error
}

// Entries are the payouts and refunds since an instant that have no row. It scans the whole table of records. The error says that not all
// could be looked at; trouble with one of them is its own.
func (r Rowless) Entries(ctx context.Context, since time.Time) (found []RowlessEntry, err error) {
	entries := map[string]rowOf{}
	for operation, kind := range rowlessKinds {
		entries[operation] = func(tenant string, id idem.OperationID) string {
			row, _ := EntryOf(kind, tenant, id)
			return row
		}
	}
	err = r.Table.lacking(ctx, r.Records, since, entries, func(one recorded) error {
		kind := rowlessKinds[one.name]
		entry := RowlessEntry{Operation: one.operation, Tenant: one.tenant, Kind: kind, ID: EntryID(kind, one.operation)}
		moves, err := r.moves(ctx, one.key, &entry)
		if moves {
			found = append(found, entry)
		}
		return err
	})
	return found, err
}

// rowlessKinds are the kinds of entry that move an amount which stands elsewhere too, by the operations that make them.
var rowlessKinds = map[string]EntryKind{operationPayouts: EntryPayout, operationRefunds: EntryRefund}

// moves says whether money leaves, or has left, for an operation without a row, and of what: it was made, or its message is there, which the
// provider is called for. It may be a later one, where a loss took those before it. One that is pending without any message moves nothing;
// made again it takes its amount again ([Restorer.Restore]).
func (r Rowless) moves(ctx context.Context, recordKey storage.RecordKey, entry *RowlessEntry) (bool, error) {
	record, err := r.Store.Get(ctx, recordKey)
	switch {
	case err != nil:
		return false, fmt.Errorf("payments: read record: %w", err)
	case record == nil || record.OperationID != entry.Operation || record.State != storage.StatePending && !wasMade(*record):
		return false, nil // it was not made, or is removed, or its key is another operation's by now
	}
	if wasMade(*record) {
		entry.Status = StatusSucceeded
	} else {
		called, status, err := r.called(ctx, record.OperationID)
		if entry.Trouble = err; err != nil || !called {
			return err != nil, nil
		}
		entry.Status = status
	}
	entry.Of, entry.Trouble = r.of(ctx, *record)
	return true, nil
}

// called says whether a message of the operation is there, and what its row must say by the last one.
func (r Rowless) called(ctx context.Context, operation idem.OperationID) (called bool, status Status, err error) {
	waits := false
	for n := 1; n <= outbox.ChainMax; n++ {
		m, err := r.Messages.Message(ctx, operation.Message(n))
		if err != nil {
			return false, "", fmt.Errorf("payments: read message: %w", err)
		}
		if m != nil {
			called, waits, status = true, waits || !m.State.Final(), statusAfter(*m)
		}
	}
	if waits { // its end demands a pending row, whatever the provider has by now
		status = StatusPending
	}
	return called, status, nil
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
