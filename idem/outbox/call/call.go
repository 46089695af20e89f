// Package call sends a topic's one HTTP request to a provider, and says what is known afterwards. Use it in the Call
// of an outbox.Topic whose provider is reached by a POST. For a provider with an SDK of its own, write the Call by
// hand, and switch off that SDK's retries.
//
// It never sends twice. net/http repeats a POST by itself when a reused connection breaks, because the POST carries
// an Idempotency-Key; package call sends bodies that net/http cannot repeat. It follows no redirects and retries
// nothing: package outbox retries, by the topic's rules.
//
// # What a status means
//
// Only the provider's documentation says whether one of its refusals proves that nothing happened. So each client lists
// what 400, 401, 403, 404, 409, 422 and 429 mean there ([Config].Statuses); one that is not listed is an error at start.
// Every other status is success (2xx) or ambiguous: a gateway in between may answer with any of them after the provider
// has acted.
package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/lastlook"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
	"github.com/idem-go/idem-aws/internal/bounded"
	"github.com/idem-go/idem-aws/internal/clock"
)

// Client calls providers. It is safe for concurrent use.
type Client struct {
	http         *http.Client
	statuses     map[int]Class
	bodyBytesMax int64
	now          func() time.Time
}

// Config is a client's configuration. The zero value of each field but Statuses means its default.
type Config struct {
	// Statuses says what the provider's refusals mean. It must have 400, 401, 403, 404, 409, 422 and 429, and may have any
	// other 4xx: 402 where the provider declines by it. Any other status that is not listed is [Ambiguous].
	Statuses map[int]Class
	// Transport makes the connections; it must not retry by itself. Default http.DefaultTransport. For a provider without
	// keys choose one with DisableKeepAlives: a reused connection that breaks leaves the outcome open, and there nobody
	// may try again.
	//
	// A request whose connection failed counts as never sent only if the transport calls the hooks of net/http/httptrace, as
	// *http.Transport does and what wraps it: GetConn before it looks for a connection, and GotConn before it sends. After an
	// error of any other one, such as an adapter of another HTTP library, the outcome is [outbox.Ambiguous]. A transport that
	// fails before it sends anything, such as one without a credential, returns an error that is [ErrNotSent].
	//
	// It must not make requests of its own, such as one for a token, with the request's context, or with one that has its values: their
	// connections would be taken for the request's. Where it looks for connections to other hosts than the request's, such as a proxy,
	// and reads the body before it has one, a request whose connection failed counts as ambiguous.
	//
	// The clocks are looked at when there is a connection, over HTTP/1.1 once more right before the request leaves, and at each piece
	// of its body. Over HTTP/2 a process that is frozen with the connection at hand sends the request's head after its deadline, and
	// then ends it: its body never leaves. Where a provider without keys acts on a path alone, such as a capture, choose a transport
	// without HTTP/2. The last piece that was read in time may leave late where the process is frozen before it is written. It is
	// 32 KiB over HTTP/1.1, which are written at once, and over HTTP/2 a frame, 16 KiB where the server allows no more, which may
	// wait for its turn: a shorter body is all in it.
	Transport http.RoundTripper
	// BodyBytesMax bounds the provider's answer; a longer one is ambiguous. Default [outbox.EvidenceBytesMax]
	// (72 KiB), which is what a message keeps as evidence.
	BodyBytesMax int64
	// Now is the clock that a Retry-After with a date, and a call's deadline right before it is sent, are compared with. Default
	// time.Now.
	Now func() time.Time
}

