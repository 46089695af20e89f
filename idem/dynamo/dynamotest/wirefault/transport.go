package wirefault

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Transport forwards requests with Next, but for those that meet a fault. It keeps what was sent. It is safe for concurrent
// use; its zero value has no faults.
type Transport struct {
	// Next forwards requests. Default http.DefaultTransport.
	Next http.RoundTripper

	mu        sync.Mutex
	operation string
	faults    []Fault
	sent      []Request
}

// Request is a request as it was sent, faults included.
type Request struct {
	// Operation is DynamoDB's name of it, such as "PutItem".
	Operation string
	// Body is the JSON document that was sent.
	Body []byte
}

type contextKey struct{}

// With makes every request under the context meet the fault. The store makes one request of each write; its reads are repeated
// by the SDK, and meet the fault each time.
func With(ctx context.Context, fault Fault) context.Context {
	return context.WithValue(ctx, contextKey{}, fault)
}

// Inject makes the next requests of the operation meet the faults, one each, and forgets what was injected and sent before.
func (t *Transport) Inject(operation string, faults ...Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.operation, t.faults, t.sent = operation, faults, nil
}

// Sent are the requests since the last Inject, in the order in which they were sent.
func (t *Transport) Sent() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Request(nil), t.sent...)
}

// Bodies are what was sent of the operation since the last Inject.
func (t *Transport) Bodies(operation string) [][]byte {
	var bodies [][]byte
	for _, sent := range t.Sent() {
		if sent.Operation == operation {
			bodies = append(bodies, sent.Body)
		}
	}
	return bodies
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	fault := t.meet(r.Context(), Request{operationOf(r), body})
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	next := t.Next
	if next == nil {
		next = http.DefaultTransport
	}
	return fault(r, next)
}

// operationOf is DynamoDB's name of what the request asks for.
func operationOf(r *http.Request) string {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return operation
}

func (t *Transport) meet(ctx context.Context, sent Request) Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = append(t.sent, sent)
	if fault, ok := ctx.Value(contextKey{}).(Fault); ok {
		return fault
	}
	if len(t.faults) == 0 || sent.Operation != t.operation {
		return Pass
	}
	first := t.faults[0]
	t.faults = t.faults[1:]
	return first
}
