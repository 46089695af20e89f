package idem

import (
	"cmp"
	"fmt"
	"math"
)

// ResponseBound is a store that says how large a response it takes. [New] holds the engine's bound against it: a response
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

const responseBytesDefault = 3 << 20

// agree gives the bound on a response its default, and returns a [*ConfigError] where it is above the store's.
func (c Config) agree(store Store) (Config, error) {
	most := ResponseBytesMaxOf(store)
	c.ResponseBytesMax = cmp.Or(c.ResponseBytesMax, min(responseBytesDefault, most))
	if c.ResponseBytesMax > most {
		return c, &ConfigError{"Config.ResponseBytesMax", c.ResponseBytesMax, fmt.Sprintf("must be at most what the store takes, %d", most)}
	}
	return c, nil
}
