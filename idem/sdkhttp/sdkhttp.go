// Package sdkhttp sends each request of the AWS SDK for Go v2 with its body read into memory first. This avoids lost
// replies that the SDK and net/http cause together. Use it for every client of the SDK whose calls are writes that
// must not be repeated, or whose latency matters; package lambdaapp does. Do not use it for clients that upload large
// objects, such as S3's: their bodies would be held in memory.
//
// The SDK gives net/http a body of which net/http does not know that it is in memory. So net/http sends the headers,
// then the body, and then reads once more to see that the body has ended. The answer can arrive before that last
// read, from a fast server or while the function is not given CPU time. The SDK has then closed the body already, the
// read fails, and net/http closes the connection on which the answer is being read. The call ends in "deserialization
// failed [...] use of closed network connection" although it happened. The SDK then waits for up to 1 s and sends it
// again. See https://github.com/aws/aws-sdk-go-v2/issues/2737.
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
	// Do sends a request and returns its response, whose body the caller closes.
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
