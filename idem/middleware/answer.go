package middleware

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// answer is what goes onto the wire.
type answer struct {
	response idem.Response
	// status is the Idempotency-Status; "" where idempotency was never asked.
	status   string
	replayed bool
	// expires is when the key may be reused, where that is known.
	expires time.Time
	// retryAfter and location go to answers that are not final.
	retryAfter time.Duration
	location   string
}

// answer translates what became of the request.
func (c *call) answer(ctx context.Context, result *idem.Result) answer {
	a := answer{status: string(result.Outcome), retryAfter: result.RetryAfter}
	switch result.Outcome {
	case idem.OutcomeExecuted, idem.OutcomeReplayed:
		a.replayed = result.Outcome == idem.OutcomeReplayed
		if result.State == storage.StateUnknown { // the handler's own answer, of which nobody knows what it did
			a.status = string(idem.OutcomeUnknown)
		}
		a.response = c.respond(result)
		if result.State.Final() {
			a.expires = result.ExpiresAt
		}
		if result.State == storage.StatePending {
			a.location = c.endpoint.location(result.OperationID)
		}
	case idem.OutcomeInProgress:
		a.response, a.location = c.inFlight(result)
	case idem.OutcomeMismatch:
		c.log().WarnContext(ctx, "key misuse: the key belongs to another request", "differing", differing(result.Differing))
		a.response = c.mismatch()
	case idem.OutcomeUnknown:
		a.response = idem.NewProblem(http.StatusConflict, header.CodeOutcomeUnknown, "Outcome unknown",
			"An earlier request with this key may or may not have been executed. "+whoDecides(c.endpoint.operation.Operation(), result)+" The request is not executed again.").Response()
	}
	if c.oneOff {
		return a.without(c.unprotected)
	}
	return a
}

// whoDecides says who finds out what became of the earlier request.
func whoDecides(op idem.Operation, result *idem.Result) string {
	switch {
	case result.OnlyObserved:
		return "It came before this API was protected, and only the API's operator can find out."
	case op.Probed:
		return "It is being resolved."
	}
	return "It waits for the API's operator."
}

// without is the answer of an execution that nobody can come back to, with the Idempotency-Status that goes with it.
func (a answer) without(status string) answer {
	a.status, a.replayed, a.expires = status, false, time.Time{}
	return a
}

func (e *endpoint) location(id idem.OperationID) string { return e.m.cfg.OperationsPath + string(id) }

// respond is the stored response, and on a first execution the headers that are not stored too.
func (c *call) respond(result *idem.Result) idem.Response {
	response := result.Response
	first := result.Outcome == idem.OutcomeExecuted && response.Status == c.made.status && bytes.Equal(response.Body, c.made.body)
	switch {
	case first && c.made.truncated: // and not stored by its status, which alone does not say whether the request was executed
		return refuse(http.StatusInternalServerError, codeInternal, "Internal Server Error",
			"The answer is too large to be passed on. Send the request again with the same Idempotency-Key.").response
	case first:
		response.Header = append(slices.Clone(response.Header), c.made.unstored...)
	default:
		response.Header = c.endpoint.allowed(response.Header)
	}
	return response
}

// allowed are the headers that the policy stores and replays.
func (e *endpoint) allowed(fields []idem.Field) []idem.Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f idem.Field) bool { return !e.policy.Replays(f.Name) })
}

// accepted is the body of a 202 that stands for another request's execution.
type accepted struct {
	Operation idem.OperationID `json:"operation"`
	State     storage.State    `json:"state"`
}

// accepts says that a duplicate of a request that runs is answered 202.
func (c *call) accepts(result *idem.Result) bool {
	return result.Outcome == idem.OutcomeInProgress && c.endpoint.policy.InFlight == idem.InFlightAccepted && result.OperationID != ""
}

func (c *call) inFlight(result *idem.Result) (idem.Response, string) {
	if c.accepts(result) {
		if response, err := idem.JSON(http.StatusAccepted, accepted{result.OperationID, storage.StateInProgress}); err == nil {
			return response, c.endpoint.location(result.OperationID)
		}
	}
	return idem.NewProblem(http.StatusConflict, c.endpoint.inFlightCode(), "Request in progress",
		"A request with this Idempotency-Key is in progress. Send it again after Retry-After.").Response(), ""
}

// differing names what differs, for the log.
func differing(parts []canonical.Part) string {
	names := make([]string, len(parts))
	for i, part := range parts {
		names[i] = part.String()
	}
	return strings.Join(names, ", ")
}

