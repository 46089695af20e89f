package function

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// Config is what a function takes besides its operation.
type Config struct {
	// Tenant is the tenant of every input, where there is only one. Exactly one of Tenant and TenantOf is set.
	Tenant string
	// TenantOf says whose an input is, from the context or from what a trusted producer wrote: never from what the
	// tenant's own clients can choose. Its error is returned as it is.
	TenantOf func(ctx context.Context, input []byte) (string, error)
	// Key says what an input's key is. Required.
	Key Key
	// Fields picks the fields of a JSON input that the fingerprint includes. Default: the whole input.
	Fields *canonical.Fields
	// Raw says that inputs are not JSON: their bytes count as they stand. Key must then be of [KeyFunc].
	Raw bool
	// DisabledForTests executes every call, whatever was executed before: each runs under a key of its own, read from
	// nowhere, and commits as usual. Each call is logged as an error. [New] refuses it where the environment is that of
	// AWS (AWS_LAMBDA_FUNCTION_NAME, or an AWS_EXECUTION_ENV of "AWS_…") unless AWS_ENDPOINT_URL or
	// AWS_ENDPOINT_URL_DYNAMODB points to an emulator: a loopback address, or plain http to anywhere but amazonaws.com.
	// It is no variable of the environment itself, because one that was forgotten in a deployment protects nothing
	// and shows nowhere.
	DisabledForTests bool
	// Logger gets what DisabledForTests says, and outputs that were lost; never inputs or keys. Default slog.Default().
	Logger *slog.Logger
	// Random is a cryptographic source of randomness, for DisabledForTests only. Default crypto/rand.Reader.
	Random io.Reader
	// Tracer records a span for each call. Default: that of the span which the call's context carries, else none.
	Tracer trace.Tracer
}

const spanFunction = "idem.function"

// Handler executes a function. Like an [idem.Handler] it may run again, and nothing of an earlier run remains: each run is
// given its own copy of the input, to change as it likes.
//
// It returns an output, which is stored, however empty; or an [*idem.RejectedError], which is stored and which every
// caller gets as a [*StoredError]; or any other error, which is not stored. A deferred function sends exactly one message.
type Handler func(ctx context.Context, tx *idem.Tx, input []byte) ([]byte, error)

// Result is what became of a call.
type Result struct {
	// Output is what the handler returned, or the final response that its worker settled, byte for byte for every
	// caller. Nil and empty are the same.
	Output []byte
	// Replayed says that nothing was executed for this call.
	Replayed bool
	// Pending says that a deferred function is not finished: the message is committed, and a later call gets the end.
	Pending bool
	// OperationID is the id of this incarnation of the key.
	OperationID idem.OperationID
}

// Function is a registered function. It is immutable and safe for concurrent use. Functions share nothing, so one may
// call another from its handler; the inner one commits by itself.
type Function struct {
	operation *idem.Registered
	cfg       Config
	mint      storage.IDGenerator
}

