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
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/lastlook"
)

// Transport returns a transport whose requests leave only while the execution of their context holds a lease that the
// store has confirmed. A request that may not leave fails with an error that wraps [idem.ErrLeaseOver]: nothing was sent.
// The context must be the handler's, or one derived from it; with any other context nothing is sent. A request that is
// executed without protection has no lease, and its calls leave: see [idem.Leased]. A nil base is [http.DefaultTransport].
// The base must not make requests of its own, such as one for a token, with the request's context, or with one that has its
// values: what becomes of them would be taken for what became of the request.
//
// The lease is looked at before anything is done, and again once there is a connection, because a process may be frozen
// while it waits for one. That needs a base which calls the hooks of net/http/httptrace, as [*http.Transport] does and what
// wraps it. With any other one the lease is looked at again where the body is read, and what is stopped then fails with an
// error that is not ErrLeaseOver, because its head may have left. So does every request of which a part may have left, one
// that the base sends again after its connection broke, and one that a redirect leads to: the request before it was sent.
// Over HTTP/2 a part may have left of each request that had a connection in time. There a process that is frozen with the
// connection at hand sends the head after its lease, but not the body. Where a provider acts on a path alone, such as a
// capture, choose a transport without HTTP/2.
//
// The lease is looked at again at each piece of the body that is read. The last one that was read under the lease may leave
// after it where the process is frozen before it is written: 32 KiB over HTTP/1.1, which are written at once, and over HTTP/2
// a frame, 16 KiB where the server allows no more, which may wait for its turn.
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{base}
}

type transport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	leased := func() error { return idem.Leased(r.Context()) }
	if err := leased(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, stopped(r, err, false)
	}
	looks, ctx, stop := lastlook.New(r.Context(), leased)
	res, err := t.base.RoundTrip(watched(r.WithContext(ctx), looks))
	if err != nil {
		stop()
		late := context.Cause(ctx)
		if !errors.Is(late, idem.ErrLeaseOver) {
			return nil, err
		}
		return nil, stopped(r, late, looks.Left.Load() || !looks.Asked.Load()) // without hooks nobody knows whether the head was sent
	}
	res.Request = r
	if _, upgraded := res.Body.(io.Writer); !upgraded && res.Body != nil { // after a 101 it is the connection, for as long as r's context
		res.Body = &answer{res.Body, stop}
	}
	return res, nil
}

// stopped is the error of a request whose lease is over. It is not ErrLeaseOver, which says that nothing was sent, where a part of the
// request may have left, or where a redirect led to it: the request before it was sent, and answered.
func stopped(r *http.Request, late error, partly bool) error {
	if partly || r.Response != nil {
		return fmt.Errorf("guard: %s %s was stopped because its lease is over, after a part of it, or the request that was redirected to it, may have left", r.Method, r.URL.Host)
	}
	return fmt.Errorf("guard: %s %s was not sent: %w", r.Method, r.URL.Host, late)
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// watched has the bodies of a request looked at, those that the base opens to send it again too.
func watched(r *http.Request, looks *lastlook.Looks) *http.Request {
	if !hasBody(r) {
		return r
	}
	r.Body = looks.Body(r.Body)
	if open := r.GetBody; open != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			body, err := open()
			if err != nil {
				return nil, err
			}
			return looks.Body(body), nil
		}
	}
	return r
}

// answer is a response's body; its request ends when the caller closes it.
type answer struct {
	io.ReadCloser
	stop func()
}

// Close implements io.Closer.
func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.stop()
	return err
}
