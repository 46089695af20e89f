// Package guard stops HTTP calls that a handler would send after its execution's lease is over. From then on other
// processes may treat the execution as dead, and a call that leaves late could have its effect beside theirs.
//
// Use it in wrapped handlers, for the client that calls a provider. Atomic and deferred handlers need no guard,
// because they call no provider: their effects are made by package outbox. The request's context must be the one that
// the handler was given:
//
//	client := &http.Client{Transport: guard.Transport(http.DefaultTransport)}
package guard

import (
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
)

// Transport returns a transport whose requests leave only while the execution of their context holds a lease that the
// store has confirmed. A request that may not leave fails with an error that wraps [idem.ErrLeaseOver]: nothing was sent.
// The context must be the handler's, or one derived from it; with any other context nothing is sent. A request that is
// executed without protection has no lease, and its calls leave: see [idem.Leased]. A nil base is [http.DefaultTransport].
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{base}
}

type transport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := idem.Leased(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, fmt.Errorf("guard: %s %s was not sent: %w", r.Method, r.URL.Host, err)
	}
	return t.base.RoundTrip(r)
}
