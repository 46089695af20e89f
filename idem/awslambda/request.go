package awslambda

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// gatewayRequest is the key of the gateway's id in a context.
type gatewayRequest struct{}

// WithGatewayRequest returns a context that knows the id which the gateway gave the request, as its event has it. [HTTP] does so for
// its handler.
func WithGatewayRequest(ctx context.Context, id string) context.Context {
	if id == "" {
		return ctx
	}
	return context.WithValue(ctx, gatewayRequest{}, id)
}

// RequestMembers are the members of a log line that say which request was handled, for telemetry.Config.Members: request_id, the
// id of the invocation, and gateway_request_id, the id of the gateway's access log, where the gateway sent the request.
func RequestMembers(ctx context.Context) []slog.Attr {
	var members []slog.Attr
	if c, ok := lambdacontext.FromContext(ctx); ok && c.AwsRequestID != "" {
		members = append(members, slog.String("request_id", c.AwsRequestID))
	}
	if id, ok := ctx.Value(gatewayRequest{}).(string); ok {
		members = append(members, slog.String("gateway_request_id", id))
	}
	return members
}