// New returns a client, or an [*idem.ConfigError].
func New(cfg Config) (*Client, error) {
	statuses, err := classes(cfg.Statuses)
	if err != nil {
		return nil, err
	}
	if cfg.BodyBytesMax <= 0 {
		cfg.BodyBytesMax = outbox.EvidenceBytesMax
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Client{
		http: &http.Client{
			Transport:     cfg.Transport,
			CheckRedirect: NoRedirects,
		},
		statuses:     statuses,
		bodyBytesMax: cfg.BodyBytesMax,
		now:          cfg.Now,
	}, nil
}

// NoRedirects is the CheckRedirect of any [http.Client] that asks a provider something, such as that of an outbox.Topic's
// Probe: a redirect is the answer, and is not followed. What another place answers says nothing about what this provider
// did, and it must not get this provider's credential.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Request is one POST for one effect.
type Request struct {
	// URL is where the request is sent.
	URL string
	// Key is the downstream key, sent as the Idempotency-Key header: the message's id.
	Key idem.MessageID
	// Header is sent besides; Content-Type defaults to application/json. An Idempotency-Key in it is not sent: Key is. Where
	// the context carries a span, its traceparent and tracestate are sent too.
	Header http.Header
	// Body must not be empty: net/http would feel free to send a request without one twice.
	Body []byte
	// Reference reads the provider's name for what it made, or declined, from its answer. An error means that the answer
	// can't be what it seems: ambiguous. Nil reads none.
	Reference func(body []byte) (string, error)
	// Check holds an answer that would be evidence against its body, by its status a delivery or a decline. An error, which is for
	// the log, says that the body tells something else, such as an object that is still being processed or is another request's:
	// ambiguous. Nil: what the status says is true. Have probes and webhooks judge the same object alike.
	Check func(declined bool, body []byte) error
	// Rejects says of an answer whose status is [Refused] whether it is about data that only the client can change: then it
	// is an answer to the client ([outbox.Refused] Answer). Nil: none is.
	Rejects func(body []byte) bool
}

// Post sends the request once and says what is known afterwards:
//
//   - 2xx: [outbox.Delivered], unless Request.Check says that the body tells something else.
//   - A status in Config.Statuses: what its class says, with the Retry-After of one that is [NotExecuted].
//   - Requests that were provably never sent, such as over a refused connection: [outbox.NotExecuted].
//   - Any other status, time-outs, lost connections, unreadable answers: [outbox.Ambiguous].
//   - A request that can't be made, such as one without a body: [outbox.Refused].
//
// The context's end bounds it. A process that was frozen until after its deadline sends nothing more, and the outcome is ambiguous
// unless that was seen at once. Config.Transport says what may leave all the same.
func (c *Client) Post(ctx context.Context, r Request) outbox.Outcome {
	late := c.late(ctx)
	looks, ctx, stop := lastlook.New(ctx, late)
	defer stop()
	req, err := newRequest(ctx, r)
	if err != nil {
		return outbox.Refused{Cause: err}
	}
	body := looks.Body(req.Body)
	req.Body = body
	if err := ctx.Err(); err != nil {
		return outbox.NotExecuted{Unsent: true, Cause: fmt.Errorf("call: never sent: %w", err)}
	}
	if err := late(); err != nil {
		return outbox.NotExecuted{Unsent: true, Cause: fmt.Errorf("call: never sent: %w", err)}
	}
	res, err := c.http.Do(req)
	if err != nil && errors.Is(context.Cause(ctx), errLate) {
		err = errLate
	}
	switch {
	case err != nil && c.unsent(looks, req.URL, body.Begun(), err):
		return outbox.NotExecuted{Unsent: true, Cause: fmt.Errorf("call: never sent: %w", err)}
	case err != nil:
		return outbox.Ambiguous{Cause: fmt.Errorf("call: %w", err)}
	}
	defer res.Body.Close()
	return c.read(res, r)
}

// ErrNotSent is what the error of a [Config].Transport wraps to say that it sent nothing.
var ErrNotSent = errors.New("call: the transport sent nothing")

// unsent says that a request which ended in the error was never sent: without a connection nothing can have been, after a refused
// dial, an unknown name, a failed handshake.
func (c *Client) unsent(looks *lastlook.Looks, to *url.URL, begun bool, err error) bool {
	switch {
	case looks.Connected.Load():
		return false
	case looks.AskedFor(to) || errors.Is(err, ErrNotSent):
		return true
	}
	// It may have looked for a proxy, or made a request of its own and sent this one by a library without hooks: that one has read the body.
	// net/http's own transport refuses some requests before it looks for anything, and reads no body without a connection.
	return !begun && (looks.Asked.Load() || c.standard())
}

// standard says that the transport is net/http's own. http.DefaultTransport may be replaced at any time.
func (c *Client) standard() bool {
	transport := c.http.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	_, standard := transport.(*http.Transport)
	return standard
}

// late returns errLate once the context's deadline has come by either clock: while a process is frozen, its timers and the monotonic
// clock may stand still, and whoever took its absence for proof may have called.
func (c *Client) late(ctx context.Context) func() error {
	deadline, bounded := ctx.Deadline()
	return func() error {
		if bounded && clock.Over(deadline, c.now()) {
			return errLate
		}
		return nil
	}
}

var errLate = errors.New("call: the process was held up until after the call's deadline")

var errEmptyBody = errors.New("call: the request must have a body: net/http may send a request without one twice")

// newRequest takes net/http's copy of the body away: without it the transport can't send the request again.
func newRequest(ctx context.Context, r Request) (*http.Request, error) {
	if len(r.Body) == 0 {
		return nil, errEmptyBody
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	req.GetBody = nil
	for name, values := range r.Header {
		req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Idempotency-Key", string(r.Key))
	trace.Inject(ctx, req.Header)
	return req, nil
}

// read judges an answer by its status, and evidence by its body too.
func (c *Client) read(res *http.Response, r Request) outbox.Outcome {
	cause := fmt.Errorf("call: the provider answered with status %d", res.StatusCode)
	if res.StatusCode/100 == 2 {
		return c.evidence(res, r, false)
	}
	switch c.statuses[res.StatusCode] {
	case Declined:
		return c.evidence(res, r, true)
	case NotExecuted, Unauthorized:
		return outbox.NotExecuted{
			Unauthorized: c.statuses[res.StatusCode] == Unauthorized, RetryAfter: c.retryAfter(res.Header.Get("Retry-After")), Cause: cause,
		}
	case Refused:
		return outbox.Refused{Answer: c.rejection(res, r), Cause: cause}
	case Unproven:
		return outbox.Refused{Unproven: true, Cause: cause}
	case Ambiguous: // as every status that nothing was declared of
	}
	return outbox.Ambiguous{Cause: cause}
}

// rejection is a refusal that is an answer to the client; nil for any other, and for one that did not arrive whole.
func (c *Client) rejection(res *http.Response, r Request) []byte {
	if r.Rejects == nil {
		return nil
	}
	body, longer, err := bounded.Read(res.Body, c.bodyBytesMax)
	if err != nil || len(body) == 0 || longer || !r.Rejects(body) {
		return nil
	}
	return body
}

// evidence must have arrived whole: half an answer is none.
func (c *Client) evidence(res *http.Response, r Request, declined bool) outbox.Outcome {
	body, longer, err := bounded.Read(res.Body, c.bodyBytesMax)
	if err == nil && longer {
		err = fmt.Errorf("more than %d bytes", c.bodyBytesMax)
	}
	if err != nil {
		return outbox.Ambiguous{Cause: fmt.Errorf("call: answer %d: %w", res.StatusCode, err)}
	}
	reference := ""
	if r.Reference != nil {
		if reference, err = r.Reference(body); err != nil {
			return outbox.Ambiguous{Cause: fmt.Errorf("call: answer %d can't be read", res.StatusCode)}
		}
	}
	if r.Check != nil {
		if err := r.Check(declined, body); err != nil {
			return outbox.Ambiguous{Cause: fmt.Errorf("call: answer %d: %w", res.StatusCode, err)}
		}
	}
	if declined {
		return outbox.Declined{Reference: reference, Evidence: body}
	}
	return outbox.Delivered{Reference: reference, Evidence: body}
}

// retryAfterMax bounds what a provider may wish for, before it is a time.Duration.
const retryAfterMax = 24 * time.Hour

// retryAfter reads the header's both forms (RFC 9110 section 10.2.3); 0 for what is neither.
func (c *Client) retryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(retryAfterMax/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(c.now()), 0), retryAfterMax)
}
