// Package sdkhttp sends the requests of the AWS SDK in one piece.
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
)

// Doer is what the SDK sends requests with: an aws.HTTPClient.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// InOnePiece is next with each request's body in memory: headers and body are one write, and no reply is lost as the
// package says. nil is the SDK's own client, with its defaults.
//
//	cfg.HTTPClient = sdkhttp.InOnePiece(cfg.HTTPClient) // after config.LoadDefaultConfig
func InOnePiece(next Doer) Doer {
	if next == nil { // as LoadDefaultConfig leaves it where the environment names no CA bundle
		next = awshttp.NewBuildableClient()
	}
	return inOnePiece{next}
}

type inOnePiece struct{ next Doer }

// Do implements [Doer].
func (p inOnePiece) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return p.next.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	whole := r.WithContext(r.Context()) // a copy: the SDK closes its own body
	whole.Body, whole.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return p.next.Do(whole)
}