func (e *endpoint) inFlightCode() string {
	if e.policy.InFlight == idem.InFlightInUse {
		return header.CodeInUse
	}
	return header.CodeInProgress
}

func (c *call) mismatch() idem.Response {
	const title, detail = "Idempotency-Key reused", "This Idempotency-Key was used before, with another request."
	if c.endpoint.policy.Mismatch == idem.Mismatch400 {
		return idem.NewProblem(http.StatusBadRequest, header.CodeError, title, detail).Response()
	}
	return idem.NewProblem(http.StatusUnprocessableEntity, header.CodeKeyReused, title, detail).Response()
}

// log shows the record's key in place of the client's: a hash.
func (c *call) log() *slog.Logger {
	operation := c.endpoint.operation
	return c.endpoint.m.cfg.Logger.With("operation", operation.Operation().Name, "tenant", c.asked.Tenant, "key_hash", operation.RecordKey(c.asked))
}

// retryAfterDefault is for answers whose source names no other time.
const retryAfterDefault = time.Second

// write puts an answer onto the wire, with the link to the documentation.
func (m *Middleware) write(w http.ResponseWriter, a answer) {
	if m.cfg.DocsURL != "" {
		w.Header().Add("Link", "<"+m.cfg.DocsURL+`>; rel="describedby"`)
	}
	write(w, a)
}

// write puts an answer onto the wire. Nothing of it was written before.
func write(w http.ResponseWriter, a answer) {
	h := w.Header()
	guardProblem(h, a.response)
	for _, f := range a.response.Header {
		if single(f.Name) {
			h.Del(f.Name)
		}
	}
	for _, f := range a.response.Header {
		h.Add(f.Name, f.Value)
	}
	for _, name := range []string{header.NameReplayed, header.NameStatus, header.NameExpires} {
		h.Del(name) // a handler must not set these headers
	}
	if a.status != "" {
		h.Set(header.NameStatus, a.status)
	}
	if a.replayed {
		h.Set(header.NameReplayed, "true")
	}
	if !a.expires.IsZero() {
		h.Set(header.NameExpires, header.FormatExpires(a.expires))
	}
	if a.location != "" {
		h.Set("Location", a.location)
	}
	setRetryAfter(h, a)
	if !bodyless(a.response.Status) {
		h.Set("Content-Length", strconv.Itoa(len(a.response.Body)))
	}
	w.WriteHeader(a.response.Status)
	if len(a.response.Body) > 0 && !bodyless(a.response.Status) {
		// A client that has hung up changes nothing: the answer is stored.
		_, _ = w.Write(a.response.Body)
	}
}

// singles are the headers of which a second line would contradict the first, besides those that are named Content-: the answer's own stands
// in place of one that was set in front of the protection, as it would if the handler had set it there.
var singles = []string{
	"Access-Control-Allow-Credentials", "Access-Control-Allow-Origin", "Cache-Control", "Etag", "Expires", "Last-Modified", "Location",
	"Strict-Transport-Security", "X-Content-Type-Options", "X-Frame-Options",
}

func single(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return strings.HasPrefix(name, "Content-") || slices.Contains(singles, name)
}

// guardProblem keeps problems out of caches, and from being taken for what they are not, unless the response says otherwise
// itself.
func guardProblem(h http.Header, r idem.Response) {
	if r.Get("Content-Type") != problemMediaType {
		return
	}
	for _, guard := range [...]idem.Field{{Name: "Cache-Control", Value: "no-store"}, {Name: "X-Content-Type-Options", Value: "nosniff"}} {
		if r.Get(guard.Name) == "" && h.Get(guard.Name) == "" {
			h.Set(guard.Name, guard.Value)
		}
	}
}

// setRetryAfter: every 202, 409 and 503 carries one, and a 429 of the quota's.
func setRetryAfter(h http.Header, a answer) {
	switch a.response.Status {
	case http.StatusAccepted, http.StatusConflict, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if a.response.Status == http.StatusTooManyRequests && a.retryAfter == 0 {
			return // a handler's own
		}
		if a.retryAfter > 0 {
			h.Set(header.NameRetryAfter, header.FormatRetryAfter(a.retryAfter))
		} else if h.Get(header.NameRetryAfter) == "" {
			h.Set(header.NameRetryAfter, header.FormatRetryAfter(retryAfterDefault))
		}
	}
}
