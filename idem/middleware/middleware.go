// Package middleware protects net/http endpoints. It reads the Idempotency-Key of a request, has an [idem.Engine]
// execute or replay it, and writes the recorded or replayed response (docs/semantics.md "On the wire").
//
// Use [Middleware.Handle] for new handlers, whose writes go through a transaction, and [Middleware.Wrap] for existing
// handlers, which stay as they are. [Middleware.Read] serves safe methods beside them. Each returns an http.Handler
// for any router, and [Middleware.Middleware] returns a func(http.Handler) http.Handler. For queue messages and
// direct calls use package function instead.
//
// [Router] registers routes by pattern. Start-up then fails for an unsafe route without a policy, and package audit
// can list them all. Package cors serves browsers of other origins, and package awslambda runs the handlers on
// Lambda.
//
// A policy made by [idem.Observe] only records and reports: each request executes, as without protection, and says
// "Idempotency-Status: unprotected". A transactional handler still needs the store for its transaction. A wrapped handler
// is served unchanged, with streaming, also when the store is down.
//
// The order is the contract: authenticate, then the key's syntax, then media type and size, then the fingerprint, then
// the engine. Validation that may change between releases is the route's Validate: a request that fails it is looked up
// first, so that the retry of a completed one still gets its answer.
package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Identity is the caller. It must come from the authorizer, never from the body, the path or a header that the client
// chooses.
type Identity struct {
	// Tenant owns the keys. It must not be empty.
	Tenant string
	// Principal is the session or token, for policies that bind a key to it.
	Principal string
}

// The errors by which Config.Identify refuses a caller; an [*idem.RejectedError] does so with a problem of the application's
// own, whose status is a 4xx. Any other error means that the caller could not be identified for the moment, and is answered with 503.
var (
	// ErrUnauthenticated is answered with 401.
	ErrUnauthenticated = errors.New("middleware: unauthenticated")
	// ErrForbidden is answered with 403.
	ErrForbidden = errors.New("middleware: forbidden")
)

// Config is what New takes. Identify is required; the zero value of every other field means its default.
type Config struct {
	// Identify authenticates and authorises a request, replays too. An empty tenant without an error is a configuration
	// error: 500, and nothing runs.
	Identify func(*http.Request) (Identity, error)
	// BodyBytesMax bounds a request's body, in bytes; larger ones get 413. Default 256 KiB. The engine's fingerprinter
	// has a bound of its own.
	BodyBytesMax int
	// OperationsPath is the path under which the application serves [Middleware.Status], and to which an operation's id is
	// appended for the Location of a 202. Default "/v1/operations/".
	OperationsPath string
	// DocsURL is the API's documentation of its idempotency, for Link; rel="describedby". Default: no Link.
	DocsURL string
	// WaitMax bounds "Prefer: wait". How many requests wait at once is bounded by the engine (idem.Config.WaitsMax,
	// WaitsPerTenantMax). Default 20 s, at most 25 s.
	WaitMax time.Duration
	// Random is a cryptographic source of randomness, for the one-off keys of unprotected executions. Default
	// crypto/rand.Reader.
	Random io.Reader
	// Report is called with what a policy in observe mode would have answered, if that is not what the request got. The
	// log gets a line too. Report must not block.
	Report func(context.Context, Observation)
	// Logger gets what an operator should know; never bodies, keys or tokens. Default slog.Default(), as it is when New is
	// called; slog.New(slog.DiscardHandler) silences it.
	Logger *slog.Logger
}

const (
	operationsPathDefault = "/v1/operations/"
	waitMaxDefault        = 20 * time.Second
	waitMaxBound          = 25 * time.Second
)

// Middleware makes http.Handlers of an engine's operations. It is safe for concurrent use.
type Middleware struct {
	engine *idem.Engine
	cfg    Config
	mint   storage.IDGenerator
}

// New returns a middleware, or an [*idem.ConfigError].
func New(engine *idem.Engine, cfg Config) (*Middleware, error) {
	if engine == nil {
		return nil, &idem.ConfigError{Field: "engine", Value: nil, Rule: "must be given"}
	}
	if cfg.BodyBytesMax == 0 {
		cfg.BodyBytesMax = canonical.BodyBytesMaxDefault
	}
	if cfg.OperationsPath == "" {
		cfg.OperationsPath = operationsPathDefault
	}
	if cfg.WaitMax == 0 {
		cfg.WaitMax = waitMaxDefault
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Middleware{engine: engine, cfg: cfg, mint: storage.IDGenerator{Random: cfg.Random}}, nil
}

func (c Config) validate() error {
	if c.Identify == nil {
		return &idem.ConfigError{Field: "Config.Identify", Value: nil, Rule: "must be given: without a tenant nothing is protected"}
	}
	if c.BodyBytesMax < 0 {
		return &idem.ConfigError{Field: "Config.BodyBytesMax", Value: c.BodyBytesMax, Rule: "must not be negative"}
	}
	if !strings.HasPrefix(c.OperationsPath, "/") || !strings.HasSuffix(c.OperationsPath, "/") {
		return &idem.ConfigError{Field: "Config.OperationsPath", Value: c.OperationsPath, Rule: `must begin and end with "/"`}
	}
	if c.WaitMax < 0 || c.WaitMax > waitMaxBound {
		return &idem.ConfigError{Field: "Config.WaitMax", Value: c.WaitMax, Rule: fmt.Sprintf("must be 0..%v", waitMaxBound)}
	}
	if u, err := url.Parse(c.DocsURL); err != nil || u.String() != c.DocsURL {
		return &idem.ConfigError{Field: "Config.DocsURL", Value: c.DocsURL, Rule: "must be a URL"}
	}
	return nil
}

// identify returns the caller, or the refusal. It fails closed.
func (m *Middleware) identify(r *http.Request) (Identity, *refusal) {
	identity, err := m.cfg.Identify(r)
	var rejected *idem.RejectedError
	if errors.As(err, &rejected) {
		if problem, _, ok := idem.ProblemOf(rejected); ok {
			return Identity{}, &refusal{problem.Response()}
		}
	}
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return Identity{}, refuse(http.StatusUnauthorized, codeUnauthorized, "Unauthorized", "The request carries no valid credentials.").
			with("Www-Authenticate", "Bearer") // RFC 9110 section 15.5.2: a 401 must carry a challenge
	case errors.Is(err, ErrForbidden):
		return Identity{}, refuse(http.StatusForbidden, codeForbidden, "Forbidden", "The credentials do not allow this request.")
	case err != nil:
		m.cfg.Logger.ErrorContext(r.Context(), "caller not identified", "error", err)
		return Identity{}, refuse(http.StatusServiceUnavailable, header.CodeStoreUnavailable, "Service Unavailable", "The caller could not be authenticated now.")
	case identity.Tenant == "":
		m.cfg.Logger.ErrorContext(r.Context(), "Config.Identify returned no tenant and no error: nothing runs")
		return Identity{}, internalError()
	}
	return identity, nil
}

// oneOff returns a key that nobody else has, for an execution without protection: it needs a transaction all the same,
// and takes the way that every other execution takes.
func (m *Middleware) oneOff() (string, error) {
	random, err := m.mint.Owner()
	return "one-off " + string(random), err
}
