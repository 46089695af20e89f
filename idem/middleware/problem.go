package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
)

// The stable codes of problems that are not idempotency's own.
const (
	codeInvalid          = "request_invalid"        // 400
	codeUnauthorized     = "unauthorized"           // 401
	codeForbidden        = "forbidden"              // 403
	codeNotFound         = "not_found"              // 404
	codeMethodNotAllowed = "method_not_allowed"     // 405
	codeTooLarge         = "request_too_large"      // 413
	codeMediaType        = "unsupported_media_type" // 415
	codeInternal         = "internal_error"         // 500
)

const problemMediaType = "application/problem+json"

// refusal is a request's end before the engine was asked.
type refusal struct{ response idem.Response }

func refuse(status int, code, title, detail string) *refusal {
	return &refusal{idem.NewProblem(status, code, title, detail).Response()}
}

func (r *refusal) with(name, value string) *refusal { return &refusal{r.response.With(name, value)} }

// internalError tells nothing: details are the log's.
func internalError() *refusal {
	return refuse(http.StatusInternalServerError, codeInternal, "Internal Server Error", "The request failed.")
}

// failed answers an error of the engine.
func (c *call) failed(ctx context.Context, err error) answer {
	var malformed *canonical.SyntaxError
	switch {
	case errors.As(err, &malformed):
		return answer{response: invalidBody(malformed), status: c.unprotected}
	case errors.Is(err, canonical.ErrTooLarge):
		return answer{response: tooLarge().response, status: c.unprotected}
	}
	op := c.endpoint.operation.Operation()
	response, retryAfter := c.endpoint.m.failed(ctx, err, "operation", op.Name, "tenant", c.asked.Tenant, "key_hash", c.endpoint.operation.RecordKey(c.asked))
	return answer{response: response, retryAfter: retryAfter, status: c.unprotected}
}

// failed answers the error of a handler or of the store, and logs it with the attributes. A handler may pass on an error of the
// store's or the quota's, or a rejection: what it wraps is answered.
func (m *Middleware) failed(ctx context.Context, err error, attributes ...any) (idem.Response, time.Duration) {
	log := m.cfg.Logger.With(append(attributes, "error", err)...)
	cause := err
	var handler *idem.HandlerError
	if errors.As(err, &handler) {
		cause = handler.Cause
	}
	problem, retryAfter, ok := idem.ProblemOf(cause)
	if over := (*idem.QuotaError)(nil); errors.As(cause, &over) {
		log = log.With("limit", over.Limit)
	}
	switch {
	case ok:
		logProblem(ctx, log, problem.Code)
		return problem.Response(), retryAfter
	case handler != nil && len(handler.Stack) > 0:
		log.ErrorContext(ctx, "handler panicked", "stack", string(handler.Stack))
	default:
		log.ErrorContext(ctx, "request failed")
	}
	return internalError().response, 0
}

// logProblem says what an operator should know of.
func logProblem(ctx context.Context, log *slog.Logger, code string) {
	switch code {
	case header.CodeNoTime:
		log.ErrorContext(ctx, "no time left before the deadline")
	case header.CodeStoreUnavailable:
		log.ErrorContext(ctx, "store unavailable")
	case header.CodeResponseTooLarge:
		log.ErrorContext(ctx, "response too large")
	case header.CodeRefusedBefore:
		log.WarnContext(ctx, "key not proven to be younger than a loss of records")
	case header.CodeQuotaExceeded:
		log.WarnContext(ctx, "quota used up")
	case header.CodeResponseErased:
		log.WarnContext(ctx, "stored response erased")
	}
}

// guard answers 500 where a request panics outside of its handler, whose panics the engine takes care of.
func (m *Middleware) guard(r *http.Request, serve func() answer) (a answer) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler { //nolint:errorlint // the value of a panic, as net/http compares it
			panic(p)
		}
		m.cfg.Logger.ErrorContext(r.Context(), "request panicked", "error", fmt.Sprint(p), "stack", string(debug.Stack()))
		a = answer{response: internalError().response}
	}()
	return serve()
}

// Problems serves the mux, with its own 404 and 405 as problem documents; a 405 keeps its Allow. A path that is not in its
// shortest form ("//", "/./", "/../") is 404 too: the mux would redirect it, and a POST with it.
func Problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !shortest(r.URL.EscapedPath()) {
			write(w, answer{response: nothingHere().Response()})
			return
		}
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := &recorder{header: http.Header{}}
		h.ServeHTTP(refused, r)
		problem := nothingHere()
		if refused.status == http.StatusMethodNotAllowed {
			problem = idem.NewProblem(http.StatusMethodNotAllowed, codeMethodNotAllowed, "Method Not Allowed", "The resource does not have this method.")
			w.Header()["Allow"] = refused.header["Allow"]
		}
		write(w, answer{response: problem.Response()})
	})
}

func nothingHere() idem.Problem {
	return idem.NewProblem(http.StatusNotFound, codeNotFound, "Not Found", "There is nothing at this path.")
}

// shortest says whether a path has no segment that is empty or a dot, but for the end of one that ends in "/".
func shortest(p string) bool {
	return p == "*" || path.Clean(p) == strings.TrimSuffix(p, "/") || p == "/"
}
