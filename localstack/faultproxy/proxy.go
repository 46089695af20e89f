package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/localstack/internal/control"
)

const (
	// requestBytesMax is above the 16 MB of a BatchWriteItem.
	requestBytesMax = 32 << 20
	// upstreamTimeout bounds one forwarded request.
	upstreamTimeout = time.Minute
	// upstreamIdleMax is shorter than any server keeps an idle connection: a request must not fail on one that the
	// server closed meanwhile, since the proxy never sends it again.
	upstreamIdleMax = time.Second
	// logMaxDefault is Config.LogMax where it is 0.
	logMaxDefault = 10_000
)

// Config is how a Proxy starts.
type Config struct {
	// Target is DynamoDB's address, as "http://127.0.0.1:8000", without a path.
	Target string
	// LogMax is the number of requests that the log holds, the newest; 0 = 10,000.
	LogMax int
	// Journal names the attributes whose values the journal of writes keeps; none = no journal.
	Journal []string
	// Now is the clock of the log; nil = time.Now. Delays pass in real time.
	Now func() time.Time
}

// Proxy is the proxy and its control endpoints. It is an http.Handler, safe for concurrent use.
type Proxy struct {
	target    *url.URL
	transport *http.Transport
	now       func() time.Time
	logMax    int
	control   *http.ServeMux
	resets    sync.Mutex
	current   atomic.Pointer[state]
	journal   journal
	late      sync.WaitGroup
}

// New returns a proxy without rules. It fails where Target is not an http or https address without a path, or LogMax is
// negative. Close it when done.
func New(c Config) (*Proxy, error) {
	target, err := url.Parse(c.Target)
	if err != nil {
		return nil, fmt.Errorf("faultproxy: target: %w", err)
	}
	if target.Host == "" || (target.Scheme != "http" && target.Scheme != "https") || strings.Trim(target.Path, "/") != "" {
		return nil, fmt.Errorf("faultproxy: target is %q, want http(s)://host:port without a path", c.Target)
	}
	if c.LogMax < 0 {
		return nil, fmt.Errorf("faultproxy: log max is %d, want 0 or more", c.LogMax)
	}
	if c.LogMax == 0 {
		c.LogMax = logMaxDefault
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	p := &Proxy{
		target: target, now: c.Now, logMax: c.LogMax,
		transport: &http.Transport{
			DisableCompression:  true, // it would add a header, and unpack answers
			IdleConnTimeout:     upstreamIdleMax,
			MaxIdleConnsPerHost: 64,
		},
	}
	p.journal.attributes = c.Journal
	p.current.Store(newState(p.now, p.logMax))
	p.control = p.routes()
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/control/") {
		p.control.ServeHTTP(w, r)
		return
	}
	s := p.current.Load()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestBytesMax))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		control.Error(w, http.StatusRequestEntityTooLarge, "body_too_large", "more than DynamoDB would take")
		return
	}
	if err != nil {
		hangUp() // the client is gone, with half of its request
	}
	q := parse(r, body)
	e, step := s.arrive(q)
	p.serve(w, s, q, e, step)
}

// Close throws away every request that waits and returns when none is being delivered late any more.
func (p *Proxy) Close() {
	p.resets.Lock()
	p.current.Load().stop()
	p.resets.Unlock()
	p.late.Wait()
	p.transport.CloseIdleConnections()
}

// reset replaces the state, and throws away what waits.
func (p *Proxy) reset() {
	p.resets.Lock()
	defer p.resets.Unlock()
	p.current.Swap(newState(p.now, p.logMax)).stop()
}

func (p *Proxy) serve(w http.ResponseWriter, s *state, q request, e *Entry, step Step) {
	switch step.Fault {
	case Refuse, down:
		s.end(e, nil, nil)
		hangUp()
	case Refuse500, Refuse503, Conflict, Throttle, InProgress, Mismatch, Expired:
		answer(w, s, e, refused(q, step))
	case Late:
		p.deliverLate(s, q, e, step.delay())
		hangUp()
	case DropReply:
		_, _ = p.forward(s, q, e) // the log has both
		hangUp()
	case CutReply:
		p.answered(s, q, e).cut(w)
	case Fail500, Fail503:
		p.answered(s, q, e)
		refused(q, step).write(w)
	case DelayReply:
		a := p.answered(s, q, e)
		if !s.holdFor(&s.waiting.Delayed, step.delay())() {
			hangUp()
		}
		a.write(w)
	case Partial:
		p.passHalf(w, s, q, e)
	case Pause:
		p.pass(w, s, q, e, s.hold(&s.waiting.Paused))
	case DelayRequest:
		p.pass(w, s, q, e, s.holdFor(&s.waiting.Delayed, step.delay()))
	default:
		p.pass(w, s, q, e, func() bool { return true })
	}
}

