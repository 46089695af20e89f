package idemctl

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// answered is an error that AWS answered.
type answered interface{ ErrorCode() string }

// called is an error of an operation of AWS, be it that it was not sent: smithy's OperationError.
type called interface {
	Service() string
	Operation() string
}

// missingRegion is what every client of the SDK says where it has no Region: only the environment says that.
const missingRegion = "Missing Region"

// adviceSignIn is for credentials that are over.
const adviceSignIn = "AWS does not accept your credentials, or they are over. Sign in again, and run the command again."

// isTrouble says whether an error is of what was asked, and not of what the environment says.
func isTrouble(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.As(err, new(answered)) || isUnreached(err) ||
		errors.As(err, new(called)) && !strings.Contains(err.Error(), missingRegion)
}

// isUnreached says whether an error is of a connection. net/url tells of an address that is none in the same type, and what a system call
// says of a file has the methods of such an error, too.
func isUnreached(err error) bool {
	var network net.Error
	if !errors.As(err, &network) || errors.As(err, new(*fs.PathError)) {
		return false
	}
	address, ok := network.(*url.Error)
	return !ok || address.Op != "parse"
}

// isSignedOut says whether the SDK got no credentials to call with, without a word from AWS or from the network. A session of SSO that is over
// says so by itself.
func isSignedOut(err error) bool {
	return errors.As(err, new(called)) && strings.Contains(err.Error(), "get credentials: ") && !isUnreached(err)
}

// adviceOnTrouble is for a store, a queue or a provider that could not be asked.
func adviceOnTrouble(err error) string {
	var (
		topic   *outbox.TopicError
		coded   answered
		record  *idem.UnreadableError
		row     *outbox.UnreadableError
		config  *idem.ConfigError
		unheard *storage.OutcomeUnknownError
		swept   *operator.SweepError
	)
	switch {
	case errors.As(err, &config):
		return "Give another value, on the command line or in the environment. The variables are listed at " + manualPage + "#variables"
	case errors.Is(err, operator.ErrUnsettled):
		return "The cause is above, in the log line outbox.settle_failed, outbox.evidenced or outbox.evidence_weak. Remove it, and run idemctl inspect with the id: it says what settles the message then."
	case errors.Is(err, operator.ErrUndecided):
		return "Where the provider could not be asked, the cause is above, in the line idempotency.probe_unclear. Run the command again once the provider answers; the reconciler asks by itself, too."
	case errors.Is(err, operator.ErrDied):
		return "Run idemctl inspect with the id: it says what may be done about a message that is dead."
	case errors.As(err, &swept) && swept.OfOtherRelease(), errors.As(err, &topic), errors.As(err, &record), errors.As(err, &row):
		return "Another release wrote it. Use the idemctl of the release that is deployed."
	case errors.As(err, &swept):
		return "The causes are above, a line of the log for each. Remove them, and run the command again, or leave the rest to the scheduled sweep: what could not be done is due still."
	case errors.Is(err, idem.ErrScopeSecret):
		return "Give this command the scope secret that the functions have. The variables are listed at " + manualPage + "#variables"
	case errors.As(err, &unheard):
		return "The change may have been made: its reply was lost. Run idemctl inspect with the id to see whether it was, before you decide again."
	case errors.Is(err, context.DeadlineExceeded):
		return "It took longer than --within. " + adviceTrouble
	case errors.Is(err, context.Canceled):
		return "You have stopped it. If it was a change with --write, run idemctl audit: it shows whether it was made."
	case errors.As(err, &coded):
		return adviceOnAWS(coded.ErrorCode())
	case isSignedOut(err):
		return adviceSignIn
	case strings.Contains(err.Error(), missingRegion):
		return "Set AWS_REGION, in the environment or in a file that you give with --env-file."
	case errors.As(err, new(*fs.PathError)):
		return "Look at that file: its folder must be there, and it must be one that you may use, on a disk that has room. " + adviceTrouble
	case isUnreached(err):
		return "Check the network, AWS_REGION, and that you have credentials. " + adviceTrouble
	}
	return adviceTrouble
}

// adviceOnAWS is for an error of AWS, by its code.
func adviceOnAWS(code string) string {
	switch {
	case strings.Contains(code, "Expired"), strings.Contains(code, "Token"), code == "UnrecognizedClientException", code == "InvalidClientTokenId",
		code == "UnauthorizedException", code == "InvalidGrantException": // of a session of SSO
		return adviceSignIn
	case strings.Contains(code, "AccessDenied"), strings.Contains(code, "NotAuthorized"):
		return "Your credentials may not do this. The message names the action: have it added to them, and run the command again."
	case code == "ResourceNotFoundException", strings.Contains(code, "NonExistentQueue"), strings.Contains(code, "QueueDoesNotExist"):
		return "There is no such table, queue or secret in this account and Region. Check AWS_REGION, your credentials, and that --env-file is of the right stage."
	}
	return adviceTrouble
}
