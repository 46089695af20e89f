package payments

import "github.com/idem-go/idem-aws/idem"

// InsertPayment inserts a payment; its id is new by construction.
type InsertPayment struct{ Payment Payment }

// FinishPayment gives a pending payment its final status.
type FinishPayment struct {
	Tenant            string
	ID                string
	Status            Status
	ProviderReference string
}

// ReserveRefund counts an amount against a payment that succeeded and has as much left to refund.
type ReserveRefund struct {
	Tenant  string
	Payment string
	Amount  int64
	// Paid is the payment's own amount, which never changes.
	Paid int64
}

// ReleaseRefund gives a payment back what a refund had reserved that was not made.
type ReleaseRefund struct {
	Tenant  string
	Payment string
	Amount  int64
}

// InsertRefund inserts a refund; its id is new by construction.
type InsertRefund struct{ Refund Refund }

// FinishRefund gives a pending refund its final status.
type FinishRefund struct {
	Tenant            string
	ID                string
	Status            Status
	ProviderReference string
}

// InsertPayout inserts a payout; its id is new by construction.
type InsertPayout struct{ Payout Payout }

// FinishPayout gives a pending payout its final status.
type FinishPayout struct {
	Tenant            string
	ID                string
	Status            Status
	ProviderReference string
}

// givesBack says whether the payout's funds are given back beside it.
func (w FinishPayout) givesBack() bool { return w.Status != StatusSucceeded }

// InsertTransfer inserts a transfer; its id is new by construction.
type InsertTransfer struct{ Transfer Transfer }

// Debit takes an amount from an account that holds at least as much in that currency. It goes with the row that is the reason for it,
// as Credit does.
type Debit struct {
	Tenant   string
	Account  string
	Amount   int64
	Currency string
}

// Credit adds an amount to an account of that currency.
type Credit struct {
	Tenant   string
	Account  string
	Amount   int64
	Currency string
}

// IfConditionFails: a payment exists already only where ids collide, which they can't.
func (InsertPayment) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails: a settlement may not reject; the outbox makes the message dead and keeps its evidence.
func (FinishPayment) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails is the business answer refund_exceeds_payment: that the payment succeeded was seen, and stays true.
func (ReserveRefund) IfConditionFails() idem.Failure { return idem.Reject(refundExceedsPayment()) }

// IfConditionFails: a settlement may not reject; the outbox makes the message dead and keeps its evidence.
func (ReleaseRefund) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails: a refund exists already only where ids collide, which they can't.
func (InsertRefund) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails: a settlement may not reject; the outbox makes the message dead and keeps its evidence.
func (FinishRefund) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails: a payout exists already only where ids collide, which they can't.
func (InsertPayout) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails: a settlement may not reject; the outbox makes the message dead and keeps its evidence.
func (FinishPayout) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails: a transfer exists already only where ids collide, which they can't.
func (InsertTransfer) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails is the business answer insufficient_funds.
func (Debit) IfConditionFails() idem.Failure {
	return idem.Reject(insufficientFunds())
}

// IfConditionFails reads again: the account was there when the handler looked.
func (Credit) IfConditionFails() idem.Failure { return idem.Retry() }
