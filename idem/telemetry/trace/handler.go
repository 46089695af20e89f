package trace

import (
	"net/http"
)

// Names of spans and attributes that Handler makes. Those that begin with "http" are OpenTelemetry's own.
const (
	spanRequest       = "idem.request"
	attributeMethod   = "http.request.method"
	attributeRoute    = "http.route"
	attributeCode     = "http.response.status_code"
	attributeStatus   = "idem.status"
	attributeReplayed = "idem.replayed"
)

// Handler records a span "idem.request" for each request that next serves, refused ones too. The span is the child of the span
// that the request's context carries, else of the request's traceparent, else the first of a new trace. The engine adds what
// became of the request. A nil tracer records nothing: next is returned.
//
// It comes first, before authentication. A client chooses by its traceparent in which trace it is recorded, and by the
// sampled flag whether: a tracer that must not obey unknown clients ignores that flag.
func Handler(tracer Tracer, next http.Handler) http.Handler {
	if tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := Begin(r.Context(), tracer, spanRequest, Options{Kind: Server, Parent: FromHeader(r.Header), Weak: true})
		answer := &watched{ResponseWriter: w}
		r = r.WithContext(ctx)
		panicked := true
		defer func() { answer.tell(span, r, panicked) }()
		next.ServeHTTP(answer, r)
		panicked = false
	})
}

// watched keeps the status of an answer.
type watched struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(status int) {
	if w.status < http.StatusOK { // an informational one is not the last
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher, for handlers that stream.
func (w *watched) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// tell ends the span with what can be seen of the answer.
func (w *watched) tell(span *Span, r *http.Request, panicked bool) {
	status := w.status
	switch {
	case status == 0 && panicked:
		status = http.StatusInternalServerError
	case status == 0:
		status = http.StatusOK
	}
	span.Set(Attribute{attributeMethod, methodOf(r)}, Attribute{attributeCode, status})
	if r.Pattern != "" {
		span.Set(Attribute{attributeRoute, r.Pattern})
	}
	if idempotency := w.Header().Get("Idempotency-Status"); idempotency != "" {
		span.Set(Attribute{attributeStatus, idempotency}, Attribute{attributeReplayed, w.Header().Get("Idempotent-Replayed") == "true"})
	}
	if status >= http.StatusInternalServerError {
		span.Fail(http.StatusText(status))
	}
	span.End()
}

// methodOf is a method that is registered, or "_OTHER": a client may send any.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect,
		http.MethodOptions, http.MethodTrace:
		return r.Method
	}
	return "_OTHER"
}
