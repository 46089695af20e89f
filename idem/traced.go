package idem

import (
	"context"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// Names of the attributes that the engine sets on the span of a request.
const (
	attributeOperation = "idem.operation"
	attributeKind      = "idem.kind"
	attributeOutcome   = "idem.outcome"
	attributeReplayed  = "idem.replayed"
	attributeAttempts  = "idem.attempts"
)

// tell tells the request's span what became of the request. A request that met the record of an earlier one is linked to
// that one's trace, which the record names: nothing is read for it.
func (x *execution) tell(ctx context.Context, result *Result, err error) {
	if x.span == nil {
		return
	}
	_, outcome := x.event(ctx, result, err)
	x.span.Set(
		trace.Attribute{Name: attributeOperation, Value: x.op.Name}, trace.Attribute{Name: attributeKind, Value: string(x.op.Kind)},
		trace.Attribute{Name: attributeOutcome, Value: outcome}, trace.Attribute{Name: attributeAttempts, Value: x.attempts(result)},
		trace.Attribute{Name: attributeReplayed, Value: result != nil && result.Outcome == OutcomeReplayed},
	)
	switch outcome {
	case "unavailable", "handler_failed", "response_too_large", "failed": // the rest is an answer
		x.span.Fail(outcome)
	}
	if seen := x.earlier(result); seen != nil {
		x.span.Link(seen.Trace)
	}
}

// earlier is the record of the request that answered instead of this one; nil where this one executed.
func (x *execution) earlier(result *Result) *storage.Record {
	if result == nil || result.Outcome == OutcomeExecuted {
		return nil
	}
	return x.seen
}
