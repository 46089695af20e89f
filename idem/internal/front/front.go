// Package front tells the engine what stands before it: by the request's context, because what is between the two may be anybody's.
package front

import (
	"context"
	"math"
)

type responseBytesMax struct{}

// WithResponseBytesMax says that no response of more bytes, headers included, gets to the caller.
func WithResponseBytesMax(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, responseBytesMax{}, n)
}

// ResponseBytesMax is what was said, or math.MaxInt.
func ResponseBytesMax(ctx context.Context) int {
	if n, ok := ctx.Value(responseBytesMax{}).(int); ok {
		return n
	}
	return math.MaxInt
}
