package payments

import (
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// The settlements say what became of an entity: the same for the worker, for the api function, and for everything else that
// brings evidence.

// settleCharge ends a payment.
func settleCharge(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	c, err := decodePayload[charge](m.Payload)
	if err != nil {
		return outbox.Settlement{}, err
	}
	p := Payment{
		Tenant: m.Tenant, ID: c.Payment, Amount: c.Amount, Currency: c.Currency, Source: c.Source,
		Reference: c.Reference, CreatedAt: c.CreatedAt,
	}
	if p.Status, p.ProviderReference, err = ending(o); err != nil {
		return outbox.Settlement{}, err
	}
	return settlement(p.Status, viewPayment(p), paymentDeclined(o),
		FinishPayment{Tenant: p.Tenant, ID: p.ID, Status: p.Status, ProviderReference: p.ProviderReference})
}

// settleRefund ends a refund; what was not refunded can be refunded again.
func settleRefund(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	c, err := decodePayload[refund](m.Payload)
	if err != nil {
		return outbox.Settlement{}, err
	}
	r := Refund{
		Tenant: m.Tenant, ID: c.Refund, Payment: c.Payment, Amount: c.Amount, Currency: c.Currency, CreatedAt: c.CreatedAt,
	}
	if r.Status, r.ProviderReference, err = ending(o); err != nil {
		return outbox.Settlement{}, err
	}
	writes := []idem.Write{FinishRefund{Tenant: r.Tenant, ID: r.ID, Status: r.Status, ProviderReference: r.ProviderReference}}
	if r.Status != StatusSucceeded {
		writes = append(writes, ReleaseRefund{Tenant: r.Tenant, Payment: r.Payment, Amount: r.Amount})
	}
	return settlement(r.Status, viewRefund(r), refundDeclined(o), writes...)
}

// settleScreening goes on with the payout, or ends it where the destination did not pass. What the provider made is no
// payout, so a payout that ends here has no reference.
func settleScreening(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	s, err := decodePayload[screening](m.Payload)
	if err != nil {
		return outbox.Settlement{}, err
	}
	if passed, ok := o.(outbox.Delivered); ok {
		if passed.Reference == "" { // nobody could release its hold
			return outbox.Settlement{}, errNoScreening
		}
		return following(outbox.Next{Topic: payoutTopic(s.Destination)}, payout{screening: s, Screening: passed.Reference})
	}
	p := s.entity(m.Tenant)
	if p.Status, _, err = ending(o); err != nil {
		return outbox.Settlement{}, err
	}
	return endOfPayout(p, screeningDeclined(o))
}

// settlePayout ends a payout that was made. Where it was not, the hold of its screening is released first: until then the
// payout is pending, and the funds stay reserved.
func settlePayout(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	c, err := decodePayload[payout](m.Payload)
	if err != nil {
		return outbox.Settlement{}, err
	}
	switch o := o.(type) {
	case outbox.Declined:
		return following(outbox.Next{Topic: TopicReleases, Undoes: true}, release{payout: c, Because: becauseDeclined, Declined: o.Reference})
	case outbox.NotExecuted:
		return following(outbox.Next{Topic: TopicReleases, Undoes: true}, release{payout: c, Because: becauseNotExecuted})
	}
	p := c.entity(m.Tenant)
	if p.Status, p.ProviderReference, err = ending(o); err != nil {
		return outbox.Settlement{}, err
	}
	return endOfPayout(p, idem.Problem{})
}

// settleRelease ends a payout that was not made, once the hold of its screening is released. It returns an error for
// everything else: while the hold stands the operation has no end, and an operator decides.
func settleRelease(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	r, err := decodePayload[release](m.Payload)
	if err != nil {
		return outbox.Settlement{}, err
	}
	if _, released := o.(outbox.Delivered); !released {
		return outbox.Settlement{}, fmt.Errorf("payments: the hold of screening %s stands", r.Screening)
	}
	p := r.entity(m.Tenant)
	switch r.Because {
	case becauseDeclined:
		p.Status, p.ProviderReference = StatusDeclined, r.Declined
		return endOfPayout(p, payoutDeclined("The provider declined the payout. The funds are back on the account."))
	case becauseNotExecuted:
		p.Status = StatusFailed
		s, err := endOfPayout(p, idem.Problem{})
		s.Response = payoutNotMade().Response()
		return s, err
	}
	return outbox.Settlement{}, fmt.Errorf("payments: a hold is released for the unknown reason %q", r.Because)
}

// following goes on with a message of the payload.
func following(next outbox.Next, p interface{ encode() ([]byte, error) }) (_ outbox.Settlement, err error) {
	next.Payload, err = p.encode()
	return outbox.Settlement{Next: &next}, err
}

// endOfPayout gives the funds back, unless they have left.
func endOfPayout(p Payout, declined idem.Problem) (outbox.Settlement, error) {
	finish := FinishPayout{Tenant: p.Tenant, ID: p.ID, Status: p.Status, ProviderReference: p.ProviderReference}
	writes := []idem.Write{finish}
	if finish.givesBack() {
		writes = append(writes, Credit{Tenant: p.Tenant, Account: p.From, Amount: p.Amount, Currency: p.Currency})
	}
	return settlement(p.Status, viewPayout(p), declined, writes...)
}

// ending is the final status by an outcome, and the provider's reference.
func ending(o outbox.Outcome) (Status, string, error) {
	switch o := o.(type) {
	case outbox.Delivered:
		return StatusSucceeded, o.Reference, nil
	case outbox.Declined:
		return StatusDeclined, o.Reference, nil
	case outbox.NotExecuted:
		return StatusFailed, "", nil
	}
	return "", "", fmt.Errorf("payments: a %T settles nothing", o)
}

// settlement answers 201 with the view or with the decline; the answer to what failed is the outbox's own.
func settlement(status Status, view any, declined idem.Problem, writes ...idem.Write) (outbox.Settlement, error) {
	s := outbox.Settlement{Writes: writes}
	var err error
	switch status {
	case StatusSucceeded:
		s.Response, err = idem.JSON(http.StatusCreated, view)
	case StatusDeclined:
		s.Response = declined.Response()
	case StatusFailed, StatusPending, StatusUnknown:
	}
	return s, err
}
