package drift

import (
	"context"
	"maps"
	"slices"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
)

// sumsMax is at how many payments, whose refunds are summed up, the sums are compared and begun anew: a sum over a part of
// the refunds proves as much as it says.
const sumsMax = 10_000

// refundSums hold, by the row of the payment, what has been given back of it within the window: the one thing that is held
// across pages beside the pool.
type refundSums map[string]*refundSum

// refundSum counts refunds that succeeded: what is final can only be in the payment's own sum.
type refundSum struct {
	tenant, payment, currency string
	here, there               int64
	// charges are the provider's that were refunded, normally one.
	charges []string
}

// note adds a refund of the window.
func (r refundSums) note(s story) {
	if s.entry.Kind != payments.EntryRefund {
		return
	}
	pk, _ := payments.EntryKey(payments.EntryPayment, s.entry.Tenant, s.entry.Payment)
	sum := r[pk]
	if sum == nil {
		sum = &refundSum{tenant: s.entry.Tenant, payment: s.entry.Payment, currency: s.entry.Currency}
		r[pk] = sum
	}
	if s.entry.Status == payments.StatusSucceeded {
		sum.here += s.entry.Amount
	}
	for _, o := range only(s.objects, object.succeeded) {
		sum.there += o.Amount
		if !slices.Contains(sum.charges, o.Charge) {
			sum.charges = append(sum.charges, o.Charge)
		}
	}
}

// compareRefunds compares the sums with their payments, which are read after their refunds, and begins anew.
func (r *run) compareRefunds(ctx context.Context) error {
	keys := slices.Sorted(maps.Keys(r.refunds))
	for batch := range slices.Chunk(keys, batchMax) {
		items, err := r.tables.batch(ctx, r.tables.cfg.PaymentsTable, table.Key, batch)
		if err != nil {
			return err
		}
		for _, pk := range batch {
			it, ok := items[pk]
			if !ok {
				r.found(r.refunds[pk].against(Side{What: string(payments.EntryPayment), ID: r.refunds[pk].payment, State: absent}, MissingHere))
				continue
			}
			paid, err := payments.DecodeEntry(it)
			if err != nil {
				r.report.Unreadable++
				continue
			}
			r.found(r.refunds[pk].classify(paid)...)
		}
	}
	clear(r.refunds)
	return nil
}

// classify compares a sum with its payment. It is pure.
func (s refundSum) classify(paid payments.Entry) (drifts []Drift) {
	row := Side{What: string(paid.Kind), ID: paid.ID, State: string(paid.Status), Amount: paid.Amount, Currency: paid.Currency}
	if max(s.here, s.there) > paid.Amount {
		drifts = append(drifts, s.against(row, Duplicate))
	}
	if s.here > paid.Refunded {
		row.State, row.Amount = "refunded", paid.Refunded
		drifts = append(drifts, s.against(row, AmountDiffers))
	}
	for _, charge := range s.charges {
		if charge != paid.ProviderReference {
			drifts = append(drifts, Drift{Kind: StateDiffers, Tenant: s.tenant, Entry: s.payment, Sides: []Side{
				{What: string(paid.Kind), ID: paid.ID, State: "charged as " + paid.ProviderReference}, {What: "provider refunds", State: "of " + charge},
			}})
		}
	}
	return drifts
}

// against sets the sum against what it must fit.
func (s refundSum) against(payment Side, kind Kind) Drift {
	return Drift{Kind: kind, Tenant: s.tenant, Entry: s.payment, Sides: []Side{
		payment, s.side("refunds", s.here), s.side("provider refunds", s.there),
	}}
}

func (s refundSum) side(what string, amount int64) Side {
	return Side{What: what, State: string(payments.StatusSucceeded), Amount: amount, Currency: s.currency}
}
