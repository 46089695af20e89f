package payments

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// fromAnswer is the transaction that puts the row of an operation back which a loss has torn alone from it: its record says in its answer
// what was asked for, and whether it was made. It moves no money, and takes no amount: whether the account was debited, or the amount is on
// the payment, is what the comparison finds out that comes after it. The record stays as it is but for its revision.
func (r Restorer) fromAnswer(ctx context.Context, stored storage.Record, objects []Shown, told Told) (storage.Commit, error) {
	if err := r.before(ctx, stored.CreatedAt); err != nil {
		return storage.Commit{}, err
	}
	loaded, err := r.Store.LoadResponse(ctx, stored)
	if err != nil {
		return storage.Commit{}, fmt.Errorf("payments: read its answer: %w", err)
	}
	view, ok := answeredView(loaded)
	if !ok {
		return storage.Commit{}, errRowMissing
	}
	b, err := r.beginAs(ctx, stored, view, r.named)
	if err != nil {
		return storage.Commit{}, err
	}
	if err := b.fits(stored.OperationID, objects, told); err != nil {
		return storage.Commit{}, err
	}
	c, err := r.beside(stored, loaded, b)
	c.Messages, c.Writes = nil, b.row(wasMade(loaded), view)
	return c, err
}

// named is the payment that a refund names. Nothing is reserved on it where the row alone is put back, so it need not have succeeded, nor be
// there: its own row may be torn, too.
func (r Restorer) named(ctx context.Context, tenant, id string) (Payment, error) {
	paid, err := r.Ledger.Payment(ctx, tenant, id)
	if err != nil || paid == nil {
		return Payment{Tenant: tenant, ID: id}, err
	}
	return *paid, nil
}

// wasMade says that the record's client was told 201.
func wasMade(record storage.Record) bool {
	return record.State == storage.StateCompleted && record.Response.Status == http.StatusCreated
}

// answeredView is what a record's answer says: its 202 while it is pending, and its 201, in the form of a 202, once it is made. ok is false
// for every other record, and for an answer about something else.
func answeredView(loaded storage.Record) (view acceptedView, ok bool) {
	var err error
	switch made := wasMade(loaded); {
	case loaded.State == storage.StatePending:
		err = json.Unmarshal(loaded.Response.Body, &view)
	case made && loaded.Operation == operationPayments:
		err = json.Unmarshal(loaded.Response.Body, &view.Payment)
	case made && loaded.Operation == operationRefunds:
		err = json.Unmarshal(loaded.Response.Body, &view.Refund)
	case made && loaded.Operation == operationPayouts:
		err = json.Unmarshal(loaded.Response.Body, &view.Payout)
	default:
		return view, false
	}
	return view, err == nil && view.isOf(loaded.Operation, loaded.OperationID)
}

// isOf says whether the view is about what such an operation makes.
func (v acceptedView) isOf(operation string, id idem.OperationID) bool {
	switch operation {
	case operationPayments:
		return v.Payment != nil && v.Payment.ID == entityID(paymentPrefix, id)
	case operationRefunds:
		return v.Refund != nil && v.Refund.ID == entityID(refundPrefix, id)
	case operationPayouts:
		return v.Payout != nil && v.Payout.ID == entityID(payoutPrefix, id)
	}
	return false
}

// row is the write of the operation's row alone: pending, or as its end has left it.
func (b begun) row(made bool, view acceptedView) []idem.Write {
	for _, w := range b.writes {
		switch w := w.(type) {
		case InsertPayment:
			if made {
				w.Payment.Status, w.Payment.ProviderReference = StatusSucceeded, textOf(view.Payment.ProviderReference)
			}
			return []idem.Write{w}
		case InsertRefund:
			if made {
				w.Refund.Status, w.Refund.ProviderReference = StatusSucceeded, textOf(view.Refund.ProviderReference)
			}
			return []idem.Write{w}
		case InsertPayout:
			if made {
				w.Payout.Status, w.Payout.ProviderReference = StatusSucceeded, textOf(view.Payout.ProviderReference)
			}
			return []idem.Write{w}
		}
	}
	return nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
