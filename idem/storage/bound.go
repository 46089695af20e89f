package storage

import (
	"math"
)

// ResponseBound is a store that says how large a response it takes. idem.New holds the engine's bound against it: a response
// that the engine lets pass and the store refuses would be known only when the work is done.
type ResponseBound interface {
	// ResponseBytesMax is the size of the largest response that is stored, headers included, in bytes.
	ResponseBytesMax() int
}

// ResponseBytesMaxOf is the bound of a [ResponseBound], math.MaxInt for any other store. Decorators pass it on.
func ResponseBytesMaxOf(store any) int {
	if bound, ok := store.(ResponseBound); ok {
		return bound.ResponseBytesMax()
	}
	return math.MaxInt
}
