package middleware

import (
	"context"
	"fmt"
	"mime"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
)

// Route says how the requests of an endpoint are read, and which parts the fingerprint leaves out.
//
// The zero value leaves nothing out: a key that is sent again with another method, path, query or body is a mismatch.
// Each record keeps the selection that its fingerprint was made under, so that a release may change any of these fields
// and retries of earlier requests still replay.
type Route struct {
	// PathByWildcards counts the values of the matched pattern's wildcards (http.Request.Pattern) in place of the whole
	// path, so that the fixed parts of the path may change. The endpoint must then be served at one pattern only. A [Router]
	// sees to that, and always counts the wildcards.
	PathByWildcards bool
	// PathParams returns the path's parameters by name, for routers other than http.ServeMux. It runs after the routing and
	// makes the parameters count in place of the whole path; the endpoint must then be served at one route only. A parameter
	// without a value, or no parameter at all, is answered with 500 and a line in the log: nothing runs.
	PathParams func(*http.Request) map[string]string
	// IgnorePath names path parameters that do not count, such as a locale. Outside of a [Router] it implies PathByWildcards
	// unless there are PathParams. A parameter that the pattern does not have is a [*idem.ConfigError] in a Router; elsewhere it
	// is answered with 500 and a line in the log. Default: all count.
	IgnorePath []string
	// IgnoreQuery names query parameters that do not count; "trace_*" names all that begin with "trace_". Default: all
	// count.
	IgnoreQuery []string
	// IgnoreTracking leaves out the query parameters that advertising and mailing systems add to links, such as utm_*:
	// those that [canonical.Tracking] lists.
	IgnoreTracking bool
	// Fields picks the fields of a JSON body that count. Default: the whole body.
	Fields *canonical.Fields
	// MediaTypes lists the media types that are accepted, without parameters; others get 415, and "*/*" accepts all, none
	// included. Default: application/json for Handle, "*/*" for Wrap.
	MediaTypes []string
	// Validate returns the problem with a request, nil for none. A request that fails is looked up first. If an earlier
	// request with the same key and fingerprint was executed, its answer is replayed; else the request gets the problem,
	// and nothing is reserved or stored.
	Validate func(*Request) *idem.Problem
	// OnReplay returns headers for a replay besides the stored ones: a trace id, a deprecation. It cannot change the
	// replay's status, body or stored headers, nor add headers that would change their meaning: those are dropped, with a
	// line in the log. It runs after the caller was authorised; its error or panic leaves the replay as it is.
	// Default: no headers are added.
	OnReplay func(ctx context.Context, r *Request, replay Replay) (http.Header, error)
}

const anyMediaType = "*/*"

func (r Route) withDefault(mediaType string) (Route, error) {
	if len(r.MediaTypes) == 0 {
		r.MediaTypes = []string{mediaType}
	}
	for _, accepted := range r.MediaTypes {
		if parsed, params, err := mime.ParseMediaType(accepted); err != nil || parsed != accepted || len(params) > 0 {
			return r, &idem.ConfigError{Field: "Route.MediaTypes", Value: accepted, Rule: "must be a media type in lower case, without parameters"}
		}
	}
	return r, nil
}

// Handler is a transactional handler: an [idem.Handler] that is given its request.
type Handler func(ctx context.Context, tx *idem.Tx, r *Request) (idem.Response, error)

// Handle registers an atomic, optimistic or deferred operation and returns its endpoint. Requests without protection, by
// policy or by their method, run in a transaction of their own, under a key that is used once. It returns an
// [*idem.ConfigError].
func (m *Middleware) Handle(op idem.Operation, route Route, h Handler) (http.Handler, error) {
	return m.handle(op, route, "", h)
}

// handle is Handle for an endpoint at a router's pattern, "" for none.
func (m *Middleware) handle(op idem.Operation, route Route, pattern string, h Handler) (http.Handler, error) {
	if op.Kind == idem.KindWrapped {
		return nil, &idem.ConfigError{Field: "Operation.Kind", Value: op.Kind, Rule: "is for Wrap: Handle's handlers write through their transaction"}
	}
	if h == nil {
		return nil, &idem.ConfigError{Field: "Handler", Value: nil, Rule: "must be given"}
	}
	e, err := m.register(op, route, pattern, "application/json")
	if err != nil {
		return nil, err
	}
	e.execute = func(c *call) idem.Handler { return c.transact(h) }
	return e, nil
}