// answer speaks in DynamoDB's name.
func answer(w http.ResponseWriter, s *state, e *Entry, a reply) {
	s.end(e, &a, nil)
	a.write(w)
}

var errThrownAway = errors.New("thrown away while it waited")

// pass forwards after the wait, and answers. Whether the client is still there makes no difference to DynamoDB.
func (p *Proxy) pass(w http.ResponseWriter, s *state, q request, e *Entry, wait func() bool) {
	if !wait() {
		s.end(e, nil, errThrownAway)
		hangUp()
	}
	p.answered(s, q, e).write(w)
}

// passHalf forwards half of a batch, and answers that the rest was not processed.
func (p *Proxy) passHalf(w http.ResponseWriter, s *state, q request, e *Entry) {
	half, rest, err := q.halved()
	if err == nil {
		half, err = half.signedAnew()
	}
	if err != nil {
		s.end(e, nil, err)
		hangUp()
	}
	a, err := p.answered(s, half, e).withUnprocessed(q.operation, rest)
	if err != nil {
		s.end(e, nil, err)
		hangUp()
	}
	a.write(w)
}

// answered forwards the request and returns the answer. Where there is none it closes the client's connection, as the
// network between client and DynamoDB would.
func (p *Proxy) answered(s *state, q request, e *Entry) reply {
	a, err := p.forward(s, q, e)
	if err != nil {
		hangUp()
	}
	return a
}

// deliverLate forwards in the background. It is counted as waiting before it returns, so before the client can know.
func (p *Proxy) deliverLate(s *state, q request, e *Entry, delay time.Duration) {
	hold := s.hold
	if delay > 0 {
		hold = func(count *int) func() bool { return s.holdFor(count, delay) }
	}
	wait := hold(&s.waiting.Late)
	deliver := func() {
		if !wait() {
			s.end(e, nil, errThrownAway)
			return
		}
		_, _ = p.forward(s, q, e) // the log has both
	}
	if !s.start(&p.late, deliver) {
		deliver() // finds the state stopped, and says so in the log
	}
}

// forward sends the request once, with its own deadline, and logs what came of it.
func (p *Proxy) forward(s *state, q request, e *Entry) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), upstreamTimeout)
	defer cancel()
	answered := p.journal.sent(q, p.now)
	a, err := p.roundTrip(ctx, q)
	answered(a.status)
	if err != nil {
		s.end(e, nil, err)
		return reply{}, err
	}
	s.end(e, &a, nil)
	return a, nil
}

func (p *Proxy) roundTrip(ctx context.Context, q request) (reply, error) {
	to := *q.url
	to.Scheme, to.Host = p.target.Scheme, p.target.Host
	req, err := http.NewRequestWithContext(ctx, q.method, to.String(), bytes.NewReader(q.body))
	if err != nil {
		return reply{}, fmt.Errorf("faultproxy: %w", err)
	}
	req.GetBody = nil // with it, the transport would send a second time on a connection that drops
	req.Host = q.host // signed requests name it
	req.Header = endToEnd(q.header)
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header["User-Agent"] = []string{""} // else the transport adds its own
	}
	res, err := p.transport.RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, fmt.Errorf("faultproxy: reading the answer: %w", err)
	}
	return reply{status: res.StatusCode, header: endToEnd(res.Header), body: body}, nil
}

// endToEnd copies a header without what concerns one connection only (RFC 9110 section 7.6.1). Expect is among that
// here: the body is at hand already.
func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect"} {
		out.Del(name)
	}
	return out
}

// hangUp ends the handler and closes the client's connection without a byte of an answer.
func hangUp() {
	panic(http.ErrAbortHandler)
}
