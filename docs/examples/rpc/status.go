package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
)

// Domain is that of the ErrorInfo in each status of this package. Its reason is the code that the HTTP contract has.
const Domain = "idem"

// problem makes a status with an ErrorInfo, and a RetryInfo where the same call may be sent again.
func problem(code codes.Code, reason, message string, retryAfter time.Duration) *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: Domain}}
	if retryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	}
	bare := status.New(code, message)
	if s, err := bare.WithDetails(details...); err == nil {
		return s
	}
	return bare
}

// outcome is the status of a call that nothing was executed for. ABORTED is gRPC's word for a conflict with another call, and
// what HTTP's 409 becomes; UNAVAILABLE would make clients and balancers think that the server is down.
func outcome(op idem.Operation, result *idem.Result) *status.Status {
	switch result.Outcome {
	case idem.OutcomeInProgress:
		return problem(codes.Aborted, header.CodeInProgress, "a call with this key is in progress; send it again later", result.RetryAfter)
	case idem.OutcomeUnknown:
		return problem(codes.Aborted, header.CodeOutcomeUnknown, "an earlier call with this key may or may not have been executed; "+whoDecides(op, result)+"; the call is not executed again", result.RetryAfter)
	case idem.OutcomeMismatch:
		return problem(codes.FailedPrecondition, header.CodeKeyReused, "this key was used before, with another request", 0)
	default:
		return status.New(codes.Internal, "the call failed")
	}
}

// whoDecides says who finds out what became of the earlier call.
func whoDecides(op idem.Operation, result *idem.Result) string {
	switch {
	case result.OnlyObserved:
		return "it came before this API was protected, and only the API's operator can find out"
	case op.Probed:
		return "it is being resolved"
	}
	return "it waits for the API's operator"
}

// refusal is the status of an error. What is not the caller's to know stays in the log.
func refusal(err error) *status.Status {
	var invalid *header.InvalidError
	var handler *idem.HandlerError
	switch {
	case errors.Is(err, header.ErrMissing), errors.Is(err, header.ErrEmpty):
		return problem(codes.InvalidArgument, header.CodeKeyMissing, "the metadata idempotency-key is missing", 0)
	case errors.As(err, &invalid):
		return problem(codes.InvalidArgument, header.CodeKeyInvalid, "the metadata idempotency-key is invalid: "+string(invalid.Reason), 0)
	case errors.As(err, &handler) && errors.Is(err, context.DeadlineExceeded):
		// A wrapped handler may have had its effect: a client that reads that it had none pays again, under another key.
		return status.New(codes.DeadlineExceeded, "the call ran out of time")
	case errors.As(err, &handler):
		return status.New(codes.Internal, "the call failed")
	case errors.Is(err, canonical.ErrTooLarge):
		return status.New(codes.ResourceExhausted, "the request is too large")
	}
	if p, retryAfter, ok := idem.ProblemOf(err); ok {
		return problem(codeOf(p), p.Code, message(p, retryAfter), retryAfter)
	}
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.New(codes.Internal, "the call failed")
}

// message is the problem's detail, but where that says by which headers of HTTP to come again.
func message(p idem.Problem, retryAfter time.Duration) string {
	if retryAfter > 0 {
		return p.Title + ": nothing was acknowledged; send the call again with the same key"
	}
	return p.Detail
}

// codeOf translates the problem of a call that nothing was executed for.
func codeOf(p idem.Problem) codes.Code {
	switch {
	case p.Code == header.CodeNoTime:
		return codes.DeadlineExceeded
	case p.Status == http.StatusServiceUnavailable:
		return codes.Unavailable
	case p.Status == http.StatusTooManyRequests:
		return codes.ResourceExhausted
	}
	return problemCode(p.Status)
}

// refused is the status of an answer that is no message of Protocol Buffers. A problem's code becomes the reason.
func refused(response idem.Response) *status.Status {
	var p idem.Problem
	if response.Get("Content-Type") != "application/problem+json" || json.Unmarshal(response.Body, &p) != nil {
		return status.New(codes.Internal, "the call has ended; its answer is none of an RPC")
	}
	return problem(problemCode(response.Status), p.Code, p.Detail, 0)
}

// problemCode is the code of a problem that is stored: its call is over, so none of these asks for the same call again.
func problemCode(httpStatus int) codes.Code {
	switch {
	case httpStatus == http.StatusBadRequest:
		return codes.InvalidArgument
	case httpStatus == http.StatusForbidden:
		return codes.PermissionDenied
	case httpStatus == http.StatusNotFound:
		return codes.NotFound
	case httpStatus >= 400 && httpStatus <= 499:
		return codes.FailedPrecondition
	}
	return codes.Internal
}

// httpStatus is what a policy reads of a code: whether an answer like this is stored. A call that was cancelled, or ran out of
// time, proves nothing: the handler's own call may have arrived. So both are a 504, which no policy here stores and ReleaseOn
// can't name. A 408 is stored under StoreClientErrors.
func httpStatus(code codes.Code) int {
	switch code {
	case codes.OK:
		return http.StatusOK
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists, codes.Aborted:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded, codes.Canceled:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