// Wrap registers an existing handler, which writes for itself, as a wrapped operation and returns its endpoint. Its
// response is buffered, and so recorded: http.Flusher and http.Hijacker are not offered. A panic of the handler, or an
// answer that the policy does not store, makes the record unknown unless the operation or the handler declared otherwise:
// Operation.ReleaseOn, Operation.SafeToRunAgain, [idem.NothingHappened]. Requests without protection, by policy or by
// their method, pass through untouched once they are authenticated. An empty kind means wrapped; it returns an
// [*idem.ConfigError] for any other.
func (m *Middleware) Wrap(op idem.Operation, route Route, h http.Handler) (http.Handler, error) {
	return m.wrap(op, route, "", h)
}

// wrap is Wrap for an endpoint at a router's pattern, "" for none.
func (m *Middleware) wrap(op idem.Operation, route Route, pattern string, h http.Handler) (http.Handler, error) {
	if h == nil {
		return nil, &idem.ConfigError{Field: "http.Handler", Value: nil, Rule: "must be given"}
	}
	e, err := m.wrapped(op, route, pattern)
	if err != nil {
		return nil, err
	}
	return e.around(h), nil
}

// wrapped registers an operation whose handlers write for themselves. The endpoint has no handler yet.
func (m *Middleware) wrapped(op idem.Operation, route Route, pattern string) (*endpoint, error) {
	if op.Kind == "" {
		op.Kind = idem.KindWrapped
	}
	if op.Kind != idem.KindWrapped {
		return nil, &idem.ConfigError{Field: "Operation.Kind", Value: op.Kind, Rule: fmt.Sprintf("must be %s: a wrapped handler has no transaction", idem.KindWrapped)}
	}
	return m.register(op, route, pattern, anyMediaType)
}

// Middleware registers a wrapped operation, once, and returns a middleware that protects handlers that write for
// themselves as [Middleware.Wrap] does. It is for chi, echo, gin, http.ServeMux and any other router that takes a
// func(http.Handler) http.Handler. It may be called any number of times, also for each request (echo.WrapMiddleware
// does), and by several requests at once. The handler must have written its answer when it returns: one that has written
// nothing has answered an empty 200, as in net/http, and that is stored. A framework whose handlers return errors, such as
// echo, has to answer them inside of the protection. Where the route has PathParams or PathByWildcards, it belongs behind the
// router's own matching: in chi r.With, not r.Use.
//
// The protected handlers should be those of one route. If they belong to several routes, a key that is sent to another
// one of them is a mismatch, because method and path are part of the fingerprint, unless the route leaves the path out.
// It returns an [*idem.ConfigError].
func (m *Middleware) Middleware(op idem.Operation, route Route) (func(http.Handler) http.Handler, error) {
	registered, err := m.wrapped(op, route, "")
	if err != nil {
		return nil, err
	}
	return registered.around, nil
}

// around is the endpoint in front of the handler.
func (e *endpoint) around(h http.Handler) http.Handler {
	protected := *e
	protected.passThrough = h
	protected.execute = func(c *call) idem.Handler { return c.record(h) }
	return &protected
}

func (m *Middleware) register(op idem.Operation, route Route, pattern, mediaType string) (*endpoint, error) {
	route, err := route.withDefault(mediaType)
	if err != nil {
		return nil, err
	}
	e := &endpoint{m: m, route: route}
	if err := e.selects(pattern); err != nil {
		return nil, err
	}
	if op.Policy.ExemptReason != "" && op.Policy.Retention == 0 {
		op.Policy.Retention = idem.RetentionMin // of the one-off records, which nobody can ask for
	}
	if e.operation, err = m.engine.Register(op); err != nil {
		return nil, err
	}
	e.policy = op.Policy
	return e, nil
}

// Read returns the endpoint of a safe method: it authenticates, ignores a key and says so, and answers in the forms that
// the protected endpoints have. The handler returns a response, an [*idem.RejectedError], an [*idem.UnavailableError] for
// 503, or any other error for 500. The request's body is not read.
func (m *Middleware) Read(h func(ctx context.Context, r *Request) (idem.Response, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.write(w, m.guard(r, func() answer {
			identity, refused := m.identify(r)
			if refused != nil {
				return answer{response: refused.response}
			}
			a := answer{status: ignored(r)}
			response, err := h(r.Context(), &Request{HTTP: r, Identity: identity})
			if err == nil && (response.Status < 200 || response.Status > 599) {
				err = fmt.Errorf("middleware: a handler answered with status %d", response.Status)
			}
			if err != nil {
				response, a.retryAfter = m.failed(r.Context(), err, "method", r.Method, "pattern", r.Pattern)
			}
			a.response = response
			return a
		}))
	})
}
