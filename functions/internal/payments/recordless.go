package payments

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// withoutRecord is the transaction that makes an operation without a record again: from its message and its row, where these are there, and
// from the provider's objects otherwise.
func (r Restorer) withoutRecord(ctx context.Context, operation idem.OperationID, objects []Shown, told Told) (storage.Commit, error) {
	first, err := r.Messages.Message(ctx, operation.Message(1))
	switch {
	case err != nil:
		return storage.Commit{}, fmt.Errorf("payments: read message: %w", err)
	case first == nil:
		return r.fromObjects(ctx, objects, told)
	}
	return r.fromMessage(ctx, *first, objects, told)
}

// fromMessage is the transaction that gives a message and its row back the record that a loss has torn from them. The row says what the
// client asked for, and the message whose it is. Nothing else is written: what the message keeps is settled by a redrive then. Where all
// messages have ended, what follows them is lost, too.
func (r Restorer) fromMessage(ctx context.Context, m storage.Message, objects []Shown, told Told) (storage.Commit, error) {
	if err := told.ofTenant(m.Tenant); err != nil {
		return storage.Commit{}, err
	}
	if err := r.before(ctx, m.CreatedAt); err != nil {
		return storage.Commit{}, err
	}
	waits, err := r.waits(ctx, m.OperationID)
	switch {
	case err != nil:
		return storage.Commit{}, err
	case !waits:
		return r.fromMessages(ctx, m, objects, told)
	}
	b, err := r.ofRow(ctx, m)
	if err != nil {
		return storage.Commit{}, err
	}
	if err := b.fits(m.OperationID, objects, told); err != nil {
		return storage.Commit{}, err
	}
	c, err := r.recordOf(m, b)
	c.Messages, c.Writes = nil, nil // they are there
	return c, err
}

// recordOf is the transaction with the record of an operation whose first message is there. It lives for as long as that says.
func (r Restorer) recordOf(first storage.Message, b begun) (storage.Commit, error) {
	c, err := r.commit(first.OperationID, first.Tenant, first.CreatedAt, b)
	c.Record.Retention, c.Record.Expiry = first.Retention, first.Expiry
	for i := range c.Messages {
		c.Messages[i].Retention, c.Messages[i].Expiry = first.Retention, first.Expiry
	}
	return c, err
}

// fromMessages is the transaction that gives messages that have ended, and their row, back their record, and what follows the last of them.
// That is what it would be beside a record, by the same rules. Without it nothing could be settled, and the record would be pending for ever.
func (r Restorer) fromMessages(ctx context.Context, first storage.Message, objects []Shown, told Told) (storage.Commit, error) {
	torn, last, err := r.torn(ctx, storage.Record{State: storage.StatePending, OperationID: first.OperationID})
	switch {
	case err != nil:
		return storage.Commit{}, err
	case !torn || last == nil:
		return storage.Commit{}, &ByHandError{CodePartlyThere, "its record is not there, and its messages have ended since the loss, so that nothing can be settled: its row says whether it has ended, and one that is pending is ended by hand, as docs/recovery.md says"}
	}
	b, err := r.after(ctx, *last, objects, told)
	if err != nil {
		return storage.Commit{}, err
	}
	return r.recordOf(first, b)
}

// waits says whether a message of the operation waits for its record.
func (r Restorer) waits(ctx context.Context, operation idem.OperationID) (bool, error) {
	for n := 1; n <= 3; n++ {
		m, err := r.Messages.Message(ctx, operation.Message(n))
		switch {
		case err != nil:
			return false, fmt.Errorf("payments: read message: %w", err)
		case m != nil && !m.Readable():
			return false, &ByHandError{CodePartlyThere, "its record is not there, and this release can't read its message: inspect it"}
		case m != nil && !m.State.Final():
			return true, nil
		}
	}
	return false, nil
}

// ofRow is what the operation committed beside its record, by its row, which must not have ended.
func (r Restorer) ofRow(ctx context.Context, m storage.Message) (begun, error) {
	payment, err := r.Ledger.Payment(ctx, m.Tenant, entityID(paymentPrefix, m.OperationID))
	if err != nil {
		return begun{}, err
	}
	if payment != nil && payment.Status == StatusPending {
		return beginPayment(*payment)
	}
	payout, err := r.Ledger.Payout(ctx, m.Tenant, entityID(payoutPrefix, m.OperationID))
	if err != nil {
		return begun{}, err
	}
	if payout != nil && payout.Status == StatusPending {
		return beginPayout(*payout)
	}
	refund, err := r.Ledger.Refund(ctx, m.Tenant, entityID(refundPrefix, m.OperationID))
	if err != nil {
		return begun{}, err
	}
	if refund == nil || refund.Status != StatusPending {
		return begun{}, &ByHandError{CodePartlyThere, "one of its messages is there without its record, or without what follows it, and its row is not there or has ended: inspect it"}
	}
	paid, err := r.succeeded(ctx, m.Tenant, refund.Payment)
	if err != nil {
		return begun{}, err
	}
	return beginRefund(*refund, paid)
}
