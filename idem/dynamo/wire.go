package dynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"github.com/idem-go/idem-aws/idem/internal/bodies"
	"github.com/idem-go/idem-aws/internal/clock"
)

// call is one call to DynamoDB.
type call struct {
	store     *Store
	operation string
	// attempts counts the requests that left.
	attempts atomic.Int32
}

func (s *Store) begin(operation string) *call { return &call{store: s, operation: operation} }

// reads is an option of the SDK's calls that have no effect: the client's own retries stay as they are configured.
func (c *call) reads(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("IdemAttempt", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			c.attempts.Add(1)
			return next.HandleFinalize(ctx, in)
		}), "Retry", middleware.After)
	})
}

// writes is an option of the SDK's calls that have an effect. Each is one request, however the client is configured: the
// last error of several says nothing of the ones before, and who retries must know what may have happened. It does not
// leave after the call's deadline.
func (c *call) writes(o *dynamodb.Options) {
	o.Retryer, o.RetryMaxAttempts = aws.NopRetryer{}, 0
	o.HTTPClient = gate{next: o.HTTPClient, call: c, now: c.store.cfg.Now}
}

// errLate is what becomes of a request that would leave too late.
var errLate = fmt.Errorf("dynamo: the call was not sent, because its deadline had passed: %w", context.DeadlineExceeded)

// gate is the last to see a request, when it is signed, and holds it back where its deadline is over. A process that was
// frozen on the way (a container, a virtual machine) may go on much later, when what the request is about has expired and
// is gone: its condition would hold. Whether it was frozen may show in one clock only, so both are asked.
type gate struct {
	next dynamodb.HTTPClient
	call *call
	now  func() time.Time
}

// Do implements dynamodb.HTTPClient.
func (g gate) Do(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if err := g.shut(ctx); err != nil {
		return nil, err
	}
	body, err := bodies.Read(r)
	if err != nil {
		return nil, fmt.Errorf("dynamo: read the request's body: %w", err)
	}
	g.call.attempts.Add(1)
	r = r.WithContext(ctx) // a copy: the SDK keeps its own
	r.Body, r.ContentLength = &gatedBody{whole: bytes.NewReader(body), shut: func() error { return g.shut(ctx) }}, int64(len(body))
	r.GetBody = nil // or net/http could send, by itself, a second time what nobody judges
	return g.next.Do(r)
}

// shut returns an error where the request must not leave any more.
func (g gate) shut(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && clock.Over(deadline, g.now()) {
		return errLate
	}
	return ctx.Err()
}

// gatedBody is looked at once more when net/http reads from it, to write it to the connection: that may have been made in
// between. It ends in an error where it is too late for what is left of it. Without all of its body a request is none.
//
// It is in memory, so that no client on the way reads it before the connection is there, and it can be read after the SDK has
// closed it.
type gatedBody struct {
	whole *bytes.Reader
	shut  func() error
}

// InMemory implements bodies.InMemory.
func (*gatedBody) InMemory() {}

// Read implements io.Reader.
func (b *gatedBody) Read(p []byte) (int, error) {
	if b.whole.Len() > 0 {
		if err := b.shut(); errors.Is(err, errLate) {
			return 0, err
		}
	}
	return b.whole.Read(p)
}

// Close implements io.Closer.
func (*gatedBody) Close() error { return nil }
