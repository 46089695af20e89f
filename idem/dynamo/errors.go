package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/idem-go/idem-aws/idem"
)

// call is one call to DynamoDB, which the SDK may send several times. An error of the last attempt says nothing of the
// ones before: where one of those had no reply, its write may have happened although the last was throttled. So each
// attempt is looked at.
type call struct {
	store     *Store
	operation string
	// attempts counts them; ambiguous says that one of them may have had an effect that nobody was told of.
	attempts  int
	ambiguous bool
}

func (s *Store) begin(operation string) *call { return &call{store: s, operation: operation} }

// watch is an option of the SDK's calls.
func (c *call) watch(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("IdemAttempt", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			c.attempts++
			out, metadata, err := next.HandleFinalize(ctx, in)
			if err != nil && isAmbiguous(err) {
				c.ambiguous = true
			}
			return out, metadata, err
		}), "Retry", middleware.After)
	})
}

// translate gives the error of a write its meaning for the callers of the store; failed conditions go by judged.
func (c *call) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case c.ambiguous || isAmbiguous(err):
		return &idem.OutcomeUnknownError{Cause: err}
	case isOneOf(err, throttles):
		return fmt.Errorf("%w: %w", &idem.ContentionError{Throttled: true}, err)
	case isOneOf(err, conflicts):
		return fmt.Errorf("%w: %w", &idem.ContentionError{}, err)
	}
	return err
}

// judged is what is told of a failed condition: the conflict itself, whatever happened to earlier attempts, because the
// stored item comes along and its owner is compared. What is left
// besides (contention, a stored item that can't be read) holds only if no earlier attempt may have happened.
func (c *call) judged(err error) error {
	if !isDefinite(err) && c.ambiguous {
		return &idem.OutcomeUnknownError{Cause: err}
	}
	return err
}

// isDefinite says whether an error tells of a failed condition.
func isDefinite(err error) bool {
	var record *idem.RecordConflictError
	var message *idem.MessageConflictError
	var write *idem.WriteFailedError
	return errors.As(err, &record) || errors.As(err, &message) || errors.As(err, &write)
}

// Codes of errors after which nothing happened and another try may help.
var (
	throttles = []string{
		(*types.ThrottlingException)(nil).ErrorCode(), (*types.ProvisionedThroughputExceededException)(nil).ErrorCode(),
		(*types.RequestLimitExceeded)(nil).ErrorCode(),
	}
	conflicts = []string{
		(*types.TransactionConflictException)(nil).ErrorCode(), (*types.ReplicatedWriteConflictException)(nil).ErrorCode(),
	}
)

// inProgress says that the transaction of the same token is still running: its outcome is not known yet.
var inProgress = []string{(*types.TransactionInProgressException)(nil).ErrorCode()}

func isOneOf(err error, codes []string) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	for _, code := range codes {
		if api.ErrorCode() == code {
			return true
		}
	}
	return false
}

// isAmbiguous says whether a request with this error may have had, or may yet have, an effect. DynamoDB's refusals (4xx
// with a code) are definite, and so is what never passed the SDK's own checks. Anything else is a lost reply: deadlines,
// connections, unreadable bodies, 5xx. Even a refused connection counts as one: the caller's answer to a lost reply is to
// send again under the same token, which is right for it too.
func isAmbiguous(err error) bool {
	var invalid smithy.InvalidParamsError
	var invalidPointer *smithy.InvalidParamsError
	var serialization *smithy.SerializationError
	if errors.As(err, &invalid) || errors.As(err, &invalidPointer) || errors.As(err, &serialization) {
		return false
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return true
	}
	if isOneOf(err, throttles) || isOneOf(err, conflicts) {
		return false
	}
	if isOneOf(err, inProgress) || api.ErrorFault() == smithy.FaultServer {
		return true
	}
	var response *smithyhttp.ResponseError
	return !errors.As(err, &response) || response.HTTPStatusCode() >= http.StatusInternalServerError
}
