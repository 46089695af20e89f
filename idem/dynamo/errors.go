package dynamo

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/idem-go/idem-aws/idem/storage"
)

// translate gives the error of a write its meaning for the callers of the store; failed conditions are read elsewhere.
func (c *call) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case isUnsendable(err):
		return err
	case c.attempts.Load() == 0 || errors.Is(err, errLate) || isOneOf(err, expiredCredentials):
		return &storage.NotAskedError{Cause: err}
	case isAmbiguous(err):
		return &storage.OutcomeUnknownError{Cause: err}
	case isOneOf(err, throttles):
		return fmt.Errorf("%w: %w", &storage.ContentionError{Throttled: true}, err)
	case isOneOf(err, conflicts):
		return fmt.Errorf("%w: %w", &storage.ContentionError{}, err)
	}
	return err
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

// expiredCredentials are refusals of credentials that were good once: nothing of the request was looked at, and the next one
// is signed with others.
var expiredCredentials = []string{"ExpiredTokenException", "ExpiredToken"}

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

// isUnsendable says that an error is the SDK's own check of its input: no sending of it will ever pass.
func isUnsendable(err error) bool {
	var invalid smithy.InvalidParamsError
	var invalidPointer *smithy.InvalidParamsError
	var serialization *smithy.SerializationError
	return errors.As(err, &invalid) || errors.As(err, &invalidPointer) || errors.As(err, &serialization)
}

// isAmbiguous says whether a request that left may, by its error, have had, or may yet have, an effect. DynamoDB's refusals are
// definite. Anything else is a lost reply: deadlines, connections, unreadable bodies, 5xx, and what something in between has
// answered. Even a refused connection counts as one: the caller's answer to a lost reply is to send again under the same
// token, which is right for it too.
func isAmbiguous(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return true
	}
	if isOneOf(err, inProgress) || isOneOf(err, withoutCode) || api.ErrorFault() == smithy.FaultServer {
		return true
	}
	var response *smithyhttp.ResponseError
	return !errors.As(err, &response) || !refusesBy(response.HTTPStatusCode())
}

// withoutCode is what an answer without a code is to the SDK: a proxy's, which may have forwarded the request before.
var withoutCode = []string{"UnknownError", ""}

// statusGivenUp is what nginx and others say for a client that did not wait for the answer.
const statusGivenUp = 499

// refusesBy says that DynamoDB refuses requests by such a status. By 408 and 499 something on the way tells that it has not waited
// for the end of a request, or for its reply; DynamoDB never redirects.
func refusesBy(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError &&
		status != http.StatusRequestTimeout && status != statusGivenUp
}
