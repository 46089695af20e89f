package payments

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The topics of payouts: the destination is screened first, and then paid out to.
const (
	TopicScreenings    = "payments.screenings"
	TopicPayouts       = "payments.payouts"
	TopicLegacyPayouts = "payments.legacy_payouts"
)

func payoutTopic(destination string) string {
	if strings.HasPrefix(destination, legacyPrefix) {
		return TopicLegacyPayouts
	}
	return TopicPayouts
}

// payoutVersion is the version of a payout's payload.
const payoutVersion = 1

// payout is the payload of both messages of a payout, which is the same in both phases: the whole payout, so that their
// settlements are pure.
type payout struct {
	Version     int       `json:"version"`
	Payout      string    `json:"payout"`
	From        string    `json:"from"`
	Amount      int64     `json:"amount"`
	Currency    string    `json:"currency"`
	Destination string    `json:"destination"`
	CreatedAt   time.Time `json:"created_at"`
}

func payoutOf(p Payout) payout {
	return payout{
		Version: payoutVersion, Payout: p.ID, From: p.From, Amount: p.Amount, Currency: p.Currency, Destination: p.Destination,
		CreatedAt: p.CreatedAt,
	}
}

func (p payout) encode() ([]byte, error) { return json.Marshal(p) }

func (p payout) versions() (written, known int) { return p.Version, payoutVersion }

// payoutOrder is the body of the provider's POST /screenings and POST /payouts; the reference is ours.
type payoutOrder struct {
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Destination string `json:"destination"`
	Reference   string `json:"reference"`
}

// orderPayout reads what a message wants screened or paid out at the endpoint.
func orderPayout(path string) func([]byte) (order, error) {
	return func(raw []byte) (order, error) {
		p, err := decodePayload[payout](raw)
		return order{path, payoutOrder{Amount: p.Amount, Currency: p.Currency, Destination: p.Destination, Reference: p.Payout}}, err
	}
}
