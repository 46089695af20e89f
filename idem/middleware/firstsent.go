package middleware

import (
	"errors"
	"net/http"
	"time"

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
