package payments

import (
	"context"
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
)

// createPayment commits the payment, the message that charges it and the 202 together.
func createPayment(tx *idem.Tx, req paymentRequest) (idem.Response, error) {
	p := Payment{
		Tenant: tx.Tenant(), ID: entityID("pay_", tx.OperationID()), Status: StatusPending, Amount: req.amount,
		Currency: req.currency, Source: req.source, Reference: req.reference, CreatedAt: tx.Now(),
		Message: tx.OperationID().Message(1),
	}
	payload, err := chargeOf(p).encode()
	if err != nil {
		return idem.Response{}, err
	}
	tx.Send(chargeTopic(p.Source), payload)
	tx.Write(InsertPayment{p})
	return idem.JSON(http.StatusAccepted, acceptedView{Operation: tx.OperationID(), State: "pending", Payment: viewPayment(p)})
}

// createTransfer is a double entry: both accounts and the transfer in one transaction, the balance as its condition.
// The accounts are read first only to tell a missing one from a poor one.
func createTransfer(ctx context.Context, ledger Ledger, tx *idem.Tx, req transferRequest) (idem.Response, error) {
	for _, end := range []struct{ member, id string }{{"from", req.from}, {"to", req.to}} {
		account, err := ledger.Account(ctx, tx.Tenant(), end.id)
		if err != nil {
			return idem.Response{}, err
		}
		if account == nil {
			return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(http.StatusNotFound, "account_not_found",
				"Account not found", fmt.Sprintf("There is no account as named by %q.", end.member))}
		}
		if account.Currency != req.currency {
			return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(http.StatusBadRequest, "currency_mismatch",
				"Currency mismatch", fmt.Sprintf("The account named by %q holds another currency.", end.member))}
		}
	}
	t := Transfer{
		Tenant: tx.Tenant(), ID: entityID("tr_", tx.OperationID()), From: req.from, To: req.to, Amount: req.amount,
		Currency: req.currency, CreatedAt: tx.Now(),
	}
	tx.Write(
		Debit{Tenant: t.Tenant, Account: t.From, Amount: t.Amount, Currency: t.Currency},
		Credit{Tenant: t.Tenant, Account: t.To, Amount: t.Amount, Currency: t.Currency},
		InsertTransfer{t},
	)
	return idem.JSON(http.StatusCreated, viewTransfer(t))
}
