package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem/storage"
)

// fromRecord is the transaction that gives a pending record its message and its row back, which a loss has torn from it. The record's own
// 202 says what the client asked for, and which row was made: nobody has to say anything.
//
// The message counts as called, as that of any record from before RefuseBefore. Where the provider has nothing of the operation it is
// executed now, so this has to be asked for.
func (r Restorer) fromRecord(ctx context.Context, stored storage.Record, objects []Shown, told Told) (storage.Commit, error) {
	if told.Tenant != "" && told.Tenant != stored.Tenant {
		return storage.Commit{}, &ByHandError{CodeTenantDiffers, fmt.Sprintf("its record is of tenant %s", stored.Tenant)}
	}
	if err := r.before(ctx, stored.CreatedAt); err != nil {
		return storage.Commit{}, err
	}
	if unmade := len(byPosition(objects, 1)) == 0; unmade && !told.Finish {
		return storage.Commit{}, &ByHandError{CodeNothingMade, "it was accepted, and the provider has nothing of it: made again it is executed now (--finish)"}
	}
	loaded, err := r.Store.LoadResponse(ctx, stored)
	if err != nil {
		return storage.Commit{}, fmt.Errorf("payments: read the 202: %w", err)
	}
	var accepted acceptedView
	if err := json.Unmarshal(loaded.Response.Body, &accepted); err != nil || accepted.Operation != stored.OperationID {
		return storage.Commit{}, &ByHandError{CodePartlyThere, "its record waits for a message that is not there, and its 202 does not say what was asked for: inspect it"}
	}
	b, err := r.beginAs(ctx, stored, accepted)
	if err != nil {
		return storage.Commit{}, err
	}
	if loaded.Revision, err = r.Mint.Revision(); err != nil {
		return storage.Commit{}, err
	}
	loaded.Sealed = false // it is sealed anew where responses are
	fence := storage.FenceOf(stored)
	return r.with(loaded, b, &fence), nil
}

// beginAs is what the operation committed beside its record, by its 202.
func (r Restorer) beginAs(ctx context.Context, stored storage.Record, accepted acceptedView) (begun, error) {
	tenant, message := stored.Tenant, stored.OperationID.Message(1)
	at := func(text string) time.Time {
		if made, err := time.Parse(milliseconds, text); err == nil {
			return made
		}
		return stored.CreatedAt
	}
	switch {
	case accepted.Payment != nil:
		p := accepted.Payment
		return beginPayment(Payment{
			Tenant: tenant, ID: p.ID, Status: StatusPending, Amount: p.Amount, Currency: p.Currency, Source: p.Source, Reference: p.Reference,
			CreatedAt: at(p.CreatedAt), Message: message,
		})
	case accepted.Payout != nil:
		p := accepted.Payout
		return beginPayout(Payout{
			Tenant: tenant, ID: p.ID, Status: StatusPending, From: p.From, Amount: p.Amount, Currency: p.Currency, Destination: p.Destination,
			CreatedAt: at(p.CreatedAt), Message: message,
		})
	case accepted.Refund != nil:
		v := accepted.Refund
		paid, err := r.Ledger.Payment(ctx, tenant, v.Payment)
		if err != nil {
			return begun{}, err
		}
		if paid == nil || paid.Status != StatusSucceeded {
			return begun{}, &ByHandError{CodePaymentMissing, fmt.Sprintf("payment %s is not there, or has not succeeded yet: make that one again first, and come back", v.Payment)}
		}
		return beginRefund(Refund{
			Tenant: tenant, ID: v.ID, Payment: v.Payment, Status: StatusPending, Amount: v.Amount, Currency: v.Currency, CreatedAt: at(v.CreatedAt),
			Message: message,
		}, *paid)
	}
	return begun{}, &ByHandError{CodePartlyThere, "its record waits for a message that is not there, and its 202 is about nothing that this application makes: inspect it"}
}
