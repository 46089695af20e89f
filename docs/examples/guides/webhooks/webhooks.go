// Package webhooks is the program of docs/guides/webhooks.md: what a provider tells by webhook is taken once, as evidence about a
// message.
package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/idem/webhook"
)

// event is what the provider tells. Key is the downstream key of the call: a message's id.
type event struct {
	ID     string         `json:"id"`
	Type   string         `json:"type"`
	Key    idem.MessageID `json:"key"`
	Charge string         `json:"charge"`
	Amount int            `json:"amount"`
}

// errNoMessage: after a loss of data the event may be the only trace of a charge, so it is not acknowledged.
var errNoMessage = errors.New("there is no such message")

// New serves POST /webhooks/provider. In a function of package lambdaapp the logger is the application's, which counts what is wrong.
func New(verifier *webhook.Verifier, engine *idem.Engine, messages outbox.Messages, worker *outbox.Worker, logger *slog.Logger) (http.Handler, error) {
	// To settle twice does no harm, so nothing is locked meanwhile: optimistic, and safe to run again.
	operation := idem.Operation{Name: "webhooks.provider", Kind: idem.KindOptimistic, SafeToRunAgain: true, Policy: idem.IETF()}
	read, err := canonical.NewFields([]string{"/id", "/type", "/key", "/charge", "/amount"}, nil) // what is read of an event; the rest may change
	if err != nil {
		return nil, err
	}
	events, err := function.New(engine, operation, function.Config{Tenant: "provider", Key: function.JSONPointer("/id"), Fields: read})
	if err != nil {
		return nil, err
	}
	take := func(ctx context.Context, _ *idem.Tx, body []byte) ([]byte, error) {
		return nil, settle(ctx, messages, worker, logger, body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks/provider", func(w http.ResponseWriter, r *http.Request) {
		body, err := verifier.Read(r) // before anything is read or written
		if err == nil {
			_, err = events.Do(r.Context(), body, take)
		}
		w.WriteHeader(status(err))
		if err != nil {
			logger.WarnContext(r.Context(), "webhook", "error", err)
		}
	})
	return mux, nil
}

// settle does what the worker would have done with the same answer.
func settle(ctx context.Context, messages outbox.Messages, worker *outbox.Worker, logger *slog.Logger, body []byte) error {
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	var outcome outbox.Outcome
	switch e.Type {
	case "charge.succeeded":
		outcome = outbox.Delivered{Reference: e.Charge, Evidence: body}
	case "charge.declined":
		outcome = outbox.Declined{Reference: e.Charge, Evidence: body}
	default:
		return nil // nothing for this application
	}
	m, err := messages.Message(ctx, e.Key)
	if err == nil && m == nil {
		err = errNoMessage
	}
	if err != nil {
		return err
	}
	if m.Readable() && !m.Sealed { // else nobody can compare it, and the worker keeps what the event tells
		var sent struct{ Amount int }
		if err := json.Unmarshal(m.Payload, &sent); err != nil {
			return err // it contradicts nothing: the event comes again
		}
		if sent.Amount != e.Amount {
			logger.ErrorContext(ctx, metric.WebhookContradicts, "event", e.ID, "message", m.ID, "alarm", true)
			return nil // the same event would say the same again: a person looks at it
		}
	}
	_, err = worker.Settle(ctx, e.Key, outcome)
	return err
}

// status is what makes the provider stop, or send again.
func status(err error) int {
	switch {
	case err == nil:
		return http.StatusNoContent
	case errors.Is(err, webhook.ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, webhook.ErrSignature):
		return http.StatusUnauthorized
	}
	return http.StatusServiceUnavailable // not taken: send it again
}
