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
// client asked for, and the message whose it is. Nothing else is written: what the message keeps is settled by a redrive then.
func (r Restorer) fromMessage(ctx context.Context, m storage.Message, objects []Shown, told Told) (storage.Commit, error) {
	if err := told.ofTenant(m.Tenant); err != nil {
		return storage.Commit{}, err
	}
	if err := r.before(ctx, m.CreatedAt); err != nil {
		return storage.Commit{}, err
	}
	if err := r.waits(ctx, m.OperationID); err != nil {
		return storage.Commit{}, err
	}
	b, err := r.ofRow(ctx, m)
	if err != nil {
		return storage.Commit{}, err
	}
	if b.view.Payout != nil {
		if err := told.ofAccount(b.view.Payout.From); err != nil {
			return storage.Commit{}, err
		}
	}
	if len(objects) > 0 {
		if _, err := b.shown(m.OperationID, objects); err != nil {
			return storage.Commit{}, err
		}
	}
	c, err := r.commit(m.OperationID, m.Tenant, m.CreatedAt, b)
	c.Record.Retention, c.Record.Expiry = m.Retention, m.Expiry
	c.Messages, c.Writes = nil, nil // they are there
	return c, err
}

// waits refuses an operation of which no message waits for the record: it would be pending for ever.
func (r Restorer) waits(ctx context.Context, operation idem.OperationID) error {
	for n := 1; n <= 3; n++ {
		m, err := r.Messages.Message(ctx, operation.Message(n))
		switch {
		case err != nil:
			return fmt.Errorf("payments: read message: %w", err)
		case m != nil && !m.Readable():
			return &ByHandError{CodePartlyThere, "its record is not there, and this release can't read its message: inspect it"}
		case m != nil && !m.State.Final():
			return nil
		}
	}
	return &ByHandError{CodePartlyThere, "its record is not there, and its messages have ended, so that nothing can be settled: its row says whether it has ended, and one that is pending is ended by hand"}
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
