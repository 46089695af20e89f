package payments

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The topics of payments.
const (
	TopicCharges       = "payments.charges"
	TopicLegacyCharges = "payments.legacy_charges"
)

// legacyPrefix marks sources and destinations that are served at the provider's keyless endpoints.
const legacyPrefix = "legacy_"

func chargeTopic(source string) string {
	if strings.HasPrefix(source, legacyPrefix) {
		return TopicLegacyCharges
	}
	return TopicCharges
}

// chargeVersion is the version of a charge's payload.
const chargeVersion = 1

// charge is the payload of a message that charges a payment: the whole payment, so that its settlement is pure.
type charge struct {
	Version   int       `json:"version"`
	Payment   string    `json:"payment"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	Source    string    `json:"source"`
	Reference string    `json:"reference"`
	CreatedAt time.Time `json:"created_at"`
}

func chargeOf(p Payment) charge {
	return charge{
		Version: chargeVersion, Payment: p.ID, Amount: p.Amount, Currency: p.Currency, Source: p.Source,
		Reference: p.Reference, CreatedAt: p.CreatedAt,
	}
}

func (c charge) encode() ([]byte, error) { return json.Marshal(c) }

func (c charge) versions() (written, known int) { return c.Version, chargeVersion }

// chargeOrder is the body of the provider's POST /charges.
type chargeOrder struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Source    string `json:"source"`
	Reference string `json:"reference"`
}

// orderCharge reads what a message wants charged at the endpoint.
func orderCharge(path string) func([]byte) (order, error) {
	return func(raw []byte) (order, error) {
		c, err := decodePayload[charge](raw)
		return order{path, chargeOrder{Amount: c.Amount, Currency: c.Currency, Source: c.Source, Reference: c.Reference}}, err
	}
}
