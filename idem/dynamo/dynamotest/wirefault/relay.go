package wirefault

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// Relay sends requests from goroutines outside of a bubble of package testing/synctest: in a bubble, the clock stands still
// while a request is under way, and no connection is left that would keep the bubble from ending. So a test on a real
// endpoint can let hours pass at once. A request ends when it is answered, not with its context.
type Relay struct {
	idle      chan *line
	transport *http.Transport
	workers   sync.WaitGroup
	lines     []*line
}

// line is one goroutine that sends, one request after the other. Its channels are made outside of every bubble.
type line struct {
	requests chan *http.Request
	replies  chan reply
}

type reply struct {
	response *http.Response
	err      error
}

// relayTimeout bounds one request, in real time.
const relayTimeout = 30 * time.Second

// NewRelay makes a relay that sends up to so many requests at once. It must be made, and closed, outside of bubbles.
func NewRelay(lines int) *Relay {
	r := &Relay{idle: make(chan *line, lines), transport: http.DefaultTransport.(*http.Transport).Clone()}
	for range lines {
		l := &line{requests: make(chan *http.Request), replies: make(chan reply)}
		r.lines = append(r.lines, l)
		r.idle <- l
		r.workers.Go(func() { l.serve(r.transport) })
	}
	return r
}

// Close ends the relay. No request may be under way.
func (r *Relay) Close() {
	for _, l := range r.lines {
		close(l.requests)
	}
	r.workers.Wait()
	r.transport.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper.
func (r *Relay) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	outside := request.Clone(context.Background()) // the request's own context belongs to its bubble
	outside.Body = io.NopCloser(bytes.NewReader(body))
	l := <-r.idle
	l.requests <- outside
	answer := <-l.replies
	r.idle <- l
	if answer.err != nil {
		return nil, answer.err
	}
	answer.response.Request = request
	return answer.response, nil
}

func (l *line) serve(transport http.RoundTripper) {
	for request := range l.requests {
		response, err := sendWhole(transport, request) //nolint:bodyclose // sendWhole has closed it
		l.replies <- reply{response, err}
	}
}

// sendWhole sends the request and reads the whole answer.
func sendWhole(transport http.RoundTripper, request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), relayTimeout)
	defer cancel()
	response, err := transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
