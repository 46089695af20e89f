package idem

import (
	"errors"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ProblemOf returns the problem that a client gets for an error of [Registered.Do], [Registered.Lookup], [Engine.Status] or
// [Engine.Await], and after how long the client may send the same request again; 0 where the error names no time. Package
// middleware answers with it. A transport of another kind, such as an RPC, translates its Status and its Code.
//
// It is not ok for a [*HandlerError], which is what the application makes of it, nor for the errors of package canonical, which
// are about the request (400 or 413), nor for a [*RejectedError] whose status is not a 4xx, nor for any other error: answer that
// with 500 and without its cause. A problem never holds the error's text, so log the error.
func ProblemOf(err error) (_ Problem, retryAfter time.Duration, ok bool) {
	var (
		handler  *HandlerError
		rejected *RejectedError
		down     *UnavailableError
		over     *QuotaError
		expired  *ExpiredError
		keyTime  *KeyTimeError
	)
	switch {
	case errors.As(err, &handler): // first: what it wraps is the handler's
		return Problem{}, 0, false
	case errors.As(err, &rejected) && rejected.stands():
		return rejected.Problem, 0, true
	case errors.Is(err, ErrResponseTooLarge):
		return NewProblem(http.StatusInternalServerError, header.CodeResponseTooLarge, "Response too large",
			"The response is too large to be stored; nothing was committed."), 0, true
	case errors.As(err, &down):
		return unavailableProblem(down), down.RetryAfter, true
	case errors.As(err, &over):
		return NewProblem(http.StatusTooManyRequests, header.CodeQuotaExceeded, "Quota exceeded",
			"The limit of "+over.Limit+" is used up. Nothing was executed; send the request again after Retry-After."), over.RetryAfter, true
	case errors.As(err, &expired):
		return expiredProblem(expired), 0, true
	case errors.As(err, &keyTime):
		return NewProblem(http.StatusBadRequest, header.CodeKeyInvalid, "Idempotency-Key invalid",
			"The request is refused: "+string(keyTime.Reason)+"."), 0, true
	case errors.Is(err, storage.ErrErased):
		return NewProblem(http.StatusGone, header.CodeResponseErased, "Response erased",
			"What is stored for this tenant was encrypted under a key that was erased. Nothing is executed, and no earlier answer can be given."), 0, true
	}
	return Problem{}, 0, false
}

// notKept is stored for a wrapped operation whose own response does not fit: its effect has happened. It has a code of its own,
// because of the other kinds nothing was committed then.
func notKept() Response {
	return NewProblem(http.StatusInternalServerError, header.CodeResponseNotKept, "Response not kept",
		"The request was executed; its response is too large to be stored or returned.").Response()
}

// unavailableProblem says why nothing was acknowledged.
func unavailableProblem(err *UnavailableError) Problem {
	const title = "Service Unavailable"
	var before *RefusedBeforeError
	switch {
	case errors.Is(err, ErrNoTime):
		return NewProblem(http.StatusServiceUnavailable, header.CodeNoTime, title,
			"There was no time left to execute the request. Nothing was executed; send it again after Retry-After.")
	case errors.As(err, &before):
		return NewProblem(http.StatusServiceUnavailable, header.CodeRefusedBefore, title,
			"The key may have been used before records were lost. Nothing was executed; a request that is new says so with Idempotency-First-Sent.")
	}
	return NewProblem(http.StatusServiceUnavailable, header.CodeStoreUnavailable, title,
		"Nothing was acknowledged. Send the request again after Retry-After, with the same Idempotency-Key where it has one.")
}

// expiredProblem is 412 where the client's own time says that the key's time is over, else 410.
func expiredProblem(err *ExpiredError) Problem {
	const title = "Idempotency-Key expired"
	if err.FirstSent {
		return NewProblem(http.StatusPreconditionFailed, header.CodeKeyExpired, title,
			"The request was first sent longer ago than results are kept, and no result of it is left. It may have been executed then; nothing is executed now.")
	}
	return NewProblem(http.StatusGone, header.CodeKeyExpired, title,
		"The time of this key is over: what became of it is no longer kept. Nothing is executed.")
}
