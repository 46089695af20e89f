package payments

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The topics of the application.
const (
	TopicCharges       = "payments.charges"
	TopicLegacyCharges = "payments.legacy_charges"
)

// legacyPrefix marks sources that are charged at the provider's keyless endpoints.
const legacyPrefix = "legacy_"

func chargeTopic(source string) string {
	if strings.HasPrefix(source, legacyPrefix) {
		return TopicLegacyCharges
	}
	return TopicCharges
}

// chargeVersion is the version of a charge's payload. A worker leaves one that it does not know to a newer release.
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

func decodeCharge(payload []byte) (charge, error) {
	var c charge
	if err := json.Unmarshal(payload, &c, json.RejectUnknownMembers(true)); err != nil {
		return c, fmt.Errorf("payments: malformed charge: %w", err)
	}
	if c.Version != chargeVersion {
		return c, fmt.Errorf("payments: charge of version %d, this release knows %d", c.Version, chargeVersion)
	}
	return c, nil
}
