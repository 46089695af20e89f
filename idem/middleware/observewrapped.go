package middleware

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/bounded"
)

// observedExchange is the one run of a wrapped handler that is only observed. The handler gets the client's own request and
// writes to the client itself; whatever the engine does or fails to do about it changes nothing.
type observedExchange struct {
	endpoint *endpoint
	request  *http.Request
	client   *tee
	ran      bool
	panicked any
}

// observeWrapped serves a request at a wrapped handler in observe mode.
func (e *endpoint) observeWrapped(w http.ResponseWriter, r *http.Request) {
	var o *observedExchange
	var identity Identity
	refused := e.m.guard(r, func() answer {
		var refused *refusal
		if identity, refused = e.m.identify(r); refused != nil {
			return answer{response: refused.response}
		}
		w.Header().Set(header.NameStatus, statusUnprotected)
		// The body is put back after it was read: into a copy, because the request is the server's.
		o = &observedExchange{endpoint: e, request: r.WithContext(r.Context()), client: &tee{ResponseWriter: w, recorder: recorder{header: w.Header(), front: slices.Clone(w.Header()["Content-Encoding"])}}}
		o.observe(identity)
		return answer{}
	})
	switch {
	case o == nil:
		e.m.write(w, refused)
	case !o.ran:
		e.unprotected(w, o.request, identity)
	case o.panicked != nil:
		panic(o.panicked) // as it would have without anybody in between
	}
}

// observe asks the engine to execute, which runs the handler where the key is free, and reports what the policy would
// have answered instead of what the client gets.
func (o *observedExchange) observe(identity Identity) {
	ctx := o.request.Context()
	c := &call{endpoint: o.endpoint, request: &Request{HTTP: o.request, Identity: identity}}
	var refused *refusal
	if refused = o.peek(c.request); refused != nil {
		c.report(ctx, answer{response: refused.response}, nil)
		return
	}
	enforced, result, err := c.enforce(ctx, func(handling context.Context, _ *idem.Tx) (idem.Response, error) { return o.run(handling, c) })
	switch {
	case !o.ran:
		c.report(ctx, enforced, result)
	case c.overruled != nil:
		c.reportOverruled(ctx)
	case o.proves(result, err):
		if enforced.response.Status != o.client.recorder.status {
			c.report(ctx, enforced, result)
		}
	default:
		parked := &idem.Result{Outcome: idem.OutcomeUnknown}
		c.report(ctx, c.answer(ctx, parked), result)
	}
}

// proves says whether the run leaves something to replay, or proof that nothing happened. After any other one every retry
// would get the answer of an unknown outcome.
func (o *observedExchange) proves(result *idem.Result, err error) bool {
	var handler *idem.HandlerError
	if o.endpoint.operation.Operation().SafeToRunAgain {
		return true
	}
	return !errors.As(err, &handler) && (result == nil || result.State != storage.StateUnknown)
}

// run runs the handler, with what it would have without anybody in between: the client's context too, with which it ends. What it writes
// bears the operation id of the record, under which a probe looks it up.
func (o *observedExchange) run(handling context.Context, c *call) (idem.Response, error) {
	o.ran = true
	defer func() {
		if o.panicked = recover(); o.panicked != nil {
			panic(o.panicked)
		}
	}()
	o.endpoint.passThrough.ServeHTTP(o.client.handed(), o.request.WithContext(idem.Observing(o.request.Context(), handling)))
	if o.client.taken {
		return idem.Response{}, errTaken
	}
	if err := o.request.Context().Err(); err != nil && o.client.recorder.status == 0 {
		return idem.Response{}, errors.Join(errNoAnswer, err)
	}
	return c.keep(o.client.recorder.response(), o.client.recorder.truncated), nil
}

// peek reads the body into what is asked, as [endpoint.read] does, and puts it back for the handler, whole.
func (o *observedExchange) peek(asked *Request) *refusal {
	if refused := o.endpoint.checkMediaType(o.request); refused != nil {
		return refused
	}
	bytesMax, rest := o.endpoint.m.cfg.BodyBytesMax, o.request.Body
	body, longer, err := bounded.Read(rest, int64(bytesMax))
	o.request.Body = putBack{io.MultiReader(bytes.NewReader(body), rest), rest}
	switch {
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		return invalid("The request body could not be read.")
	case longer:
		return tooLarge()
	}
	asked.Body, asked.consumed = bytes.Clone(body), consumed(o.request, body, err)
	return nil
}

// putBack is a body that is read from its beginning again.
type putBack struct {
	io.Reader
	io.Closer
}

// tee records what it passes on.
type tee struct {
	http.ResponseWriter
	recorder recorder
	// taken says that the handler has taken the connection over: what it answers is not seen.
	taken bool
}

var errTaken = errors.New("middleware: the wrapped handler took the connection over: its answer was not seen")

// WriteHeader implements http.ResponseWriter.
func (t *tee) WriteHeader(status int) {
	t.recorder.WriteHeader(status)
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *tee) Write(p []byte) (int, error) {
	_, _ = t.recorder.Write(p) // where no body is allowed, the client's own writer says so
	return t.ResponseWriter.Write(p)
}

// Flush implements http.Flusher; where the client's writer is none it does nothing.
func (t *tee) Flush() {
	t.recorder.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(t.ResponseWriter).Flush()
}

// hijackable is a tee whose client's writer is an http.Hijacker.
type hijackable struct{ *tee }

// Hijack implements http.Hijacker.
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.taken = h.taken || err == nil
	return conn, buffered, err
}

// handed is what the handler gets. It can take the connection over where it could without being observed, and nowhere else.
func (t *tee) handed() http.ResponseWriter {
	for w := t.ResponseWriter; ; {
		if _, ok := w.(http.Hijacker); ok {
			return hijackable{t}
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return t
		}
		w = inner.Unwrap()
	}
}

// Unwrap is for http.ResponseController.
func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }
