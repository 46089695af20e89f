package awslambda

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// HTTP serves HTTP events with the handler: API Gateway HTTP APIs (payload 2.0 and 1.0), REST APIs, function URLs and
// application load balancers, told apart by the event itself. Paths are without the gateway's stage. The request's context
// is the invocation's, with the function's deadline, and carries what [AuthorizerFrom] returns.
//
// A text body with the character U+FFFD is answered with 400 and the code request_invalid, and the handler does not run:
// gateways put that character in place of bytes that are not UTF-8, so that different bodies would arrive as the same one.
// A body that arrives in base64 is what was sent, and is not looked at; nor is one whose path is in [Config].SignedPaths.
//
// A panic of the handler, and a response that is more than gets through, are answered with 500: a failed invocation
// would be the gateway's 502, without a word that a client could act on. Lambda returns 6 MiB of JSON, and a load balancer
// 1 MB of it. The engine is told, and refuses before it commits what is more than three quarters of that: 4.4 MiB, and
// 700 kB behind a load balancer, where it refuses more than 15 KiB of headers too; what is settled within the request is stored as its
// topic's short response then. A worker that settles an operation does not know the gateway: behind a load balancer, set
// outbox.Config.ResponseBytesMax to 700,000, and keep headers as short.
//
// An event of another kind is an [ErrEvent].
func HTTP(handler http.Handler, cfg Config) Handler {
	cfg = cfg.withDefaults()
	return func(ctx context.Context, event []byte) ([]byte, error) {
		in, err := parseHTTP(event)
		if err != nil {
			return nil, err
		}
		ctx = WithGatewayRequest(ctx, in.RequestContext.RequestID)
		if cfg.ExplicitRoutes && in.pathIsAmbiguous() {
			return in.encode(cfg.notFound())
		}
		if cfg.short(ctx) {
			return in.encode(cfg.noTime())
		}
		if in.damaged() && !slices.Contains(cfg.SignedPaths, in.url().EscapedPath()) {
			return in.encode(cfg.problem(http.StatusBadRequest, "request_invalid", "Invalid request",
				"The request body is not UTF-8, or has the character U+FFFD, which stands for bytes that are not."))
		}
		r, err := in.request(trace.Watch(ctx)) // the request's span has ended when its panic arrives here
		if err != nil {
			return nil, err
		}
		return in.encode(serve(cfg, handler, r))
	}
}

// serve runs the handler and returns what it wrote, or a 500 where it panicked.
func serve(cfg Config, handler http.Handler, r *http.Request) (w *responseWriter) {
	w = newResponseWriter()
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p != http.ErrAbortHandler { //nolint:errorlint // the value of a panic, as net/http compares it
			cfg.Logger.ErrorContext(r.Context(), "handler panicked", "error", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		w = cfg.problem(http.StatusInternalServerError, "internal_error", "Internal Server Error", "The request failed.")
	}()
	handler.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	return w
}
