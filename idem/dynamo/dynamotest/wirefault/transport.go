package wirefault

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	// OneAPage has each Scan and each Query that sets no limit answered one item a page, as DynamoDB answers one megabyte a
	// page: who reads the first page only is seen on a table of two rows. What was sent is kept as it was without that.
	// It is for emulators, which check no signatures.
	OneAPage bool

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

// Weak are the reads since the last Inject that ask for no strong consistency: they may show a row as it was before a write
// that has ended. Emulators read strongly whatever is asked, so only the request tells. An index has no strong reads, and is
// left out.
func (t *Transport) Weak() []Request {
	var weak []Request
	for _, sent := range t.Sent() {
		if sent.weak() {
			weak = append(weak, sent)
		}
	}
	return weak
}

func (r Request) weak() bool {
	type read struct {
		IndexName      string
		ConsistentRead bool
	}
	reads := map[string]read{}
	var err error
	switch r.Operation {
	case "GetItem", "Query", "Scan":
		var one read
		err = json.Unmarshal(r.Body, &one)
		reads[""] = one
	case "BatchGetItem":
		var batch struct{ RequestItems map[string]read }
		err = json.Unmarshal(r.Body, &batch)
		reads = batch.RequestItems
	}
	for _, of := range reads {
		if !of.ConsistentRead && of.IndexName == "" {
			return true
		}
	}
	return err != nil // nobody knows what it asks for
}

// String is as in "GetItem {…}".
func (r Request) String() string { return r.Operation + " " + string(r.Body) }

// oneAPage limits a Scan or a Query that has no limit.
func oneAPage(operation string, body []byte) ([]byte, error) {
	if operation != "Scan" && operation != "Query" {
		return body, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, fmt.Errorf("wirefault: a request that is no JSON: %w", err)
	}
	if _, limited := members["Limit"]; limited {
		return body, nil
	}
	members["Limit"] = json.RawMessage("1")
	return json.Marshal(members)
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	fault := t.meet(r.Context(), Request{operationOf(r), body})
	if t.OneAPage {
		if body, err = oneAPage(operationOf(r), body); err != nil {
			return nil, err
		}
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
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
