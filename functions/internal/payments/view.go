package payments

import (
	"encoding/base64"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem"
)

// milliseconds is RFC 3339 in UTC with milliseconds.
const milliseconds = "2006-01-02T15:04:05.000Z"

func instant(t time.Time) string { return t.UTC().Format(milliseconds) }

func instantOrNil(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := instant(t)
	return &s
}

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
	Balance  int64  `json:"balance"`
}

// operationView is an operation's status; its response is null until it is final.
type operationView struct {
	ID          idem.OperationID `json:"id"`
	State       string           `json:"state"`
	CreatedAt   string           `json:"created_at"`
	CompletedAt *string          `json:"completed_at"`
	Response    *responseView    `json:"response"`
}

type responseView struct {
	Status       int               `json:"status"`
	Headers      map[string]string `json:"headers"`
	Body         string            `json:"body"`
	BodyEncoding string            `json:"body_encoding,omitempty"`
}

func viewOperation(r idem.Record, state string) operationView {
	v := operationView{ID: r.OperationID, State: state, CreatedAt: instant(r.CreatedAt), CompletedAt: instantOrNil(r.DoneAt)}
	if r.State.Final() {
		v.Response = viewResponse(r.Response)
	}
	return v
}

// viewResponse carries the exact bytes of the body: as a string where they are UTF-8, else in base64.
func viewResponse(r idem.Response) *responseView {
	v := &responseView{Status: r.Status, Headers: make(map[string]string, len(r.Header)), Body: string(r.Body)}
	for _, field := range r.Header {
		v.Headers[http.CanonicalHeaderKey(field.Name)] = field.Value
	}
	if !utf8.Valid(r.Body) {
		v.Body, v.BodyEncoding = base64.StdEncoding.EncodeToString(r.Body), "base64"
	}
	return v
}

// operationState shows record and message together (docs/semantics.md "States of a record").
func operationState(r idem.Record, open *idem.Message) string {
	switch r.State {
	case idem.StateCompleted:
		return "completed"
	case idem.StateFailed:
		return "failed"
	case idem.StateUnknown:
		return "unknown"
	case idem.StateInProgress, idem.StateFailedRetryable:
		return "in_progress"
	case idem.StatePending:
	}
	if open == nil {
		return "pending"
	}
	switch open.State {
	case idem.MessageClaimed:
		return "in_progress"
	case idem.MessageUnknown, idem.MessageDead:
		return "unknown"
	case idem.MessagePending, idem.MessageDelivered, idem.MessageDeclined, idem.MessageCancelled:
	}
	return "pending"
}
