package middleware

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// The values of Idempotency-Status that are no [idem.Outcome]: the request ran without protection.
const (
	statusIgnored     = "ignored"
	statusUnprotected = "unprotected"
)

// endpoint is a registered operation on the wire.
type endpoint struct {
	m         *Middleware
	operation *idem.Registered
	policy    idem.Policy
	route     Route
	// selection is what counts of a request. wildcards are those of the pattern that a Router serves the endpoint at; nil
	// where the pattern is each request's.
	selection canonical.Selection
	wildcards []string
	// execute makes the engine's handler for a request.
	execute func(*call) idem.Handler
	// passThrough serves requests without protection directly; nil where they need a transaction.
	passThrough http.Handler
}

// call is one request at an endpoint.
type call struct {
	endpoint *endpoint
	request  *Request
	// oneOff says that the request runs without protection, under a key that nobody else has. unprotected is then its
	// Idempotency-Status, "" where it never was to be protected.
	oneOff      bool
	unprotected string
	asked       idem.Request
	// overruled is why an enforcing policy would not have executed the request that was observed; nil where it would have.
	overruled error
	// made is what the handler answered, before the allow-list.
	made made
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.observes(r) && e.passThrough != nil {
		e.observeWrapped(w, r)
		return
	}
	var passes *Identity
	a := e.m.guard(r, func() (a answer) {
		a, passes = e.take(w, r)
		return a
	})
	if passes == nil {
		e.m.write(w, a)
		return
	}
	if a.status != "" {
		w.Header().Set(header.NameStatus, a.status)
	}
	e.unprotected(w, r, *passes)
}

// unprotected serves a request that passes through, as an execution of which nothing is stored.
func (e *endpoint) unprotected(w http.ResponseWriter, r *http.Request, identity Identity) {
	ctx, err := e.operation.Unprotected(r.Context(), identity.Tenant)
	if err != nil {
		e.m.cfg.Logger.ErrorContext(r.Context(), "no randomness for an operation id", "error", err)
		e.m.write(w, answer{response: internalError().response})
		return
	}
	e.passThrough.ServeHTTP(w, r.WithContext(ctx))
}

// take answers the request, or says whose request passes through, with the Idempotency-Status that goes with it.
func (e *endpoint) take(w http.ResponseWriter, r *http.Request) (answer, *Identity) {
	identity, refused := e.m.identify(r)
	if refused != nil {
		return answer{response: refused.response}, nil
	}
	if e.observes(r) {
		return e.observe(w, r, identity), nil
	}
	key, unprotected, refused := e.key(r)
	if refused != nil {
		return answer{response: refused.response}, nil
	}
	if unprotected == statusUnprotected {
		e.m.cfg.Logger.InfoContext(r.Context(), "idempotency.unprotected", "operation", e.operation.Operation().Name, "tenant", identity.Tenant)
	}
	if key == "" && e.passThrough != nil {
		return answer{status: unprotected}, &identity
	}
	return e.answer(w, r, identity, key, unprotected), nil
}

// key reads the client's key. Without a refusal and without a key the request runs unprotected; the second result then
// says why, where the client should know.
func (e *endpoint) key(r *http.Request) (string, string, *refusal) {
	if !unsafe(r.Method) {
		return "", ignored(r), nil
	}
	if e.policy.ExemptReason != "" {
		return "", statusUnprotected, nil
	}
	key, err := header.ParseKey(r.Header.Values(header.NameKey), header.KeyRule{
		Syntax: header.Syntax(e.policy.Syntax), BytesMin: e.policy.KeyBytesMin,
	})
	if errors.Is(err, header.ErrEmpty) && e.policy.EmptyKeyIsMissing {
		err = header.ErrMissing
	}
	var malformed *header.InvalidError
	switch {
	case err == nil:
		return key, "", nil
	case errors.Is(err, header.ErrMissing) && e.policy.MissingKey == idem.MissingKeyUnprotected:
		return "", statusUnprotected, nil
	case errors.Is(err, header.ErrMissing):
		return "", "", refuse(http.StatusBadRequest, header.CodeKeyMissing, "Idempotency-Key missing", "This operation requires an Idempotency-Key header.")
	case errors.As(err, &malformed):
		return "", "", refuse(http.StatusBadRequest, header.CodeKeyInvalid, "Idempotency-Key invalid", "The Idempotency-Key header is refused: "+string(malformed.Reason)+".")
	}
	return "", "", refuse(http.StatusBadRequest, header.CodeKeyInvalid, "Idempotency-Key invalid", "The Idempotency-Key header is empty.")
}

// unsafe says whether a method is neither safe nor idempotent by itself (RFC 9110 section 9.2).
func unsafe(method string) bool { return method == http.MethodPost || method == http.MethodPatch }

// ignored is the Idempotency-Status of a method that never needs a key.
func ignored(r *http.Request) string {
	if len(r.Header.Values(header.NameKey)) > 0 {
		return statusIgnored
	}
	return ""
}

