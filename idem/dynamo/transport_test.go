package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// fault is what a transport does to one request instead of forwarding it; next forwards it.
type fault func(r *http.Request, next http.RoundTripper) (*http.Response, error)

// transport is a real HTTP transport to a real endpoint, with faults for the first requests of an operation. It keeps
// what was sent.
type transport struct {
	operation string

	mu     sync.Mutex
	faults []fault
	sent   []sentRequest
}

type sentRequest struct {
	operation string
	body      []byte
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return t.next(operation, body)(r, http.DefaultTransport)
}

func (t *transport) next(operation string, body []byte) fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = append(t.sent, sentRequest{operation, body})
	if len(t.faults) == 0 || operation != t.operation {
		return pass
	}
	first := t.faults[0]
	t.faults = t.faults[1:]
	return first
}

// inject makes the next requests of the operation meet the faults, one each.
func (t *transport) inject(operation string, faults ...fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.operation, t.faults, t.sent = operation, faults, nil
}

// bodies are what was sent of the operation since inject.
func (t *transport) bodies(operation string) [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var bodies [][]byte
	for _, sent := range t.sent {
		if sent.operation == operation {
			bodies = append(bodies, sent.body)
		}
	}
	return bodies
}

func pass(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) }

// refuse is a connection that was never made.
func refuse(*http.Request, http.RoundTripper) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// dropReply lets the request happen and loses its reply.
func dropReply(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if _, err := drained(r, next); err != nil {
		return nil, err
	}
	return nil, io.ErrUnexpectedEOF
}

// truncateReply lets the request happen and loses the end of its reply.
func truncateReply(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := drained(r, next)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{}))
	return response, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, syscall.ECONNRESET }

func drained(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response, errors.Join(err, response.Body.Close())
}

// hang holds the request until its caller gives up.
func hang(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// answer is DynamoDB's own refusal, without forwarding the request. rest are further members of the JSON body.
func answer(status int, code, rest string) fault {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"injected"` + rest + `}`
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body)),
			ContentLength: int64(len(body)),
		}, nil
	}
}

// cancelled is a cancelled transaction with these codes, one for each item.
func cancelled(codes ...string) fault {
	var reasons []string
	for _, code := range codes {
		reasons = append(reasons, `{"Code":"`+code+`","Message":"injected"}`)
	}
	return answer(http.StatusBadRequest, "TransactionCanceledException", `,"CancellationReasons":[`+strings.Join(reasons, ",")+`]`)
}

// faultyClient is a client whose requests go through a transport with faults. It makes at most attempts of each call,
// without pauses.
func faultyClient(url string, attempts int) (*dynamodb.Client, *transport) {
	t := &transport{}
	return dynamotest.Client(url, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: t}
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = attempts
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	}), t
}

// shortly is a context that ends soon, for requests that hang.
func shortly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
