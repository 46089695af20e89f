// Package front tells the engine what stands before it: by the request's context, because what is between the two may be anybody's.
package front

import (
	"context"
	"math"
)

// Bound is the largest response that gets to the caller.
type Bound struct {
	// Bytes are those of the response, headers included. HeaderBytes are those of its headers: names and values together.
	Bytes, HeaderBytes int
}

type bound struct{}

// WithBound says that no larger response gets to the caller.
func WithBound(ctx context.Context, b Bound) context.Context {
	return context.WithValue(ctx, bound{}, b)
}

// BoundOf is what was said, or [Boundless].
func BoundOf(ctx context.Context) Bound {
	if b, ok := ctx.Value(bound{}).(Bound); ok {
		return b
	}
	return Boundless()
}

// Boundless is the bound of what returns any response.
func Boundless() Bound { return Bound{Bytes: math.MaxInt, HeaderBytes: math.MaxInt} }
