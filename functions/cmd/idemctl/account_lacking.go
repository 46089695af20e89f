package main

import (
	"cmp"
	"fmt"

	"github.com/idem-go/idem-aws/functions/internal/payments"
)

// lack is why an account can't be corrected by its rows.
type lack struct {
	code, rule string
	// err is set where nothing else tells of it.
	err error
}

// moving is of an account whose rows may be of another moment than itself.
var moving = lack{code: codeMoves, rule: "money was moved while it was compared: compare it again, or while no requests come"}

// lacking are the accounts whose rows lack a transfer that was answered with 201. Its client is told so for ever: an account that is
// corrected without it gets its money back, or loses it, as if the transfer had never been.
type lacking struct {
	accounts map[payments.AccountName]*lack
	// tenants are those of a transfer of which nobody knows whose accounts it is about.
	tenants map[string]*lack
}

// add notes a transfer that is not among the rows.
func (l lacking) add(lost payments.AnsweredTransfer, because lack) {
	t := lost.Transfer
	if lost.Trouble != nil {
		l.tenants[lost.Tenant] = &lack{codeTrouble, fmt.Sprintf("the 201 of %s can't be read, and nobody knows whether it moved money of this account: nothing is corrected before it can", lost.Operation), because.err}
		return
	}
	for _, account := range []string{t.From, t.To} {
		l.accounts[payments.AccountName{Tenant: t.Tenant, ID: account}] = &because
	}
}

// of is nil for an account whose rows are all there, as far as anybody knows.
func (l lacking) of(account payments.AccountName) *lack {
	return cmp.Or(l.accounts[account], l.tenants[account.Tenant])
}
