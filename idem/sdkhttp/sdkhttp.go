// Package sdkhttp sends each request of the AWS SDK with its body read into memory first.
//
// The SDK hands net/http a body that net/http doesn't know to be in memory. So net/http sends the headers, then the body,
// and then reads once more, to see that the body has ended. Where the answer is there before that last read (a fast
// server; a function that its share of the CPU stopped for a moment), the SDK has closed the body already, the read
// fails, and net/http closes the connection on which the answer is being read: the call ends in "deserialization failed
// [...] use of closed network connection" although it happened. The SDK then waits (up to 1 s) and sends it again.
// See https://github.com/aws/aws-sdk-go-v2/issues/2737.
package sdkhttp

import (
	"bytes"
	"io"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/idem-go/idem-aws/idem/internal/bodies"
)

// Doer is what the SDK sends requests with: an aws.HTTPClient.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// BufferedBody returns a client that reads each request's body into memory and then sends the request with next. net/http
// then writes headers and body at once, so no reply is lost in the way that the package comment describes. A nil next is
// the SDK's own client with its defaults.
//
// The body of a write of dynamo.Store is in memory already, and is passed on as it is: the store must see when net/http reads
// it. net/http then writes headers and body one after the other, and no reply is lost either.
//
//	cfg.HTTPClient = sdkhttp.BufferedBody(cfg.HTTPClient) // after config.LoadDefaultConfig
func BufferedBody(next Doer) Doer {
	if next == nil { // as LoadDefaultConfig leaves it where the environment names no CA bundle
		next = awshttp.NewBuildableClient()
	}
	return bufferedBody{next}
}

type bufferedBody struct{ next Doer }

// Do implements [Doer].
func (b bufferedBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return b.next.Do(r)
	}
	if _, ok := r.Body.(bodies.InMemory); ok {
		return b.next.Do(r)
	}
	body, err := bodies.Read(r)
	if err != nil {
		return nil, err
	}
	whole := r.WithContext(r.Context()) // a copy: the SDK closes its own body
	whole.Body, whole.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return b.next.Do(whole)
}
