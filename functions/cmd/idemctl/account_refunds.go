package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// refundedPayment is a payment that says another amount was refunded of it than its refunds add up to, or of which a refund has no row.
type refundedPayment struct {
	Payment string `json:"payment"`
	Tenant  string `json:"tenant"`
	// Refunded is what the payment says, and Refunds what its refunds add up to that are pending or have succeeded.
	Refunded int64 `json:"refunded"`
	Refunds  int64 `json:"refunds"`
	decided
	// row is the payment as it was read after it was added up; nil where it is not there. moved says that it, or a refund of it, was
	// another one by then.
	row   *payments.Payment
	moved bool
}

// refunds are the payments that differ from their refunds, where all accounts are compared. Those that differ are added up twice, because a
// transaction that is being committed may show in a payment before it shows in its refund. Nothing is written.
func (c *compareAccounts) refunds(ctx context.Context, table payments.Table) ([]refundedPayment, error) {
	differ := []refundedPayment{}
	if c.Account != "" {
		return differ, nil
	}
	sums, err := table.RefundSums(ctx)
	if err != nil {
		return nil, err
	}
	for name, sum := range sums {
		if sum.Payment == sum.Refunds {
			continue
		}
		row, err := table.Payment(ctx, name.Tenant, name.ID)
		if err != nil {
			return nil, err
		}
		differ = append(differ, refundedPayment{
			Payment: name.ID, Tenant: name.Tenant, Refunded: sum.Payment, Refunds: sum.Refunds, row: row, moved: row != nil && row.Refunded != sum.Payment,
		})
	}
	if len(differ) == 0 {
		return differ, nil
	}
	again, err := table.RefundSums(ctx)
	for i, p := range differ {
		name := payments.PaymentName{Tenant: p.Tenant, ID: p.Payment}
		differ[i].moved = p.moved || again[name] != sums[name]
	}
	sortPayments(differ)
	return differ, err
}

func sortPayments(all []refundedPayment) {
	slices.SortFunc(all, func(a, b refundedPayment) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Payment, b.Payment))
	})
}

// lackingRefunds adds the payments that agree with their refunds while one of those is not there: its amount is not on its payment either.
func (c *compareAccounts) lackingRefunds(ctx context.Context, table payments.Table, all []refundedPayment, lacks lacking) ([]refundedPayment, error) {
	if c.Account != "" {
		return all, nil
	}
	differ := map[payments.PaymentName]bool{}
	for _, p := range all {
		differ[payments.PaymentName{Tenant: p.Tenant, ID: p.Payment}] = true
	}
	for name := range lacks.payments {
		if differ[name] {
			continue
		}
		row, err := table.Payment(ctx, name.Tenant, name.ID)
		if err != nil {
			return nil, err
		}
		p := refundedPayment{Payment: name.ID, Tenant: name.Tenant, row: row}
		if row != nil {
			p.Refunded, p.Refunds = row.Refunded, row.Refunded
		}
		all = append(all, p)
	}
	sortPayments(all)
	return all, nil
}

// correctRefunds corrects the payments, where that is asked for. Its error is one that repeating the command may not meet again.
func (c *compareAccounts) correctRefunds(d *idemctl.Desk, table payments.Table, differ []refundedPayment, lacks lacking) (trouble error) {
	for i, p := range differ {
		trouble = errors.Join(trouble, c.correctRefund(d, table, &differ[i], lacks.ofPayment(payments.PaymentName{Tenant: p.Tenant, ID: p.Payment})))
	}
	return trouble
}

// correctRefund corrects one payment, whose refunds lack one unless lack is nil.
func (c *compareAccounts) correctRefund(d *idemctl.Desk, table payments.Table, p *refundedPayment, lack *lack) error {
	would := fmt.Sprintf("change what was refunded of it from %d to %d, which its refunds add up to", p.Refunded, p.Refunds)
	switch {
	case p.moved:
		p.leave(moving.code, moving.rule)
		return nil
	case p.row == nil:
		p.leave(payments.CodePaymentMissing, "there are refunds of it, and the payment is not there: make it again (missing restore), and compare once more")
		return nil
	case lack != nil:
		p.leave(lack.code, lack.rule)
		return nil
	case !c.Correct:
		p.leave(codeDiffers, "--correct is needed to "+would)
		return nil
	}
	name := rand.Text()
	result, err := d.Do(operator.Task{
		Name: "account compare", Subject: p.Payment, Tenant: p.Tenant, Would: would,
		Act: func(ctx context.Context) (string, error) {
			return would, refusedAccount(table.CorrectRefunded(ctx, *p.row, p.Refunds, name))
		},
	}, c.Change())
	if errors.Is(err, payments.ErrNotCompared) {
		p.leave(moving.code, moving.rule)
		return unlogged(err)
	}
	return p.done(result, err)
}
