package payments

import (
	"net/http"

	"github.com/idem-go/idem-aws/idem"
)

// InsertPayment inserts a payment; its id is new by construction.
type InsertPayment struct{ Payment Payment }

// FinishPayment gives a pending payment its final status.
type FinishPayment struct {
	Tenant            string
	ID                string
	Status            Status
	ProviderReference string
}

// InsertTransfer inserts a transfer; its id is new by construction.
type InsertTransfer struct{ Transfer Transfer }

// Debit takes an amount from an account that holds at least as much in that currency.
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

// IfConditionFails: a transfer exists already only where ids collide, which they can't.
func (InsertTransfer) IfConditionFails() idem.Failure { return idem.Failure{} }

// IfConditionFails is the business answer insufficient_funds.
func (Debit) IfConditionFails() idem.Failure {
	return idem.Reject(idem.NewProblem(http.StatusPaymentRequired, "insufficient_funds", "Insufficient funds",
		"The account does not hold the amount."))
}

// IfConditionFails reads again: the account was there when the handler looked.
func (Credit) IfConditionFails() idem.Failure { return idem.Retry() }
