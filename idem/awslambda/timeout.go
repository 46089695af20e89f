package awslambda

import (
	"context"
	"net/http"
	"time"
)

// timeoutUnit is what the time-outs of functions differ by: AWS Lambda has them in whole seconds.
const timeoutUnit = time.Second

// short says that the invocation begins with less time than the function was checked with at its start, and logs it. What is
// missing is at least one unit: some milliseconds are gone when an event arrives.
func (c Config) short(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	if !ok || c.FunctionTimeout <= 0 {
		return false
	}
	left := time.Until(deadline)
	if left > c.FunctionTimeout-timeoutUnit {
		return false
	}
	c.Logger.ErrorContext(ctx, "function.timeout_short", "alarm", true, "declared_ms", c.FunctionTimeout.Milliseconds(), "left_ms", left.Milliseconds())
	return true
}

// noTime is the answer to a request of such an invocation.
func (c Config) noTime() *responseWriter {
	w := c.problem(http.StatusServiceUnavailable, "idempotency_no_time", "Service Unavailable",
		"There was no time left to execute the request. Nothing was executed; send it again after Retry-After.")
	w.sent.Set("Retry-After", "1")
	return w
}
