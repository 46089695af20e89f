package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Router registers endpoints by the patterns of http.ServeMux, and knows all of them: a route that admits POST or PATCH
// and has no policy fails start-up. [Router.Handler] returns the errors of all registrations, so that registrations read
// as a table. It is not safe for concurrent use before everything is registered.
type Router struct {
	m      *Middleware
	mux    *http.ServeMux
	routes []RouteInfo
	errs   []error
	mounts []mount
}

// mount is a handler that was registered as it is. open says that its pattern needs no key and admits unsafe requests to more
// than one path.
type mount struct {
	handler         http.Handler
	pattern         string
	protected, open bool
}

// RouteInfo is one route, for an audit.
type RouteInfo struct {
	// Pattern is the pattern that the route was registered with.
	Pattern string
	// Operation is the operation's name, RenamedFrom the first one that it was released under, if that is another. Both are
	// empty for routes without an operation: reads, and methods that are idempotent by themselves.
	Operation, RenamedFrom string
	// Kind is the operation's kind; empty for routes without an operation.
	Kind idem.Kind
	// Policy is the operation's; of an exempt route its ExemptReason alone.
	Policy idem.Policy
	// Unsafe says that the route admits POST or PATCH, and so needs a policy.
	Unsafe bool
}

// Retention is how long a final record answers; 0 for routes without records.
func (r RouteInfo) Retention() time.Duration {
	if r.Policy.ExemptReason != "" {
		return 0
	}
	return r.Policy.Retention
}

// NewRouter returns a router without routes.
func (m *Middleware) NewRouter() *Router { return &Router{m: m, mux: http.NewServeMux()} }

// Handle registers a transactional handler as [Middleware.Handle] does. The fingerprint includes what the wildcards of the
// pattern stand for, in place of the whole path, unless the pattern ends in "/": the fixed parts of the path may change.
func (r *Router) Handle(pattern string, op idem.Operation, route Route, h Handler) {
	r.operation(pattern, op, func() (http.Handler, error) { return r.m.handle(op, route, pattern, h) })
}

// Wrap registers an existing handler as [Middleware.Wrap] does; its path counts as with [Router.Handle]. A router that is
// wrapped may not be at an exempt pattern with a wildcard, too: it might read a path there as a protected one.
func (r *Router) Wrap(pattern string, op idem.Operation, route Route, h http.Handler) {
	if op.Kind == "" {
		op.Kind = idem.KindWrapped
	}
	r.operation(pattern, op, func() (http.Handler, error) { return r.m.wrap(op, route, pattern, h) })
	r.mount(pattern, op.Policy.ExemptReason == "", h)
}

// Read registers what [Middleware.Read] makes of the handler, for a pattern with the method GET.
func (r *Router) Read(pattern string, h func(ctx context.Context, r *Request) (idem.Response, error)) {
	if method(pattern) != http.MethodGet {
		r.fail("pattern", pattern, "must begin with GET: Read is for safe methods")
		return
	}
	r.add(RouteInfo{Pattern: pattern}, r.m.Read(h))
}

// Status registers the endpoint of [Middleware.Status] at the path that the Location of a 202 names.
func (r *Router) Status(messages Messages) {
	r.add(RouteInfo{Pattern: http.MethodGet + " " + r.m.cfg.OperationsPath + "{id}"}, r.m.Status(messages))
}

// Idempotent registers a handler as it is, unauthenticated, for a pattern whose method is idempotent by itself
// (RFC 9110 section 9.2.2) and so never needs a key.
func (r *Router) Idempotent(pattern string, h http.Handler) {
	if !slices.Contains(idempotent, method(pattern)) {
		r.fail("pattern", pattern, fmt.Sprintf("must begin with one of %q: an unsafe route needs a policy, idem.Exempt(reason) where it needs no protection", idempotent))
		return
	}
	r.add(RouteInfo{Pattern: pattern}, h)
}

