package middleware

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/idem-go/idem-aws/idem"
)

// made is what a handler answered.
type made struct {
	status int
	body   []byte
	// unstored are the headers that go with a first execution and with no replay: Set-Cookie and the like.
	unstored []idem.Field
	// truncated says that the body is only the beginning of what the handler wrote.
	truncated bool
}

// keep remembers what the handler answered and returns what of it may be stored.
func (c *call) keep(response idem.Response, truncated bool) idem.Response {
	c.made = made{status: response.Status, body: response.Body, truncated: truncated}
	stored := make([]idem.Field, 0, len(response.Header))
	for _, f := range response.Header {
		f.Name = textproto.CanonicalMIMEHeaderKey(f.Name)
		switch {
		case slices.Contains(connectionHeaders, f.Name):
		case c.endpoint.policy.Replays(f.Name):
			stored = append(stored, f)
		default:
			c.made.unstored = append(c.made.unstored, f)
		}
	}
	response.Header = stored
	return response
}

// connectionHeaders belong to the connection (RFC 9110 section 7.6.1) or follow from the body: the server makes its own.
var connectionHeaders = []string{"Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// transact makes the engine's handler of a transactional one.
func (c *call) transact(h Handler) idem.Handler {
	return func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
		response, err := h(ctx, tx, c.request.copy(ctx))
		if err != nil {
			return idem.Response{}, err
		}
		return c.keep(response, false), nil
	}
}

// record makes the engine's handler of an existing one.
func (c *call) record(h http.Handler) idem.Handler {
	return func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
		w := &recorder{header: http.Header{}, tooLate: func() { c.answeredTooLate(ctx) }}
		if len(c.request.defaultType) > 0 {
			w.header["Content-Type"] = slices.Clone(c.request.defaultType)
		}
		defer w.over.Store(true)
		r := c.request.copy(ctx).HTTP
		r.Header.Del("Accept-Encoding") // a retry that accepts no coding gets the same answer
		h.ServeHTTP(w, r)
		if ctx.Err() != nil && w.status == 0 {
			// It gave up without a word: an empty 200 would be a guess.
			return idem.Response{}, errors.Join(errNoAnswer, ctx.Err())
		}
		return c.keep(w.response(), w.truncated), nil
	}
}

// answeredTooLate tells of an answer that nobody gets: what the handler had written when it returned is stored and sent. A
// framework that answers a handler's error outside of its middlewares, as echo does, would so turn each error into a success.
func (c *call) answeredTooLate(ctx context.Context) {
	c.endpoint.m.cfg.Logger.ErrorContext(ctx, "wrapped handler answered too late: it had returned, and what it had written then counts, an empty 200 if nothing; answer errors inside of the protection",
		"operation", c.endpoint.operation.Operation().Name)
}

var (
	errNoAnswer  = errors.New("middleware: the wrapped handler ran out of time before it answered")
	errLateWrite = errors.New("middleware: the wrapped handler wrote after it had returned: its answer was taken then")
)

// recordedBytesMax is above the largest response that an engine stores, so that what was cut off here is always too large
// there, and takes the way of all responses that are.
const recordedBytesMax = 4 << 20

// recorder is the ResponseWriter of a recorded handler. It buffers; it is neither an http.Flusher nor an http.Hijacker.
type recorder struct {
	header http.Header
	// front is the coding that somebody in front of the protection has announced on that header, and does to what the handler writes.
	front []string
	// sent is the header as it was when the status was written: later changes count for nothing, as in net/http.
	sent      http.Header
	status    int
	body      []byte
	truncated bool
	// over says that the handler has returned. What is written from then on counts for nothing; tooLate hears of it, once.
	over    atomic.Bool
	late    sync.Once
	tooLate func()
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Informational responses are not recorded, and only the first other counts.
func (w *recorder) WriteHeader(status int) {
	if w.over.Load() {
		w.late.Do(w.tooLate)
		return
	}
	if w.status != 0 || status >= 100 && status < 200 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
	if len(w.front) > 0 && slices.Equal(w.sent["Content-Encoding"], w.front) {
		w.sent.Del("Content-Encoding")
	}
}

// Write implements http.ResponseWriter. It takes everything, so that a handler with too much to say still ends in order.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.over.Load() {
		return 0, errLateWrite
	}
	if bodyless(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	room := recordedBytesMax - len(w.body)
	if len(p) > room {
		w.truncated = true
	}
	w.body = append(w.body, p[:min(len(p), room)]...)
	return len(p), nil
}

func bodyless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// response is what was recorded, its headers in the order of their names.
func (w *recorder) response() idem.Response {
	w.WriteHeader(http.StatusOK)
	response := idem.Response{Status: w.status, Body: w.body}
	for _, name := range slices.Sorted(maps.Keys(w.sent)) {
		for _, value := range w.sent[name] {
			response.Header = append(response.Header, idem.Field{Name: name, Value: value})
		}
	}
	if _, set := w.sent["Content-Type"]; !set && len(w.body) > 0 && w.sent.Get("Content-Encoding") == "" {
		// What net/http would have sent, so that every replay says the same.
		response = response.With("Content-Type", http.DetectContentType(w.body))
	}
	return response
}
