package payments

import (
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// settleCharge says what became of a payment: the same for the worker, and for whoever else brings evidence.
func settleCharge(m idem.Message, o outbox.Outcome) (outbox.Settlement, error) {
	c, err := decodeCharge(m.Payload)
	if err != nil {
		return outbox.Settlement{}, err
	}
	p := Payment{
		Tenant: m.Tenant, ID: c.Payment, Amount: c.Amount, Currency: c.Currency, Source: c.Source,
		Reference: c.Reference, CreatedAt: c.CreatedAt,
	}
	var response idem.Response
	switch o := o.(type) {
	case outbox.Delivered:
		p.Status, p.ProviderReference = StatusSucceeded, o.Reference
		response, err = idem.JSON(http.StatusCreated, viewPayment(p))
	case outbox.Declined:
		p.Status, p.ProviderReference = StatusDeclined, o.Reference
		response = idem.NewProblem(http.StatusPaymentRequired, "payment_declined", "Payment declined",
			"The payment source declined the charge.").Response()
	case outbox.NotExecuted:
		p.Status = StatusFailed
	default:
		err = fmt.Errorf("payments: a charge does not settle by %T", o)
	}
	if err != nil {
		return outbox.Settlement{}, err
	}
	return outbox.Settlement{
		Writes:   []idem.Write{FinishPayment{Tenant: p.Tenant, ID: p.ID, Status: p.Status, ProviderReference: p.ProviderReference}},
		Response: response,
	}, nil
}