// Exempt registers a handler of an unsafe route as it is, unauthenticated, with the reason why it needs no protection: a
// webhook that knows its callers by their signature and its events by their ids. An exempt route of authenticated callers
// is an operation with the policy [idem.Exempt].
func (r *Router) Exempt(pattern, reason string, h http.Handler) {
	if strings.TrimSpace(reason) == "" {
		r.fail("reason", fmt.Sprintf("%q", reason), "must say why "+pattern+" needs no protection")
		return
	}
	r.add(RouteInfo{Pattern: pattern, Policy: idem.Exempt(reason), Unsafe: admitsUnsafe(pattern)}, h)
	r.mount(pattern, false, h)
}

// mount refuses a handler that is behind the protection and in front of it. Such a handler is a router, and routers don't read
// every path alike: gin takes /orders/17%2Fpay for /orders/17/pay, and http.ServeMux has served it at the exempt pattern
// "/". Functions can't be compared, and are no routers as a rule.
func (r *Router) mount(pattern string, protected bool, h http.Handler) {
	if h == nil || !reflect.TypeOf(h).Comparable() {
		return
	}
	added := mount{h, pattern, protected, !protected && admitsUnsafe(pattern) && severalPaths(pattern)}
	for _, m := range r.mounts {
		if m.handler == h && (m.protected && added.open || m.open && protected) {
			r.fail("http.Handler", pattern, "must not be the handler of "+m.pattern+
				", too: a path that a wildcard without protection admits may be a protected one for the handler. Give what is protected a router of its own")
		}
	}
	r.mounts = append(r.mounts, added)
}

// severalPaths says whether the pattern matches more than one path.
func severalPaths(pattern string) bool {
	return strings.HasSuffix(pattern, "/") || strings.Contains(strings.TrimSuffix(pattern, "{$}"), "{")
}

// Handler returns all routes as one handler, with its own 404 and 405 as [Problems] has them, or every [*idem.ConfigError]
// that the registrations led to. Nothing may be registered after it.
func (r *Router) Handler() (http.Handler, error) {
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return Problems(r.mux), nil
}

// ServeHTTP implements http.Handler with what [Router.Handler] returns. Where a registration was refused it serves no
// route at all: every request gets 500, and the log has the reason.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h, err := r.Handler()
	if err != nil {
		r.m.cfg.Logger.ErrorContext(req.Context(), "the router was not registered: nothing runs", "error", err)
		r.m.write(w, answer{response: internalError().response})
		return
	}
	h.ServeHTTP(w, req)
}

// Routes lists the routes in the order of their registration.
func (r *Router) Routes() []RouteInfo { return slices.Clone(r.routes) }

func (r *Router) operation(pattern string, op idem.Operation, endpoint func() (http.Handler, error)) {
	if policyless(op.Policy) && admitsUnsafe(pattern) {
		r.fail("Operation.Policy", "none", fmt.Sprintf("must be given for %s: it admits POST or PATCH; idem.Exempt(reason) where it needs no protection", pattern))
		return
	}
	h, err := endpoint()
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("middleware: route %s: %w", pattern, err))
		return
	}
	r.add(RouteInfo{
		Pattern: pattern, Operation: op.Name, RenamedFrom: op.RenamedFrom, Kind: op.Kind, Policy: op.Policy, Unsafe: admitsUnsafe(pattern),
	}, h)
}

func policyless(p idem.Policy) bool {
	return p.ExemptReason == "" && p.MissingKey == "" && p.Retention == 0
}

func (r *Router) fail(field string, value any, rule string) {
	r.errs = append(r.errs, &idem.ConfigError{Field: field, Value: value, Rule: rule})
}

// add registers the handler. The mux panics over a pattern that is malformed or in conflict with another one.
func (r *Router) add(info RouteInfo, h http.Handler) {
	defer func() {
		if p := recover(); p != nil {
			r.fail("pattern", info.Pattern, fmt.Sprint(p))
		}
	}()
	r.mux.Handle(info.Pattern, h)
	r.routes = append(r.routes, info)
}

// idempotent are the methods that never need a key.
var idempotent = []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions}

// method is the method of a pattern, "" where it admits all.
func method(pattern string) string {
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		return pattern[:i]
	}
	return ""
}

func admitsUnsafe(pattern string) bool {
	m := method(pattern)
	return m == "" || unsafe(m)
}
