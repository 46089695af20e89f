package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/idem-go/idem-aws/idem/internal/front"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// This file alone says what the end of a handler means, by the operation's policy.

// handled performs the end of protocol.Run and protocol.Wait.
func (x *execution) handled(ctx context.Context, response Response, err error) protocol.Input {
	x.run.over.Store(true)
	if x.run.until != nil {
		x.run.until.Stop()
	}
	x.run.response, x.run.err = response, err
	result := x.classify(ctx)
	row := x.incarnation(x.machine.Held.Op)
	status := x.answers.at(result.Answer).response.Status
	if result.Code == protocol.Responded { // its answer may be too large to be stored: what it made lives all the same
		status = response.Status
	}
	x.cfg.Life = lifeOf(row.Retention, row.Expiry, status)
	return protocol.Input{What: protocol.HandlerEnded, Result: result}
}

// classify says what the handler ended with. Its answer to a request that fails is in x.run.
func (x *execution) classify(ctx context.Context) protocol.Result {
	policy, r := &x.op.Policy, &x.run
	var rejected *RejectedError
	switch {
	case x.nothingHappened(ctx):
		return protocol.Result{Code: protocol.NothingHappened}
	case r.err != nil && errors.As(r.err, &rejected):
		return x.answered(protocol.Stored, rejected.Problem.Response())
	case r.err != nil && policy.StoreServerErrors:
		return x.answered(protocol.Stored, x.serverError(ctx))
	case r.err != nil:
		return protocol.Result{Code: protocol.Broke}
	case !policy.stores(r.response.Status):
		return protocol.Result{Code: protocol.Unstored}
	case x.op.Kind == KindWrapped:
		return x.classifyWrapped(ctx)
	}
	if r.err = x.storable(ctx); r.err != nil {
		return protocol.Result{Code: protocol.Broke}
	}
	result := x.answered(protocol.Responded, r.response)
	result.Slot, result.Alone = uint8(r.tx.attempt), len(r.tx.writes)+len(r.tx.messages) == 0
	result.Chain = x.op.Kind == KindDeferred && len(r.tx.messages) == 1
	result.Left = result.Chain && x.op.Inline != nil && x.op.Inline.Leaves(r.tx.messages[0])
	return result
}

// nothingHappened says that nothing happened: the handler has declared it in this run, or its operation for this status. A
// success contradicts what the handler said.
func (x *execution) nothingHappened(ctx context.Context) bool {
	r := &x.run
	if rejected := (*RejectedError)(nil); x.op.Kind == KindWrapped && errors.As(r.err, &rejected) && slices.Contains(x.op.ReleaseOn, rejected.Problem.Status) {
		r.response, r.err = rejected.Problem.Response(), nil // it is answered, as any other with this status
	}
	if r.err == nil && slices.Contains(x.op.ReleaseOn, r.response.Status) {
		return true
	}
	if !r.nothing.Load() {
		return false
	}
	if r.err == nil && r.response.Status >= 200 && r.response.Status <= 299 {
		x.engine.cfg.Logger.ErrorContext(ctx, "a handler said that nothing happened and answered with a success: it is taken for a success",
			"operation", x.op.Name, "key_hash", x.key, "operation_id", r.execution.OperationID, "status", r.response.Status)
		return false
	}
	return true
}

// classifyWrapped judges an answer that is to be stored. The work is done: where the answer does not fit, a retry must not
// do it again.
func (x *execution) classifyWrapped(ctx context.Context) protocol.Result {
	r := &x.run
	if r.err = r.tx.validate(x.op.Kind, r.response); r.err != nil {
		return protocol.Result{Code: protocol.Broke}
	}
	if x.checkSize(ctx, r.response) != nil {
		return x.answered(protocol.Responded, notKept())
	}
	return x.answered(protocol.Responded, r.response)
}

// checkSize says why a response can't be stored, or does not get to this request's caller: one that does not would be committed, and every
// retry would fail as the request did.
func (x *execution) checkSize(ctx context.Context, r Response) error {
	most := front.BoundOf(ctx)
	return r.CheckSize(min(x.engine.cfg.ResponseBytesMax, most.Bytes), most.HeaderBytes)
}

// storable says why the answer can't be committed with what the run collected.
func (x *execution) storable(ctx context.Context) error {
	r := &x.run
	if err := r.tx.validate(x.op.Kind, r.response); err != nil {
		return err
	}
	if err := x.checkSize(ctx, r.response); err != nil {
		return err
	}
	accepted, messages := r.response.Status == http.StatusAccepted, len(r.tx.messages)
	if x.op.Kind == KindDeferred && accepted != (messages == 1) {
		return fmt.Errorf("idem: a deferred operation answered %d with %d messages: a 202 and its message go together", r.response.Status, messages)
	}
	return nil
}

func (x *execution) answered(code protocol.ResultCode, response Response) protocol.Result {
	return protocol.Result{Code: code, Answer: x.answers.add(answer{response: response})}
}

// serverError is the stored answer of a handler that failed, under a policy that stores those. It tells nothing: details
// are the log's.
func (x *execution) serverError(ctx context.Context) Response {
	x.engine.cfg.Logger.ErrorContext(ctx, "handler failed", "operation", x.op.Name, "key_hash", x.key, "error", x.run.err)
	return NewProblem(http.StatusInternalServerError, "internal_error", "Internal Server Error", "The request failed.").Response()
}

// newTx collects the writes of a run.
func (x *execution) newTx(row *storage.Record, attempt int) *Tx {
	return &Tx{
		operationID: row.OperationID, recordKey: x.key, tenant: x.req.Tenant, now: translation.TimeOf(x.now()), attempt: attempt,
		retention: row.Retention, expiry: row.Expiry, detached: x.op.Kind != KindDeferred, sweepGrace: x.engine.cfg.SweepGrace,
		trace: x.span.Context(),
	}
}
