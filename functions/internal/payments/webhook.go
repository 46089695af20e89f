package payments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/idem/webhook"
)

// SignatureHeader is the header by which the provider signs.
const SignatureHeader = "Provider-Signature"

// WebhookPath is where the provider's webhooks come in.
const WebhookPath = "/v1/webhooks/provider"

// What the provider's events are taken by: each once, under its id. Redeliveries end long before the retention does.
const (
	webhookPattern    = "POST " + WebhookPath
	operationWebhooks = "webhooks.provider"
	webhookTenant     = "provider"
	webhookRetention  = 7 * 24 * time.Hour
)

// WebhookConfig is what the provider's webhooks need; all of it is required but for the logger.
type WebhookConfig struct {
	// Verifier tells the provider's webhooks from anybody else's.
	Verifier *webhook.Verifier
	// Engine remembers the events.
	Engine   *idem.Engine
	Messages outbox.Messages
	Worker   *outbox.Worker
	Logger   *slog.Logger
}

// webhooks take what the provider tells by itself, and settle what it is about as the worker would have.
type webhooks struct {
	cfg    WebhookConfig
	events *function.Function
}

// NewWebhook returns the endpoint of the provider's webhooks, or a [*idem.ConfigError].
func NewWebhook(cfg WebhookConfig) (http.Handler, error) {
	if cfg.Verifier == nil || cfg.Messages == nil || cfg.Worker == nil {
		return nil, &idem.ConfigError{Field: "WebhookConfig", Value: nil, Rule: "Verifier, Messages and Worker must be given"}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	events, err := function.New(cfg.Engine, webhookOperation(), function.Config{
		Tenant: webhookTenant, Key: function.JSONPointer("/id"), Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(webhookPattern, &webhooks{cfg: cfg, events: events})
	return guarded(middleware.Problems(mux)), nil
}

// webhookOperation is optimistic although a settlement is a transaction of its own: to settle again does no harm, so that
// nothing needs to be locked meanwhile. A delivery that dies leaves nothing behind, and none finds another in its way. After a
// loss of records the events are evidence of what was lost, so they are taken, however old they are.
func webhookOperation() idem.Operation {
	policy := idem.IETF()
	policy.Name, policy.Retention = "webhook", webhookRetention
	return idem.Operation{Name: operationWebhooks, Kind: idem.KindOptimistic, SafeToRunAgain: true, Policy: policy}
}

func webhookRoute() middleware.RouteInfo {
	op := webhookOperation()
	return middleware.RouteInfo{Pattern: webhookPattern, Operation: op.Name, Kind: op.Kind, Policy: op.Policy, Unsafe: true}
}

// ServeHTTP implements http.Handler.
func (h *webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response := h.receive(r)
	for _, field := range response.Header {
		w.Header().Set(field.Name, field.Value)
	}
	w.WriteHeader(response.Status)
	// A provider that has gone sends again.
	_, _ = w.Write(response.Body)
}

// receive answers one delivery. Nothing is read or written before the signature is known to be the provider's.
func (h *webhooks) receive(r *http.Request) idem.Response {
	ctx := r.Context()
	body, err := h.cfg.Verifier.Read(r)
	switch {
	case errors.Is(err, webhook.ErrTooLarge):
		return idem.NewProblem(http.StatusRequestEntityTooLarge, "request_too_large", "Request too large", "The request body is too large.").Response()
	case errors.Is(err, webhook.ErrSignature):
		h.cfg.Logger.WarnContext(ctx, "webhook.refused", "error", err)
		return idem.NewProblem(http.StatusUnauthorized, "webhook_signature_invalid", "Signature invalid",
			"The webhook is not signed as the provider signs, or not lately.").Response().With("WWW-Authenticate", SignatureHeader)
	}
	var e event
	if err == nil {
		e, err = eventIn(body)
	}
	if err == nil {
		err = h.once(ctx, e, body)
	}
	if err != nil {
		return h.failed(ctx, err)
	}
	return idem.Response{Status: http.StatusNoContent}
}

// errOrphan: the event tells of a message that is not there. After a loss of data it may be the only trace of an effect, so it
// is not remembered as taken: the provider keeps it, and sends it again.
var errOrphan = errors.New("payments: webhook: there is no such message")

// failed answers what the provider is to send again: nothing of it is marked as done. What this application could not do counts as failed,
// because that may be a release's fault. So does a body that it can't read: whoever signed it is the provider. What is about no message
// is no release's fault.
func (h *webhooks) failed(ctx context.Context, err error) idem.Response {
	line := metric.WebhookFailed
	var response idem.Response
	switch {
	case errors.Is(err, errNoEvent), errors.As(err, new(*canonical.SyntaxError)):
		response = idem.NewProblem(http.StatusBadRequest, "request_invalid", "Invalid request", "The request body is no event.").Response()
	case errors.Is(err, errOrphan):
		line, response = "webhook.untaken", idem.NewProblem(http.StatusNotFound, "message_unknown", "Message Unknown",
			"There is no message of that key. Nothing was acknowledged: send the webhook again later.").Response()
	default:
		response = unavailable(err)
	}
	h.cfg.Logger.ErrorContext(ctx, line, "error", err)
	return response
}

func unavailable(err error) idem.Response {
	wait := time.Second
	if down := (*idem.UnavailableError)(nil); errors.As(err, &down) {
		wait = down.RetryAfter
	}
	return idem.NewProblem(http.StatusServiceUnavailable, header.CodeStoreUnavailable, "Service Unavailable",
		"Nothing was acknowledged. Send the webhook again after Retry-After.").Response().With(header.NameRetryAfter, header.FormatRetryAfter(wait))
}

// once settles what the event tells, unless that was done. An id that comes again with another body is the provider's
// mistake: what it tells then is evidence like any other.
func (h *webhooks) once(ctx context.Context, e event, body []byte) error {
	_, err := h.events.Do(ctx, body, func(ctx context.Context, _ *idem.Tx, _ []byte) ([]byte, error) {
		return nil, h.settle(ctx, e)
	})
	if errors.Is(err, function.ErrMismatch) {
		h.alarm(ctx, e, "its id was another event's before")
		return h.settle(ctx, e)
	}
	return err
}

// settle ends the message that the event is about. What is not for this application is done with, and so is what
// contradicts what was asked for: that is a person's business, and settles nothing.
func (h *webhooks) settle(ctx context.Context, e event) error {
	topics, id := e.announced(), e.message()
	if topics == nil {
		h.ignore(ctx, e, "its type is not known here")
		return nil
	}
	if id == "" {
		h.ignore(ctx, e, "its key is no message's")
		return nil
	}
	outcome, about, err := e.outcome()
	if err != nil {
		h.alarm(ctx, e, "its object can't be what it tells of")
		return nil
	}
	m, err := h.cfg.Messages.Message(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("payments: webhook: %w", err)
	case m == nil: // the reconciler tells of it
	case m.Readable() && !m.Sealed: // else the reconciler knows what to do
		asked, err := askedFor(*m)
		if err != nil {
			return err
		}
		if !slices.Contains(topics, m.Topic) {
			h.ignore(ctx, e, "the message asks for another kind of effect")
			return nil
		}
		if about.contradicts(asked) {
			h.alarm(ctx, e, "another amount was asked for")
			return nil
		}
	}
	decision, err := h.cfg.Worker.Settle(ctx, id, outcome)
	switch {
	case err != nil:
		return err
	case decision == outbox.DecisionOrphan:
		return errOrphan
	}
	h.cfg.Logger.InfoContext(ctx, "webhook.received", "event", e.ID, "type", e.Type, "message", id, "decision", decision)
	return nil
}

func (h *webhooks) ignore(ctx context.Context, e event, reason string) {
	h.cfg.Logger.WarnContext(ctx, "webhook.ignored", "event", e.ID, "type", e.Type, "message", e.message(), "reason", reason)
}

// alarm writes a line that needs an operator.
func (h *webhooks) alarm(ctx context.Context, e event, reason string) {
	h.cfg.Logger.ErrorContext(ctx, "webhook.contradicts", "event", e.ID, "type", e.Type, "message", e.message(), "reason", reason, "alarm", true)
}
