package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
)

// faultyClient is a client whose requests go through a transport with faults. It makes at most attempts of each call,
// without pauses.
func faultyClient(url string, attempts int) (*dynamodb.Client, *wirefault.Transport) {
	t := &wirefault.Transport{}
	return dynamotest.Client(url, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: t}
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = attempts
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	}), t
}

// patient is a context whose time is over when a request under it has left: after a pause instead, a slow machine would
// now and then end it before anything left, which means something else.
type patient struct {
	context.Context
	over chan struct{}
}

type patience struct{}

func patiently(t *testing.T) context.Context {
	t.Helper()
	return patient{t.Context(), make(chan struct{})}
}

func (p patient) Done() <-chan struct{} { return p.over }

func (p patient) Err() error {
	select {
	case <-p.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func (p patient) Value(key any) any {
	if key == (patience{}) {
		return p.over
	}
	return p.Context.Value(key)
}

// timeOver is a request that has left, and hangs when the time of its patient caller is over.
func timeOver(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	over, ok := r.Context().Value(patience{}).(chan struct{})
	if !ok {
		return nil, errors.New("the request's context is of no patient caller")
	}
	close(over)
	return wirefault.Hang(r, next)
}