// answer takes an authenticated request with a valid key, or one that runs under a key of its own, to its answer.
func (e *endpoint) answer(w http.ResponseWriter, r *http.Request, identity Identity, key, unprotected string) answer {
	request, refused := e.read(w, r, identity)
	if refused != nil {
		return answer{response: refused.response}
	}
	c := &call{endpoint: e, request: request, oneOff: key == "", unprotected: unprotected}
	if refused := c.ask(key); refused != nil {
		return answer{response: refused.response}
	}
	return c.do(r.Context())
}

// ask fills in what the engine is asked for.
func (c *call) ask(key string) *refusal {
	e, r, identity := c.endpoint, c.request.HTTP, c.request.Identity
	if e.policy.BindPrincipal && identity.Principal == "" {
		// An empty principal would open one caller's answers to another.
		e.m.cfg.Logger.ErrorContext(r.Context(), "the policy binds keys to the principal, and there is none", "operation", e.operation.Operation().Name)
		return internalError()
	}
	if key != "" && c.request.consumed {
		e.m.cfg.Logger.ErrorContext(r.Context(), "the request's body was read before the protection: its key executes nothing; read it in the handler, or put it back, with its length",
			"operation", e.operation.Operation().Name, "bytes", len(c.request.Body), "content_length", r.ContentLength)
		return internalError()
	}
	sent, refused := firstSent(r, key)
	if refused != nil {
		return refused
	}
	// Nobody can come back to a request without a key: only its body must be one that a fingerprint can be taken of.
	input := canonical.Input{MediaType: r.Header.Get("Content-Type"), Body: c.request.Body}
	if key != "" {
		if input, refused = e.input(c.request); refused != nil {
			return refused
		}
	}
	c.asked = idem.Request{Tenant: identity.Tenant, Principal: identity.Principal, Key: key, FirstSent: sent, Input: input}
	return nil
}

// do asks the engine and answers.
func (c *call) do(ctx context.Context) answer {
	if problem := c.problem(ctx); problem != nil {
		return c.invalid(ctx, *problem)
	}
	if c.oneOff {
		random, err := c.endpoint.m.oneOff()
		if err != nil {
			return c.failed(ctx, err)
		}
		c.asked.Key, c.asked.OneOff = random, true
	}
	result, err := c.endpoint.operation.Do(ctx, c.asked, c.endpoint.execute(c))
	if err != nil {
		return c.failed(ctx, err)
	}
	return c.told(ctx, result)
}

// problem is what the route's validation has against the request; nil for nothing.
func (c *call) problem(ctx context.Context) *idem.Problem {
	if c.endpoint.route.Validate == nil {
		return nil
	}
	return c.endpoint.route.Validate(c.request.copy(ctx))
}

// told is the answer to what became of the request, waited for as long as the client prefers.
func (c *call) told(ctx context.Context, result *idem.Result) answer {
	result = c.await(ctx, result)
	a := c.answer(ctx, result)
	if a.replayed {
		a.response.Header = append(slices.Clone(a.response.Header), c.onReplay(ctx, result)...)
	}
	return a
}

// invalid answers a request that failed validation: by its stored twin where there is one, else by the problem.
func (c *call) invalid(ctx context.Context, problem idem.Problem) answer {
	if !c.oneOff {
		result, err := c.endpoint.operation.Lookup(ctx, c.asked)
		if err != nil {
			return c.failed(ctx, err)
		}
		if result != nil {
			return c.told(ctx, result)
		}
	}
	return answer{response: problem.Response(), status: c.unprotected}
}

// answerMargin is what is kept of the time left for writing the answer after a wait.
const answerMargin = time.Second

// await holds a 202 until the final answer, as long as the client prefers to wait and there is time (RFC 7240 section
// 4.3). Trouble while waiting changes nothing: the 202 stands.
func (c *call) await(ctx context.Context, result *idem.Result) *idem.Result {
	wait, ok := header.ParseWait(c.request.HTTP.Header.Values(header.NamePrefer))
	inFlight := c.accepts(result)
	if !ok || !inFlight && (result.State != storage.StatePending || result.Response.Status == 0) {
		return result
	}
	wait = min(wait, c.endpoint.m.cfg.WaitMax)
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)-answerMargin)
	}
	if wait <= 0 {
		return result
	}
	record, err := c.endpoint.m.engine.Await(ctx, c.asked.Tenant, result.OperationID, wait)
	if err != nil {
		c.log().WarnContext(ctx, "waiting failed", "operation_id", result.OperationID, "error", err)
		return result
	}
	if record == nil || !record.State.Final() {
		return result
	}
	final := &idem.Result{
		Outcome: result.Outcome, OperationID: result.OperationID, State: record.State,
		Response: record.Response, ExpiresAt: record.ExpiresAt,
	}
	if inFlight {
		final.Outcome = idem.OutcomeReplayed
	}
	return final
}
