package payments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// fromRecord is the transaction that gives a pending record its message back, and its row where that is gone, too: a loss has torn them from
// it. The record's own 202 says what the client asked for, and which row was made: nobody has to say anything. What the provider shows is
// judged as that of an operation without a record, and must be what the 202 says.
func (r Restorer) fromRecord(ctx context.Context, stored storage.Record, objects []Shown, told Told) (storage.Commit, error) {
	if err := told.ofTenant(stored.Tenant); err != nil {
		return storage.Commit{}, err
	}
	if err := r.before(ctx, stored.CreatedAt); err != nil {
		return storage.Commit{}, err
	}
	loaded, accepted, err := r.accepted(ctx, stored)
	if err != nil {
		return storage.Commit{}, err
	}
	b, err := r.beginAs(ctx, stored, accepted, r.succeeded)
	if err != nil {
		return storage.Commit{}, err
	}
	if err := r.withRow(ctx, stored, &b); err != nil {
		return storage.Commit{}, err
	}
	lost, err := b.judge(stored.OperationID, objects, told)
	if err != nil {
		return storage.Commit{}, err
	}
	if b.steps, err = lost.steps(b.payload); err != nil {
		return storage.Commit{}, err
	}
	return r.beside(stored, loaded, b)
}

// withRow writes no row where the loss has torn the message alone: its row is there and pending, and says the same. What was reserved or
// debited beside it is not reserved or debited again. A row that has ended, or that is not there, is left to the condition of its insert.
// Where a later message is there nothing is made again: whether its amount was taken is not known, and the provider may be called for it.
func (r Restorer) withRow(ctx context.Context, stored storage.Record, b *begun) error {
	if err := r.noneFrom(ctx, stored.OperationID, 2); err != nil {
		return err
	}
	there, err := r.ofRow(ctx, storage.Message{Tenant: stored.Tenant, OperationID: stored.OperationID})
	switch {
	case errors.As(err, new(*ByHandError)):
		return nil
	case err != nil:
		return err
	case !bytes.Equal(there.payload, b.payload):
		return &ByHandError{CodeDiffersFromSelf, "its row is not what its 202 says: inspect both"}
	}
	b.writes = nil
	return nil
}

// beside is the transaction that puts messages and rows beside a record that is there. The record stays as it is but for its revision.
func (r Restorer) beside(stored, loaded storage.Record, b begun) (_ storage.Commit, err error) {
	if loaded.Revision, err = r.Mint.Revision(); err != nil {
		return storage.Commit{}, err
	}
	loaded.Sealed = false // it is sealed anew where responses are
	fence := storage.FenceOf(stored)
	return r.with(loaded, b, &fence), nil
}

// accepted is the record with its 202, and what that says.
func (r Restorer) accepted(ctx context.Context, stored storage.Record) (loaded storage.Record, accepted acceptedView, err error) {
	if loaded, err = r.Store.LoadResponse(ctx, stored); err != nil {
		return loaded, accepted, fmt.Errorf("payments: read the 202: %w", err)
	}
	if err := json.Unmarshal(loaded.Response.Body, &accepted); err != nil || accepted.Operation != stored.OperationID {
		return loaded, accepted, &ByHandError{CodePartlyThere, "its record waits for a message that is not there, and its 202 does not say what was asked for: inspect it"}
	}
	return loaded, accepted, nil
}

// fits refuses what contradicts who the operator says it is of, or what the provider shows of it.
func (b begun) fits(operation idem.OperationID, objects []Shown, told Told) error {
	if b.view.Payout != nil {
		if err := told.ofAccount(b.view.Payout.From); err != nil {
			return err
		}
	}
	if len(objects) == 0 {
		return nil
	}
	_, err := b.shown(operation, objects)
	return err
}

// judge refuses what must not be made whole by what the provider shows. Money that has not moved moves only where that is asked for: where
// the provider has nothing, and where a payout was only screened.
func (b begun) judge(operation idem.OperationID, objects []Shown, told Told) (Lost, error) {
	if b.view.Payout != nil {
		if err := told.ofAccount(b.view.Payout.From); err != nil {
			return Lost{}, err
		}
	}
	if len(objects) == 0 {
		if told.Finish {
			return Lost{}, nil
		}
		return Lost{}, &ByHandError{CodeNothingMade, "it was accepted, and the provider has nothing of it: made again it is executed now (--finish)"}
	}
	lost, err := b.shown(operation, objects)
	if err != nil {
		return Lost{}, err
	}
	return lost, told.admits(lost, objects)
}

// shown is what the provider made, which must be what was asked for.
func (b begun) shown(operation idem.OperationID, objects []Shown) (Lost, error) {
	lost, err := Made(objects)
	if err != nil {
		return Lost{}, err
	}
	same, err := b.made(lost)
	switch {
	case err != nil:
		return Lost{}, err
	case !same || lost.Operation != operation:
		return Lost{}, &ByHandError{CodeDiffersFromSelf, "what the provider made is not what was asked for here: ask the provider which is true"}
	}
	return lost, nil
}

// made says whether the provider's first object is what the operation asks it for.
func (b begun) made(lost Lost) (bool, error) {
	o := lost.First
	switch v := b.view; {
	case v.Payment != nil:
		p := v.Payment
		return lost.ID == p.ID && o.Amount == p.Amount && o.Currency == p.Currency && o.Source == p.Source && o.Reference == p.Reference, nil
	case v.Payout != nil:
		p := v.Payout
		return lost.ID == p.ID && o.Amount == p.Amount && o.Currency == p.Currency && o.Destination == p.Destination, nil
	}
	ordered, err := decodePayload[refund](b.payload)
	sameCharge := o.Charge == ordered.Charge || ordered.Charge == "" // not known, where the row alone is put back
	return lost.ID == ordered.Refund && o.Amount == ordered.Amount && o.Currency == ordered.Currency && sameCharge, err
}

// beginAs is what the operation committed beside its record, by its 202. paidOf finds the payment that a refund is of.
func (r Restorer) beginAs(ctx context.Context, stored storage.Record, accepted acceptedView, paidOf func(ctx context.Context, tenant, id string) (Payment, error)) (begun, error) {
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
		paid, err := paidOf(ctx, tenant, v.Payment)
		if err != nil {
			return begun{}, err
		}
		return beginRefund(Refund{
			Tenant: tenant, ID: v.ID, Payment: v.Payment, Status: StatusPending, Amount: v.Amount, Currency: v.Currency, CreatedAt: at(v.CreatedAt),
			Message: message,
		}, paid)
	}
	return begun{}, &ByHandError{CodePartlyThere, "its record waits for a message that is not there, and its 202 is about nothing that this application makes: inspect it"}
}

// succeeded is the payment that a refund is of, which must have succeeded.
func (r Restorer) succeeded(ctx context.Context, tenant, id string) (Payment, error) {
	paid, err := r.Ledger.Payment(ctx, tenant, id)
	switch {
	case err != nil:
		return Payment{}, err
	case paid == nil || paid.Status != StatusSucceeded:
		return Payment{}, &ByHandError{CodePaymentMissing, fmt.Sprintf("payment %s is not there, or has not succeeded yet: make that one again first, and come back", id)}
	}
	return *paid, nil
}
