package dynamo_test

import (
	"context"
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

// shortly is a context that ends soon, for requests that hang.
func shortly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
