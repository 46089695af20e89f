package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// lack is why an account can't be corrected by its rows.
type lack struct{ code, rule string }

// moving is of an account whose rows may be of another moment than itself.
var moving = lack{code: codeMoves, rule: "money was moved while it was compared: compare it again, or while no requests come"}

// lacking are the accounts whose rows lack a transfer that was answered with 201, or a payout that is under way or was made, and the payments
// whose refunds lack such a one. The client is told so for ever, and the provider moves the money: what is corrected without that row has its
// money back, or loses it, as if nothing had ever been.
type lacking struct {
	accounts map[payments.AccountName]*lack
	payments map[payments.PaymentName]*lack
	// tenants are those of a transfer or a payout of which nobody knows whose accounts it is about, and refunders those of such a refund.
	tenants, refunders map[string]*lack
}

func newLacking() lacking {
	return lacking{map[payments.AccountName]*lack{}, map[payments.PaymentName]*lack{}, map[string]*lack{}, map[string]*lack{}}
}

// add notes a transfer that is not among the rows.
func (l lacking) add(lost payments.AnsweredTransfer, because lack) {
	t := lost.Transfer
	if lost.Trouble != nil {
		l.tenants[lost.Tenant] = unread(lost.Operation, "transfer", t.ID)
		return
	}
	for _, account := range []string{t.From, t.To} {
		l.accounts[payments.AccountName{Tenant: t.Tenant, ID: account}] = &because
	}
}

// unread is why nothing of a tenant is corrected. It names one row of those that are not there, by the id that it must have.
func unread(operation idem.OperationID, kind, id string) *lack {
	return &lack{codeTrouble, fmt.Sprintf("the answer of %s can't be read, and nobody knows which account or payment its %s %s is of: nothing is corrected before it can be read, or that row is there", operation, kind, id)}
}

// troubleOf tells of one that can't be read. Each is told of by itself, because an account's rule names one of them only.
func troubleOf(operation idem.OperationID, kind, id string, trouble error) error {
	return fmt.Errorf("%s, %s %s: %w", operation, kind, id, trouble)
}

// of is nil for an account whose rows are all there, as far as anybody knows.
func (l lacking) of(account payments.AccountName) *lack {
	return cmp.Or(l.accounts[account], l.tenants[account.Tenant])
}

// ofPayment is nil for a payment whose refunds are all there.
func (l lacking) ofPayment(payment payments.PaymentName) *lack {
	return cmp.Or(l.payments[payment], l.refunders[payment.Tenant])
}

// rowless notes the payouts and refunds that have no row, before anything is corrected. trouble is of those that can't be read.
func (c *compareAccounts) rowless(d *idemctl.Desk, b books, lacks lacking) (trouble, err error) {
	if c.Account != "" && !c.Correct {
		return nil, nil
	}
	found, err := b.rowless.Entries(d.Context(), c.From)
	for _, lost := range found {
		lacks.addEntry(lost)
		if ours := c.Account == "" || c.Tenant == lost.Tenant && lost.Kind == payments.EntryPayout; ours && lost.Trouble != nil {
			trouble = errors.Join(trouble, troubleOf(lost.Operation, string(lost.Kind), lost.ID, lost.Trouble))
		}
	}
	return trouble, err
}

// byHand says what status a row has that a person writes. One that says that a payout has failed while the worker goes on with it would give
// money back that leaves, and one that was not made says that its money is given back.
func byHand(kind payments.EntryKind, status payments.Status) string {
	if status == "" {
		return ""
	}
	said := fmt.Sprintf(". Written by hand its status is %s", status)
	if kind == payments.EntryPayout && (status == payments.StatusDeclined || status == payments.StatusFailed) {
		said += ", with gvb 1"
	}
	return said
}

// addEntry notes a payout or a refund that is not among the rows.
func (l lacking) addEntry(lost payments.RowlessEntry) {
	refund := lost.Kind == payments.EntryRefund
	because := &lack{codePayoutLost, fmt.Sprintf("%s %s of it is under way or was made, and its row is not there: put the row back (missing restore --operation %s), and compare again", lost.Kind, lost.ID, lost.Operation)}
	if lost.Trouble != nil {
		because = unread(lost.Operation, string(lost.Kind), lost.ID)
	}
	because.rule += byHand(lost.Kind, lost.Status)
	switch {
	case refund && lost.Trouble != nil:
		l.refunders[lost.Tenant] = because
	case refund:
		because.code = codeRefundLost
		l.payments[payments.PaymentName{Tenant: lost.Tenant, ID: lost.Of}] = because
	case lost.Trouble != nil:
		l.tenants[lost.Tenant] = because
	default:
		l.accounts[payments.AccountName{Tenant: lost.Tenant, ID: lost.Of}] = because
	}
}
