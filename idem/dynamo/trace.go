package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// spanPrefix begins the name of a call's span; its operation follows.
const spanPrefix = "dynamodb."

// Names of the attributes of a call's span, which are OpenTelemetry's own.
const (
	attributeSystem    = "db.system.name"
	attributeOperation = "db.operation.name"
	attributeStatus    = "db.response.status_code"
)

// trace begins the call's span, if the context carries one: a call that belongs to nothing is not traced.
func (c *call) trace(ctx context.Context) context.Context {
	if trace.From(ctx) == nil {
		return ctx
	}
	ctx, span := trace.Begin(ctx, nil, spanPrefix+c.operation, trace.Options{Kind: trace.Client})
	span.Set(trace.Attribute{Name: attributeSystem, Value: "aws.dynamodb"}, trace.Attribute{Name: attributeOperation, Value: c.operation})
	return ctx
}

// over reports a call that has ended: to its span, which is the context's, and to the meter.
func (c *call) over(ctx context.Context, err error, reads bool, consumed ...types.ConsumedCapacity) {
	if span := trace.From(ctx); span != nil {
		endSpan(span, err)
	}
	c.meter(err, reads, consumed...)
}

// endSpan names the error by DynamoDB's code. A failed condition is an answer, not a failure.
func endSpan(span *trace.Span, err error) {
	defer span.End()
	if err == nil {
		return
	}
	code := "no_reply"
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	}
	span.Set(trace.Attribute{Name: attributeStatus, Value: code})
	if code != (*types.ConditionalCheckFailedException)(nil).ErrorCode() && code != (*types.TransactionCanceledException)(nil).ErrorCode() {
		span.Fail(code)
	}
}
