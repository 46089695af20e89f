// Package awslambda runs Go handlers on AWS Lambda's events. [HTTP] gives the HTTP events of API Gateway, function
// URLs and load balancers to an http.Handler. [SQS] and [Stream] call a function for each record of a batch and
// report which records failed, and [StreamBatch] calls one function for a whole batch of stream records. [Sources]
// joins several adapters in one function.
//
// Use it where an application starts Lambda functions by itself. Package lambdaapp makes all functions of an
// application with these adapters, and needs no further wiring. The adapters protect nothing by themselves: give
// [HTTP] a handler of package middleware, and [SQS] and [Stream] one of package function.
//
// Each adapter is a lambda.Handler, for lambda.Start. It returns an error only for an event of another kind than its
// own: the function is then connected to the wrong source.
package awslambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config is what the adapters take. The zero value of each field means its default.
type Config struct {
	// Logger gets panics and the failures of records; never bodies. Default slog.Default(), as it is when the adapter is made.
	Logger *slog.Logger
	// RecordTime is how much time must be left before the function's deadline for another record of a batch to be begun:
	// the longest that one may take. Records that are not begun are reported as failures. Default 10 s.
	RecordTime time.Duration
	// Concurrency is how many records of a batch are handled at once. Default 1, which keeps their order; FIFO queues
	// always have it. Where records have no order to keep, more of them keep one that takes long from delaying the rest.
	Concurrency int
	// FunctionTimeout is the time-out that the function is deployed with, which start-up was checked against (idem.Config and
	// outbox.Config have the same field). An invocation that has less was deployed otherwise: it is logged as an error with
	// alarm=true, and [HTTP] answers it with 503 and the code idempotency_no_time. Default 0: not known, and not looked at.
	FunctionTimeout time.Duration
	// ExplicitRoutes says that an HTTP API in front has a route for each path of the handler. Then [HTTP] answers 404, without
	// running the handler, to what came by a catch-all route, and to a path variable with a slash in it: an HTTP API unescapes
	// the path before it hands it on, so that "/v1%2fpayments" would run "/v1/payments" past the rules of that route. It means
	// nothing for other gateways, which hand the path on as it was sent. Default false: paths are taken as they come.
	ExplicitRoutes bool
	// SignedPaths are the paths at which the handler verifies a signature over the body's bytes, as package webhook does:
	// "/webhooks/provider", as a client sends it and without the gateway's stage. There [HTTP] lets the character U+FFFD through: a
	// body that was changed on the way does not verify, and one that has the character itself does. Default: none, and such a
	// body is refused everywhere.
	SignedPaths []string
	// DocsURL is the API's documentation, for Link; rel="describedby" on the problems that [HTTP] answers with itself.
	// Default: no Link.
	DocsURL string
	// Batch is called before the records of an event are handled, with how many they are, and returns the context that they are
	// handled under and what is called after the last: for a span of the whole batch. Default: nothing.
	Batch func(ctx context.Context, records int) (context.Context, func())
}

const recordTimeDefault = 10 * time.Second

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.RecordTime <= 0 {
		c.RecordTime = recordTimeDefault
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 1
	}
	return c
}

// Handler takes raw events. It implements lambda.Handler of github.com/aws/aws-lambda-go.
type Handler func(ctx context.Context, event []byte) ([]byte, error)

// Invoke implements lambda.Handler.
func (h Handler) Invoke(ctx context.Context, event []byte) ([]byte, error) { return h(ctx, event) }

// ErrEvent is returned for an event that is none of those an adapter takes.
var ErrEvent = errors.New("awslambda: not an event of this adapter")

// The values of "eventSource" in batches.
const (
	SourceSQS      = "aws:sqs"
	SourceDynamoDB = "aws:dynamodb"
)

// Sources gives a batch to the handler of its event source. It returns [ErrEvent] for a source without one.
func Sources(handlers map[string]Handler) Handler {
	return func(ctx context.Context, event []byte) ([]byte, error) {
		var batch struct {
			Records []struct {
				EventSource string `json:"eventSource"`
			}
		}
		if err := json.Unmarshal(event, &batch); err != nil || len(batch.Records) == 0 {
			return nil, fmt.Errorf("%w: no records", ErrEvent)
		}
		source := batch.Records[0].EventSource
		handler, ok := handlers[source]
		if !ok {
			return nil, fmt.Errorf("%w: event source %.40q", ErrEvent, source)
		}
		return handler(ctx, event)
	}
}
