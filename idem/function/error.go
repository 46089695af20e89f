package function

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
)

// ErrMismatch: the key belongs to another input. Nothing was executed.
var ErrMismatch = errors.New("function: the key belongs to another input")

// InputError: the input can't be decoded, or it has no fingerprint because it is too large or JSON that can be read in two ways.
// Nothing was executed, and nothing will be, however often the input comes again.
type InputError struct {
	// Err says why: an error of encoding/json, or one of package canonical.
	Err error
}

// Error implements error.
func (e *InputError) Error() string { return "function: unusable input: " + unreadable(e.Err) }

// unreadable says why an input can't be read, and nothing of what is in it: errors end up in logs, and a decoder's own may quote a whole
// string of the input. Those of package canonical do not.
func unreadable(err error) string {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	var malformed *canonical.SyntaxError
	switch {
	case errors.As(err, &malformed), errors.Is(err, canonical.ErrTooLarge):
		return err.Error()
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is no JSON at byte %d", syntax.Offset)
	case errors.As(err, &mistyped):
		return fmt.Sprintf("byte %d: what %q is there does not fit into a %s", mistyped.Offset, mistyped.Field, mistyped.Type)
	}
	return "it can't be decoded: a type of its fields refuses what is there"
}

// Unwrap returns Err.
func (e *InputError) Unwrap() error { return e.Err }

// unusable makes an [*InputError] of what the engine says of an input. What a handler returned is the handler's.
func unusable(err error) error {
	var handler *idem.HandlerError
	var malformed *canonical.SyntaxError
	if !errors.As(err, &handler) && (errors.As(err, &malformed) || errors.Is(err, canonical.ErrTooLarge)) {
		return &InputError{err}
	}
	return err
}

// ErrOutputNotKept: the wrapped function has run, and its output was too large to be stored. [idem.ErrResponseTooLarge] says of
// the other kinds that nothing was committed.
var ErrOutputNotKept = errors.New("function: the function has run; its output was too large to be stored")

// InProgressError: another execution holds the key. Nothing was executed; its holder may still fail, so a queue's
// duplicate is not done with.
type InProgressError struct {
	// RetryAfter is when to ask again.
	RetryAfter time.Duration
}

// Error implements error.
func (e *InProgressError) Error() string {
	return "function: another execution with the key is in progress"
}

// UnknownError: an earlier, wrapped execution may or may not have had its effect. It is never executed again; only
// reconciliation or an operator may decide.
type UnknownError struct {
	// OperationID is what the operator is told.
	OperationID idem.OperationID
	// RetryAfter is when to ask again.
	RetryAfter time.Duration
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("function: the outcome of %s is unknown", e.OperationID)
}

// StoredError is a stored result that is no success; every call with the key gets it until it expires. It is a handler's
// rejection, or how a deferred operation failed, or stands for the output of a wrapped function that was too large to be
// stored: errors.Is(err, [ErrOutputNotKept]) then.
type StoredError struct {
	// Response is what is stored. Its body is a problem document where the handler rejected.
	Response idem.Response
	// Replayed says that nothing was executed for this call.
	Replayed bool
	// OperationID names the operation that it is stored for.
	OperationID idem.OperationID
}

// Error implements error. It never quotes more of the response than its code.
func (e *StoredError) Error() string {
	problem, _ := e.Problem()
	return fmt.Sprintf("function: the stored result of %s is a failure: %d %s", e.OperationID, e.Response.Status, problem.Code)
}

// Problem returns the problem that the response is, and whether it is one. A rejection always is.
func (e *StoredError) Problem() (idem.Problem, bool) {
	var problem idem.Problem
	if e.Response.Get("Content-Type") != "application/problem+json" || json.Unmarshal(e.Response.Body, &problem) != nil {
		return idem.Problem{}, false
	}
	return problem, true
}

// Unwrap returns [ErrOutputNotKept] for an output that could not be stored. Earlier releases stored it under the other code,
// which no operation stores that commits what it wrote.
func (e *StoredError) Unwrap() error {
	switch problem, _ := e.Problem(); problem.Code {
	case header.CodeResponseNotKept, header.CodeResponseTooLarge:
		return ErrOutputNotKept
	}
	return nil
}
