package client

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// ErrUnknown is what errors are (errors.Is) after which the operation may have happened or may yet happen: no new key may be
// used. Asking again with the same key is safe, and the only safe thing to do, but not after an [ExpiredError], nor after a
// [GaveUpError] of [ReasonUnprotected]: look at the resource then.
var ErrUnknown = errors.New("client: the outcome is unknown")

// MismatchError says that the key belongs to another request: 422, or 400 by the server's policy. Nothing was executed now,
// and asking again changes nothing. It is [ErrUnknown] where an earlier attempt with the key may have been executed.
type MismatchError struct {
	// Key is the key that was sent.
	Key string
	// Problem is the server's answer.
	Problem idem.Problem
	// Earlier says that the request was sent before, or that the key was given or journalled before.
	Earlier bool
}

// Error shows the key as a hash.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("client: key %s was used before with another request (%d %s)", hash(e.Key), e.Problem.Status, plain(e.Problem.Code))
}

// Is says that the error is [ErrUnknown], where there was an earlier attempt.
func (e *MismatchError) Is(target error) bool { return e.Earlier && target == ErrUnknown }

// OutcomeUnknownError says that the server does not know whether the operation happened, and is finding out. It never
// executes it again under this key; the same request may ask again, not before RetryAfter. It is [ErrUnknown].
type OutcomeUnknownError struct {
	// Key is the operation's key.
	Key string
	// RetryAfter is when to ask again; 0 where the server names no time.
	RetryAfter time.Duration
	// Problem is the server's, empty where it was the operation's status that said so.
	Problem idem.Problem
}

// Error shows the key as a hash.
func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("client: the server does not know the outcome of key %s yet; ask again after %v", hash(e.Key), e.RetryAfter)
}

// Is says that the error is [ErrUnknown].
func (e *OutcomeUnknownError) Is(target error) bool { return target == ErrUnknown }

// ExpiredError says that the server no longer has, or may no longer have, what became of the key: it answered 410 or 412,
// or the operation's status is gone, or the key is older than Config.KeyAgeMax, or of unknown age, and was not sent (again).
// The operation may have happened: only the resource itself tells. It is [ErrUnknown], but asking again is not safe here: the
// same key might execute anew.
type ExpiredError struct {
	// Key is the operation's key.
	Key string
	// Age is how old the key is at least; 0 where it was the server that said so. It is negative where the key's first use lies
	// more than two minutes ahead: a clock was wrong then or is wrong now, and nobody knows how old the key is.
	Age time.Duration
	// Problem is the server's; empty where Age is not 0.
	Problem idem.Problem
}

// Error shows the key as a hash.
func (e *ExpiredError) Error() string {
	switch {
	case e.Age < 0:
		return fmt.Sprintf("client: key %s was first used %v from now: a clock was or is wrong, and its record may be gone", hash(e.Key), -e.Age)
	case e.Age > 0:
		return fmt.Sprintf("client: key %s is %v old: its record may be gone", hash(e.Key), e.Age)
	}
	return fmt.Sprintf("client: the record of key %s is gone (%d %s)", hash(e.Key), e.Problem.Status, plain(e.Problem.Code))
}

// Is says that the error is [ErrUnknown].
func (e *ExpiredError) Is(target error) bool { return target == ErrUnknown }

// Reason is why the client gave up.
type Reason string

// The reasons for giving up.
const (
	ReasonCanceled   Reason = "the context ended"
	ReasonAttempts   Reason = "all attempts are used up"
	ReasonElapsed    Reason = "the time is used up"
	ReasonRetryAfter Reason = "the server asks to wait for longer than the client may"
	ReasonPermanent  Reason = "trying again can't help"
	// ReasonRefused: 401 or 403, which come before the key is looked at, or from a handler whose answer is not stored. They say
	// nothing about the attempts before.
	ReasonRefused Reason = "the request was refused after an earlier attempt, which may have been executed"
	// ReasonUnproven: an answer that nothing marks as a stored one, such as the 404 of a route that is gone, the 413 of
	// a gateway or the redirect of a login page. It says nothing about the attempts before.
	ReasonUnproven Reason = "the answer is not marked as a stored one, after an earlier attempt"
	// ReasonUnprotected: an answer has Idempotency-Status: unprotected or ignored, and it is from 300 on, broke off after its head, or
	// is a 202 whose end Await did not see. Each attempt that arrived may have been executed, and another one may be, too: look at the
	// resource.
	ReasonUnprotected Reason = "the server says that the key protects nothing there: another attempt may execute again"
)

