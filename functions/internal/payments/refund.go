package payments

import (
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
)

// TopicRefunds is the topic of refunds. The provider honours keys there, whichever way the payment was charged.
const TopicRefunds = "payments.refunds"

// refundVersion is the version of a refund's payload.
const refundVersion = 1

// refund is the payload of a message that refunds: the whole refund, so that its settlement is pure.
type refund struct {
	Version int    `json:"version"`
	Refund  string `json:"refund"`
	Payment string `json:"payment"`
	// Charge is the provider's reference of the payment.
	Charge    string    `json:"charge"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	CreatedAt time.Time `json:"created_at"`
}

func refundOf(r Refund, charge string) refund {
	return refund{
		Version: refundVersion, Refund: r.ID, Payment: r.Payment, Charge: charge, Amount: r.Amount, Currency: r.Currency,
		CreatedAt: r.CreatedAt,
	}
}

func (r refund) encode() ([]byte, error) { return json.Marshal(r) }

func (r refund) versions() (written, known int) { return r.Version, refundVersion }

// refundOrder is the body of the provider's POST /charges/{id}/refunds; the reference is ours.
type refundOrder struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// orderRefund reads what a message wants refunded.
func orderRefund(raw []byte) (order, error) {
	r, err := decodePayload[refund](raw)
	return order{
		chargesPath + "/" + url.PathEscape(r.Charge) + refundsPath,
		refundOrder{Amount: r.Amount, Currency: r.Currency, Reference: r.Refund},
	}, err
}
