package payments

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The topics of payouts. The destination is screened first, and then paid out to. The screening places a hold; where the
// payout is not made, the hold is released before the operation ends.
const (
	TopicScreenings    = "payments.screenings"
	TopicPayouts       = "payments.payouts"
	TopicLegacyPayouts = "payments.legacy_payouts"
	TopicReleases      = "payments.releases"
)

func payoutTopic(destination string) string {
	if strings.HasPrefix(destination, legacyPrefix) {
		return TopicLegacyPayouts
	}
	return TopicPayouts
}

// payoutVersion is the version of the payloads of a payout's chain.
const payoutVersion = 1

// screening is the payload of the message that screens a payout's destination: the whole payout, as in each payload of its
// chain, so that their settlements are pure.
type screening struct {
	Version     int       `json:"version"`
	Payout      string    `json:"payout"`
	From        string    `json:"from"`
	Amount      int64     `json:"amount"`
	Currency    string    `json:"currency"`
	Destination string    `json:"destination"`
	CreatedAt   time.Time `json:"created_at"`
}

func screeningOf(p Payout) screening {
	return screening{
		Version: payoutVersion, Payout: p.ID, From: p.From, Amount: p.Amount, Currency: p.Currency, Destination: p.Destination,
		CreatedAt: p.CreatedAt,
	}
}

func (s screening) encode() ([]byte, error) { return json.Marshal(s) }

func (s screening) versions() (written, known int) { return s.Version, payoutVersion }

// entity is the payout that the payload tells of.
func (s screening) entity(tenant string) Payout {
	return Payout{
		Tenant: tenant, ID: s.Payout, From: s.From, Amount: s.Amount, Currency: s.Currency, Destination: s.Destination,
		CreatedAt: s.CreatedAt,
	}
}

// payout is the payload of the message that pays out to a destination that passed.
type payout struct {
	screening
	// Screening is the provider's name of the screening, whose hold is to be released if the payout is not made.
	Screening string `json:"screening"`
}

func (p payout) encode() ([]byte, error) { return json.Marshal(p) }

// release is the payload of the message that releases the hold of a screening.
type release struct {
	payout
	// Because is why the payout was not made. It decides how the operation ends once the hold is released.
	Because reason `json:"because"`
	// Declined is the provider's name of the payout that it declined; empty where it was not executed.
	Declined string `json:"declined"`
}

func (r release) encode() ([]byte, error) { return json.Marshal(r) }

// reason is why a payout was not made.
type reason string

// The reasons.
const (
	becauseDeclined    reason = "declined"
	becauseNotExecuted reason = "not_executed"
)

// payoutOrder is the body of the provider's POST /screenings, POST /payouts and their legacy twins; the reference is ours.
type payoutOrder struct {
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Destination string `json:"destination"`
	Reference   string `json:"reference"`
}

func (s screening) order(path string) order {
	return order{path, payoutOrder{Amount: s.Amount, Currency: s.Currency, Destination: s.Destination, Reference: s.Payout}}
}

// orderScreening reads what a message wants screened.
func orderScreening(raw []byte) (order, error) {
	s, err := decodePayload[screening](raw)
	return s.order(screeningsPath), err
}

// orderPayout reads what a message wants paid out at the endpoint.
func orderPayout(path string) func([]byte) (order, error) {
	return func(raw []byte) (order, error) {
		p, err := decodePayload[payout](raw)
		return p.order(path), err
	}
}

// releaseOrder is the body of the provider's POST /screenings/{id}/releases; the reference is ours.
type releaseOrder struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// errNoScreening: a hold can't be released by no name.
var errNoScreening = errors.New("payments: the provider's name of the screening is missing")

// orderRelease reads which hold a message wants released.
func orderRelease(raw []byte) (order, error) {
	r, err := decodePayload[release](raw)
	if err == nil && r.Screening == "" {
		err = errNoScreening
	}
	return order{
		screeningsPath + "/" + url.PathEscape(r.Screening) + releasesPath,
		releaseOrder{Amount: r.Amount, Currency: r.Currency, Reference: r.Payout},
	}, err
}
