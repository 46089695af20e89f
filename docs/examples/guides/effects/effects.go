// Package effects is the program of docs/guides/effects.md and docs/guides/accepted.md: orders that are charged at a provider which
// honours idempotency keys, and paid out through a bank that knows no keys.
package effects

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/idem/storage"
)

// The topics: the name of a topic stands in every message, so it never changes.
const (
	TopicCharge = "payments.charge"
	TopicPayout = "payouts.send"
)

// ChargeTopic charges at a provider that answers a key which it has seen with the first answer.
func ChargeTopic(provider *call.Client, url string) outbox.Topic {
	return outbox.Topic{
		Name: TopicCharge,
		Keys: outbox.Keys{Honoured: true, Retention: 24 * time.Hour}, // by the provider's documentation
		Call: func(ctx context.Context, m storage.Message) outbox.Outcome {
			return provider.Post(ctx, call.Request{URL: url, Key: m.ID, Body: m.Payload})
		},
		Settle: settle,
	}
}

// NewProvider is a client of that provider. Its documentation says what its refusals mean.
func NewProvider() (*call.Client, error) {
	return call.New(call.Config{Statuses: map[int]call.Class{
		400: call.Refused, 401: call.Unauthorized, 402: call.Declined, 403: call.Unauthorized, 404: call.Ambiguous,
		409: call.Ambiguous, 422: call.Unproven, 429: call.NotExecuted,
	}})
}

// Bank is a provider without idempotency keys. It can be asked what it did under a reference.
type Bank interface {
	// Send asks for a payout.
	Send(ctx context.Context, reference string, payload []byte) error
	// Find says whether there is a payout with the reference.
	Find(ctx context.Context, reference string) (bool, error)
}

// PayoutTopic pays out through the bank. A payout that may have happened is looked up, and never sent again unless it is proven
// that the bank has nothing.
func PayoutTopic(bank Bank) outbox.Topic {
	return outbox.Topic{
		Name:           TopicPayout,
		LongestRequest: 2 * time.Minute, // no request reaches the bank later than this
		ListingDelay:   time.Minute,     // a payout is found at the latest after this
		Call: func(ctx context.Context, m storage.Message) outbox.Outcome {
			if err := bank.Send(ctx, string(m.ID), m.Payload); err != nil {
				return outbox.Ambiguous{Cause: err}
			}
			return outbox.Delivered{Reference: string(m.ID)}
		},
		Probe: func(ctx context.Context, m storage.Message) outbox.Finding {
			switch found, err := bank.Find(ctx, string(m.ID)); {
			case err != nil:
				return outbox.Unclear{Cause: err}
			case found:
				return outbox.Found{Outcome: outbox.Delivered{Reference: string(m.ID)}}
			}
			return outbox.Absent{}
		},
		Settle: settle,
	}
}

// settle is what an outcome means here: a row, and the client's final answer. It computes, and calls nobody.
func settle(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	status, state := http.StatusCreated, "succeeded"
	if _, delivered := o.(outbox.Delivered); !delivered { // declined, or given up with nothing done
		status, state = http.StatusPaymentRequired, "failed"
	}
	response, err := idem.JSON(status, map[string]string{"payment": string(m.OperationID), "state": state})
	return outbox.Settlement{Writes: []idem.Write{row(m.OperationID, state)}, Response: response}, err
}

// row is the payment's row. On DynamoDB it would be a dynamo.Update.
func row(id idem.OperationID, state string) idem.Write {
	return memstore.Write{Key: "payment/" + string(id), Apply: func([]byte) []byte { return []byte(state) }}
}

// NewService serves POST /payments and POST /payouts, and the status of operations. With inline, the request calls the provider
// itself, and the client gets the final answer where there is time.
func NewService(engine *idem.Engine, store middleware.Messages, inline idem.InlineDelivery) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: protection.Identify})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /v1/operations/{id}", mw.Status(store))
	for path, topic := range map[string]string{"/payments": TopicCharge, "/payouts": TopicPayout} {
		operation := idem.Operation{Name: path[1:] + ".create", Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: inline}
		create, err := mw.Handle(operation, middleware.Route{}, accept(topic))
		if err != nil {
			return nil, err
		}
		mux.Handle("POST "+path, create)
	}
	return mux, nil
}

// accept writes the payment, asks for its effect, and answers 202.
func accept(topic string) middleware.Handler {
	return func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		var payment struct{ Amount int }
		if err := json.Unmarshal(r.Body, &payment); err != nil || payment.Amount <= 0 {
			return idem.JSON(http.StatusBadRequest, map[string]string{"error": "a payment has an amount"})
		}
		tx.Write(row(tx.OperationID(), "pending"))
		tx.Send(topic, r.Body)
		return idem.JSON(http.StatusAccepted, map[string]string{"payment": string(tx.OperationID()), "state": "pending"})
	}
}