// GaveUpError says that the client stopped asking before there was an answer. It is [ErrUnknown]: ask again with its
// key, but look at the resource where the reason is [ReasonUnprotected].
type GaveUpError struct {
	// Reason says what made the client stop.
	Reason Reason
	// Key is the operation's key: send it again to learn what became of the operation, unless Reason is ReasonUnprotected.
	Key string
	// Attempts is how often the client asked. Sends is how often one was written to a connection, as far as
	// Config.Base reports it by net/http/httptrace. From Await, Attempts is how often it asked for the status.
	Attempts, Sends int
	// Elapsed is the time from the call until the client stopped.
	Elapsed time.Duration
	// Status is that of the last attempt's answer, 0 where it had none; Code is its problem's, if any.
	Status int
	Code   string
	// RetryAfter is what the last answer asked for; 0 where it didn't.
	RetryAfter time.Duration
	// Cause is the context's error or the last attempt's; nil where that had an answer.
	Cause error
}

// Error shows the key as a hash, and of the cause what holds no payload.
func (e *GaveUpError) Error() string {
	s := fmt.Sprintf("client: outcome of key %s unknown after %d attempts in %v: %s", hash(e.Key), e.Attempts, e.Elapsed, e.Reason)
	if e.Status != 0 {
		s += fmt.Sprintf("; last answer %d %s", e.Status, e.Code)
	}
	if e.Cause != nil {
		s += ": " + describe(e.Cause)
	}
	return s
}

// Is says that the error is [ErrUnknown].
func (e *GaveUpError) Is(target error) bool { return target == ErrUnknown }

// Unwrap returns the cause.
func (e *GaveUpError) Unwrap() error { return e.Cause }

// KeyError refuses a request before it is sent because of its key. It never quotes it. It is [ErrUnknown] where an earlier call may
// have sent the operation: call again with the same name or key once the cause is mended.
type KeyError struct {
	// Rule says what is wrong with the key.
	Rule string
	// Cause is the error behind it, such as the journal's; nil where there is none.
	Cause error
	// Earlier says that an earlier call may have been sent: the request names an operation, and no journal said that it is new; or
	// its key was given, and can be one that was sent.
	Earlier bool
}

// Error implements error.
func (e *KeyError) Error() string {
	if e.Cause != nil {
		return notSent(e.Earlier) + e.Rule + ": " + e.Cause.Error()
	}
	return notSent(e.Earlier) + e.Rule
}

func notSent(earlier bool) string {
	if earlier {
		return "client: not sent by this call, but perhaps by an earlier one: "
	}
	return "client: not sent: "
}

// Is says that the error is [ErrUnknown], where an earlier call may have been sent.
func (e *KeyError) Is(target error) bool { return e.Earlier && target == ErrUnknown }

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Cause }

// BodyError refuses a request before it is sent: its body could not be sent a second time. It is [ErrUnknown] where an earlier call
// may have sent the operation.
type BodyError struct {
	// BytesMax is the bound that the body exceeds; 0 where it could not be read.
	BytesMax int64
	// Cause is the error of reading the body; nil where the body was too long.
	Cause error
	// Earlier says that an earlier call may have been sent: the request names an operation, or its key was given.
	Earlier bool
}

// Error implements error.
func (e *BodyError) Error() string {
	if e.Cause != nil {
		return notSent(e.Earlier) + "the body can't be read: " + e.Cause.Error()
	}
	return notSent(e.Earlier) + fmt.Sprintf("the body has no GetBody and more than %d bytes to buffer", e.BytesMax)
}

// Is says that the error is [ErrUnknown], where an earlier call may have been sent.
func (e *BodyError) Is(target error) bool { return e.Earlier && target == ErrUnknown }

// Unwrap returns the cause.
func (e *BodyError) Unwrap() error { return e.Cause }

// hash is what errors and logs show in place of a key: it is the same for the same key, and no more.
func hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "#" + hex.EncodeToString(sum[:8])
}

// safe are the errors whose text is known to hold nothing of what was sent or received.
var safe = []error{errAttemptTimeout, errAnswerTooLong, errLocation, errRedirect, errStatusDocument, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed}

// describe is an error's text where it can't hold a payload, else its type: net/http quotes malformed answers.
func describe(err error) string {
	var network *net.OpError
	if errors.As(err, &network) {
		return network.Error()
	}
	for _, known := range safe {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprintf("%T", err)
}
