package middleware

import (
	"errors"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// firstSent reads Idempotency-First-Sent, whatever the policy; nil where the client sends none, or no key that it could
// be about.
func firstSent(r *http.Request, key string) (*time.Time, *refusal) {
	if key == "" {
		return nil, nil
	}
	sent, err := header.ParseFirstSent(r.Header.Values(header.NameFirstSent))
	var malformed *header.InvalidError
	switch {
	case err == nil:
		return &sent, nil
	case errors.Is(err, header.ErrMissing):
		return nil, nil
	case errors.As(err, &malformed):
		return nil, refuse(http.StatusBadRequest, header.CodeKeyInvalid, "Idempotency-First-Sent invalid",
			"The Idempotency-First-Sent header is refused: "+string(malformed.Reason)+".")
	}
	return nil, refuse(http.StatusBadRequest, header.CodeKeyInvalid, "Idempotency-First-Sent invalid", "The Idempotency-First-Sent header is empty.")
}

// expired is the answer where the key's time is over: 412 where the client's own time says so, else 410.
func expired(err *idem.ExpiredError) idem.Response {
	const title = "Idempotency-Key expired"
	if err.FirstSent {
		return idem.NewProblem(http.StatusPreconditionFailed, header.CodeKeyExpired, title,
			"The request was first sent longer ago than results are kept, and no result of it is left. It may have been executed then; nothing is executed now.").Response()
	}
	return idem.NewProblem(http.StatusGone, header.CodeKeyExpired, title,
		"The time of this key is over: what became of it is no longer kept. Nothing is executed.").Response()
}

// untimely is the answer to a request without a record whose time can't be right.
func untimely(err *idem.KeyTimeError) idem.Response {
	return idem.NewProblem(http.StatusBadRequest, header.CodeKeyInvalid, "Idempotency-Key invalid", "The request is refused: "+string(err.Reason)+".").Response()
}