// New registers the operation, or returns an [*idem.ConfigError]. Of the policy count Scope, Retention, Mismatch, InFlight
// (wait, or not), WaitMax, ResourceBacked, GoneAfterExpiry and KeepFor; the others are about HTTP, and those that would weaken
// a function are refused.
func New(engine *idem.Engine, op idem.Operation, cfg Config) (*Function, error) {
	if engine == nil {
		return nil, &idem.ConfigError{Field: "engine", Value: nil, Rule: "must be given"}
	}
	if err := cfg.validate(os.Getenv); err != nil {
		return nil, err
	}
	if err := validatePolicy(op.Policy); err != nil {
		return nil, err
	}
	if before := engine.RefuseBefore(); !before.IsZero() && !op.SafeToRunAgain {
		return nil, &idem.ConfigError{Field: "Config.RefuseBefore", Value: before, Rule: "leaves nothing that a function would execute, unless Operation.SafeToRunAgain is declared: its keys have no time"}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	// A handler's rejection is declared, and so it is stored whatever its status.
	op.Policy.StoreClientErrors = true
	registered, err := engine.Register(op)
	if err != nil {
		return nil, err
	}
	return &Function{operation: registered, cfg: cfg, mint: storage.IDGenerator{Random: cfg.Random}}, nil
}

func (c Config) validate(getenv func(string) string) error {
	switch {
	case (c.Tenant == "") == (c.TenantOf == nil):
		return &idem.ConfigError{Field: "Config.Tenant", Value: fmt.Sprintf("%q", c.Tenant), Rule: "either Config.Tenant or Config.TenantOf must be given"}
	case c.Key.err != nil:
		return &idem.ConfigError{Field: "Config.Key", Value: c.Key.expressions, Rule: c.Key.err.Error()}
	case c.Key.read == nil:
		return &idem.ConfigError{Field: "Config.Key", Value: nil, Rule: "must be given: without a key all inputs would share one"}
	case c.Raw && c.Key.expressions != nil:
		return &idem.ConfigError{Field: "Config.Raw", Value: true, Rule: "contradicts Config.Key, which reads JSON: use KeyFunc"}
	case c.Raw && c.Fields != nil:
		return &idem.ConfigError{Field: "Config.Raw", Value: true, Rule: "contradicts Config.Fields, which picks from JSON"}
	case canonical.Selection{Fields: c.Fields}.Validate() != nil:
		return &idem.ConfigError{
			Field: "Config.Fields", Value: canonical.Selection{Fields: c.Fields}.String(),
			Rule: fmt.Sprintf("must have a text of at most %d bytes, which each record stores", canonical.SelectionBytesMax),
		}
	case c.DisabledForTests && onAWS(getenv):
		return &idem.ConfigError{Field: "Config.DisabledForTests", Value: true, Rule: "is refused on AWS: it would execute every duplicate"}
	}
	return nil
}

func validatePolicy(p idem.Policy) error {
	switch {
	case p.ExemptReason != "":
		return &idem.ConfigError{Field: "Policy.ExemptReason", Value: fmt.Sprintf("%q", p.ExemptReason), Rule: "is for routes: a function without protection is called without package function"}
	case p.Observe:
		return &idem.ConfigError{Field: "Policy.Observe", Value: true, Rule: "is for routes: nobody would be told what was found"}
	case p.StoreServerErrors:
		return &idem.ConfigError{Field: "Policy.StoreServerErrors", Value: true, Rule: "is for routes: an error of a function is not stored"}
	case p.BindPrincipal:
		return &idem.ConfigError{Field: "Policy.BindPrincipal", Value: true, Rule: "is for routes: a function has no principal; make it a part of the key"}
	case p.KeyTime != idem.KeyTimeNone:
		return &idem.ConfigError{Field: "Policy.KeyTime", Value: p.KeyTime, Rule: "is for routes: a function's key is made of its input"}
	}
	return nil
}

// Do executes the function for the input, or returns what an earlier call with its key left. The input is not changed.
//
// Errors, after which nothing was executed by this call: [*KeyError]; [*InputError], for an input that has no fingerprint;
// [ErrMismatch]; [*InProgressError]; [*UnknownError]; [*idem.ExpiredError], where the policy keeps expired keys.
// [*StoredError] is the stored result, now or earlier.
// [*idem.UnavailableError]: nothing is known to be committed, the same call may be made again. [*idem.HandlerError]: as
// the handler's error, with nothing committed, except that a wrapped operation is now unknown. [idem.ErrResponseTooLarge]:
// the output doesn't fit, and nothing was committed. Of a wrapped function it is a [*StoredError], [ErrOutputNotKept].
func (f *Function) Do(ctx context.Context, input []byte, h Handler) (Result, error) {
	request, err := f.request(ctx, bytes.Clone(input))
	if err != nil {
		return Result{}, err
	}
	ctx, span := trace.Begin(ctx, f.cfg.Tracer, spanFunction, trace.Options{})
	defer span.End()
	result, err := f.operation.Do(ctx, request, f.handler(request.Input.Body, h))
	if err != nil {
		return Result{}, unusable(err)
	}
	return translate(result)
}

// request asks for what the input says. The input is this call's own: the engine may come back to it after the handler
// has run.
func (f *Function) request(ctx context.Context, input []byte) (idem.Request, error) {
	request := idem.Request{Tenant: f.cfg.Tenant, Input: canonical.Input{Body: input, MediaType: "application/json", Selection: canonical.Selection{Fields: f.cfg.Fields}}}
	if f.cfg.Raw {
		request.Input.MediaType = "application/octet-stream"
	}
	var err error
	if f.cfg.TenantOf != nil {
		if request.Tenant, err = f.cfg.TenantOf(ctx, bytes.Clone(input)); err != nil {
			return request, err
		}
	}
	if f.cfg.DisabledForTests {
		request.OneOff = true
		request.Key, err = f.oneOff(ctx)
	} else {
		request.Key, err = f.cfg.Key.of(ctx, input)
	}
	return request, err
}

func (f *Function) handler(input []byte, h Handler) idem.Handler {
	return func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
		output, err := h(ctx, tx, bytes.Clone(input))
		if err != nil {
			return idem.Response{}, err
		}
		status := http.StatusOK
		if f.operation.Operation().Kind == idem.KindDeferred {
			status = http.StatusAccepted
		}
		return idem.Response{Status: status, Body: output}, nil
	}
}

// translate makes of the engine's result what callers of functions get.
func translate(r *idem.Result) (Result, error) {
	switch r.Outcome {
	case idem.OutcomeExecuted, idem.OutcomeReplayed:
		replayed := r.Outcome == idem.OutcomeReplayed
		if r.Response.Status >= http.StatusBadRequest {
			return Result{}, &StoredError{Response: r.Response, Replayed: replayed, OperationID: r.OperationID}
		}
		return Result{
			Output: r.Response.Body, Replayed: replayed, Pending: r.State == storage.StatePending, OperationID: r.OperationID,
		}, nil
	case idem.OutcomeInProgress:
		return Result{}, &InProgressError{RetryAfter: r.RetryAfter}
	case idem.OutcomeUnknown:
		return Result{}, &UnknownError{OperationID: r.OperationID, RetryAfter: r.RetryAfter}
	case idem.OutcomeMismatch:
		return Result{}, ErrMismatch
	}
	return Result{}, fmt.Errorf("function: the engine's outcome is %q", r.Outcome)
}
