package wirefault

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// patience is how long [Patient] waits for an answer.
const patience = time.Minute

// Patient has each request wait for its answer for up to a minute, whatever deadline its caller sets. A machine on which much
// runs stands still for seconds now and then, and the store gives a call up after two: a test whose subject is not a time-out
// then fails, of code that is right. A caller that hangs up before its deadline ends its request as ever, and a fault that lies in
// front of it, such as [Hang], still ends with the caller's deadline.
type Patient struct {
	// Next forwards requests. Default http.DefaultTransport.
	Next http.RoundTripper
}

// Patiently is an option of dynamodb.New and dynamotest.Client, for a client that sends its requests with [Patient].
func Patiently(o *dynamodb.Options) {
	o.HTTPClient = sdkhttp.BufferedBody(&http.Client{Transport: Patient{}})
}

// RoundTrip implements http.RoundTripper.
func (p Patient) RoundTrip(r *http.Request) (*http.Response, error) {
	caller := r.Context()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), patience)
	defer cancel()
	stop := context.AfterFunc(caller, func() {
		if hungUp(caller) {
			cancel()
		}
	})
	defer stop()
	next := p.Next
	if next == nil {
		next = http.DefaultTransport
	}
	response, err := next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body) // which the context of this call would cut off
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// hungUp says that a caller's context was cancelled, and not because its time was over. Who has waited until a deadline lets go, too:
// what is cancelled after its deadline has run out of time.
func hungUp(caller context.Context) bool {
	deadline, bounded := caller.Deadline()
	return timers.Cancelled(caller) && (!bounded || time.Until(deadline) > 0)
}
