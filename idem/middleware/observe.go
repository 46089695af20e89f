package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Observation is what a policy in observe mode would have answered to a request that was executed instead.
type Observation struct {
	// Operation is the operation's registered name, Policy its policy's.
	Operation, Policy string
	// Tenant is who made the request.
	Tenant string
	// Key is the record's key: a hash of the client's. Empty where the request has no valid one.
	Key storage.RecordKey
	// OperationID is that of the earlier execution, if the answer would have named or replayed one.
	OperationID idem.OperationID
	// Status is the HTTP status of the answer; 0 where the request would have been executed without protection too.
	Status int
	// Outcome is its Idempotency-Status, "" for a refusal.
	Outcome string
	// Code is the code of its problem document, "" for a replay.
	Code string
}

// observes says whether the request is only observed.
func (e *endpoint) observes(r *http.Request) bool { return e.policy.Observe && unsafe(r.Method) }

// observe executes the request of a transactional handler, whatever the policy finds: under its key where that is free,
// else under one of its own. A quota, a time or a loss of records for which enforcement would have refused a free key is reported.
func (e *endpoint) observe(w http.ResponseWriter, r *http.Request, identity Identity) answer {
	request, refused := e.read(w, r, identity)
	if refused != nil {
		return answer{response: refused.response} // the endpoint's own bounds, with and without protection
	}
	c := &call{endpoint: e, request: request}
	enforced, result, err := c.enforce(r.Context(), e.execute(c))
	if result != nil && result.Outcome == idem.OutcomeExecuted || err != nil && !refuses(err) {
		c.reportOverruled(r.Context())
		return enforced.without(statusUnprotected)
	}
	aside := &call{endpoint: e, request: request, oneOff: true, unprotected: statusUnprotected}
	aside.asked = idem.Request{Tenant: identity.Tenant, Principal: identity.Principal, Input: canonical.Input{}}
	given := aside.do(r.Context())
	if enforced.status != "" || enforced.response.Status != given.response.Status || !bytes.Equal(enforced.response.Body, given.response.Body) {
		c.report(r.Context(), enforced, result)
	}
	return given
}

// enforce is what an enforcing endpoint would do with the request, and answer. Without a result and an error the engine
// was not asked to execute.
func (c *call) enforce(ctx context.Context, run idem.Handler) (answer, *idem.Result, error) {
	key, unprotected, refused := c.endpoint.key(c.request.HTTP)
	if refused == nil && key != "" {
		refused = c.ask(key)
	}
	switch {
	case refused != nil:
		return answer{response: refused.response}, nil, nil
	case key == "":
		return answer{status: unprotected}, nil, nil
	}
	if problem := c.problem(ctx); problem != nil {
		return c.invalid(ctx, *problem), nil, nil
	}
	c.asked.Overruled = func(why error) { c.overruled = why }
	result, err := c.endpoint.operation.Do(ctx, c.asked, run)
	switch {
	case err != nil:
		return c.failed(ctx, err), nil, err
	case result.Outcome == idem.OutcomeExecuted:
		result = c.await(ctx, result)
	}
	return c.answer(ctx, result), result, nil
}

// refuses says whether the error is one of the idempotency of the request: it would execute without.
func refuses(err error) bool {
	var handler *idem.HandlerError // whose cause is the handler's own
	var expired *idem.ExpiredError
	var unreadable *idem.UnreadableError
	var malformed *canonical.SyntaxError
	if errors.As(err, &handler) {
		return false
	}
	return errors.As(err, &expired) || errors.As(err, &unreadable) || errors.As(err, &malformed) ||
		errors.Is(err, canonical.ErrTooLarge) || errors.Is(err, storage.ErrErased)
}

// reportOverruled tells of a request that was executed under its key although enforcement would have refused it.
func (c *call) reportOverruled(ctx context.Context) {
	if c.overruled != nil {
		c.report(ctx, c.failed(ctx, c.overruled), nil)
	}
}

// report tells of what enforcement would have answered.
func (c *call) report(ctx context.Context, enforced answer, result *idem.Result) {
	o := Observation{
		Operation: c.endpoint.operation.Operation().Name, Policy: c.endpoint.policy.Name, Tenant: c.request.Identity.Tenant,
		Status: enforced.response.Status, Outcome: enforced.status,
	}
	if c.asked.Key != "" {
		o.Key = c.endpoint.operation.RecordKey(c.asked)
	}
	if result != nil {
		o.OperationID = result.OperationID
	}
	if !enforced.replayed {
		o.Code = problemCode(enforced.response)
	}
	cfg := c.endpoint.m.cfg
	cfg.Logger.InfoContext(ctx, "idempotency.observed", "operation", o.Operation, "policy", o.Policy, "tenant", o.Tenant,
		"key_hash", o.Key, "operation_id", o.OperationID, "status", o.Status, "outcome", o.Outcome, "code", o.Code)
	if cfg.Report == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			cfg.Logger.ErrorContext(ctx, "Config.Report panicked", "error", fmt.Sprint(p))
		}
	}()
	cfg.Report(ctx, o)
}

// problemCode is the code of a problem document; "" for what is none.
func problemCode(r idem.Response) string {
	var p idem.Problem
	if r.Get("Content-Type") != problemMediaType || json.Unmarshal(r.Body, &p) != nil {
		return ""
	}
	return p.Code
}
