package dynamo

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithymiddleware "github.com/aws/smithy-go/middleware"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// LogRefused is an option of a client, for all of a process's tables: each call that DynamoDB refuses as not allowed or not valid
// is an error line of [metric.StoreRefused], with the API's operation and DynamoDB's code. What is refused in an order of things
// is none: failed conditions, conflicts, throttling, and credentials that are replaced. DynamoDB's own metric UserErrors can't
// tell them apart, because a cancelled transaction counts as one. Without a logger nothing is logged.
func LogRefused(logger *slog.Logger) func(*dynamodb.Options) {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	tell := smithymiddleware.InitializeMiddlewareFunc("IdemRefused", func(
		ctx context.Context, in smithymiddleware.InitializeInput, next smithymiddleware.InitializeHandler,
	) (smithymiddleware.InitializeOutput, smithymiddleware.Metadata, error) {
		out, metadata, err := next.HandleInitialize(ctx, in)
		if code, refused := refusal(err); refused {
			logger.ErrorContext(ctx, metric.StoreRefused, "call", middleware.GetOperationName(ctx), "code", code, "error", err)
		}
		return out, metadata, err
	})
	return func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *smithymiddleware.Stack) error {
			return stack.Initialize.Add(tell, smithymiddleware.After)
		})
	}
}

// inOrder are the codes of refusals that nothing is wrong with.
var inOrder = slices.Concat(throttles, conflicts, expiredCredentials, []string{(*types.ConditionalCheckFailedException)(nil).ErrorCode()})

// refusal is the code of an answer that says that a call is not allowed or not valid.
func refusal(err error) (code string, refused bool) {
	var answer smithy.APIError
	if !errors.As(err, &answer) || isAmbiguous(err) || isOneOf(err, inOrder) {
		return "", false
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return answer.ErrorCode(), true
	}
	for _, reason := range cancelled.CancellationReasons {
		switch code := text(reason.Code); code {
		case reasonNone, reasonConditionFailed, reasonConflict, reasonThrottling, reasonThroughput:
		default:
			return code, true
		}
	}
	return "", false
}
