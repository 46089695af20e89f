package payments

import (
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// milliseconds is RFC 3339 in UTC with milliseconds.
const milliseconds = "2006-01-02T15:04:05.000Z"

func instant(t time.Time) string { return t.UTC().Format(milliseconds) }

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// paymentView is a payment as clients see it.
type paymentView struct {
	ID                string  `json:"id"`
	Status            Status  `json:"status"`
	Amount            int64   `json:"amount"`
	Currency          string  `json:"currency"`
	Source            string  `json:"source"`
	Reference         string  `json:"reference"`
	ProviderReference *string `json:"provider_reference"`
	Refunded          int64   `json:"refunded"`
	CreatedAt         string  `json:"created_at"`
}

func viewPayment(p Payment) paymentView {
	return paymentView{
		ID: p.ID, Status: p.Status, Amount: p.Amount, Currency: p.Currency, Source: p.Source, Reference: p.Reference,
		ProviderReference: textOrNil(p.ProviderReference), Refunded: p.Refunded, CreatedAt: instant(p.CreatedAt),
	}
}

// refundView is a refund as clients see it.
type refundView struct {
	ID                string  `json:"id"`
	Payment           string  `json:"payment"`
	Status            Status  `json:"status"`
	Amount            int64   `json:"amount"`
	Currency          string  `json:"currency"`
	ProviderReference *string `json:"provider_reference"`
	CreatedAt         string  `json:"created_at"`
}

func viewRefund(r Refund) refundView {
	return refundView{
		ID: r.ID, Payment: r.Payment, Status: r.Status, Amount: r.Amount, Currency: r.Currency,
		ProviderReference: textOrNil(r.ProviderReference), CreatedAt: instant(r.CreatedAt),
	}
}

// payoutView is a payout as clients see it.
type payoutView struct {
	ID                string  `json:"id"`
	Status            Status  `json:"status"`
	From              string  `json:"from"`
	Amount            int64   `json:"amount"`
	Currency          string  `json:"currency"`
	Destination       string  `json:"destination"`
	ProviderReference *string `json:"provider_reference"`
	CreatedAt         string  `json:"created_at"`
}

func viewPayout(p Payout) payoutView {
	return payoutView{
		ID: p.ID, Status: p.Status, From: p.From, Amount: p.Amount, Currency: p.Currency, Destination: p.Destination,
		ProviderReference: textOrNil(p.ProviderReference), CreatedAt: instant(p.CreatedAt),
	}
}

// acceptedView is the body of a 202: the operation, and what it is about.
type acceptedView struct {
	Operation idem.OperationID `json:"operation"`
	State     string           `json:"state"`
	Payment   *paymentView     `json:"payment,omitzero"`
	Refund    *refundView      `json:"refund,omitzero"`
	Payout    *payoutView      `json:"payout,omitzero"`
}

type transferView struct {
	ID        string `json:"id"`
	From      string `json:"from"`
	To        string `json:"to"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	CreatedAt string `json:"created_at"`
}

func viewTransfer(t Transfer) transferView {
	return transferView{ID: t.ID, From: t.From, To: t.To, Amount: t.Amount, Currency: t.Currency, CreatedAt: instant(t.CreatedAt)}
}

type accountView struct {
	ID       string `json:"id"`
	Currency string `json:"currency"`
	// Balance is what can be spent. Incoming is not in it.
	Balance int64 `json:"balance"`
	// Incoming is nil but for a collecting account.
	Incoming *incomingView `json:"incoming,omitempty"`
}

// incomingView are the transfers to an account that are not folded into its balance yet.
type incomingView struct {
	Amount    int64 `json:"amount"`
	Transfers int   `json:"transfers"`
	// More says that there are more than were read.
	More bool `json:"more"`
}
