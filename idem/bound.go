package idem

import (
	"cmp"
	"fmt"
	"math"
	"time"
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

// CachingStore is a store that answers from memory. [New] takes what it says for Config.CacheAge where that is less: a
// cache-bust must not free a key while a cache still replays the old answer.
type CachingStore interface {
	// CacheAge is how long after it was read an answer is still given from memory.
	CacheAge() time.Duration
}

// CacheAgeOf is the age of a [CachingStore], 0 for any other store. A decorator with a cache below passes it on.
func CacheAgeOf(store any) time.Duration {
	if caching, ok := store.(CachingStore); ok {
		return caching.CacheAge()
	}
	return 0
}

const responseBytesDefault = 3 << 20

// agree takes the store's cache age where it is the longer one, gives the bound on a response its default, and returns a
// [*ConfigError] where that is above the store's.
func (c Config) agree(store Store) (Config, error) {
	if c.CacheAge >= 0 {
		c.CacheAge = max(c.CacheAge, CacheAgeOf(store))
	}
	most := ResponseBytesMaxOf(store)
	c.ResponseBytesMax = cmp.Or(c.ResponseBytesMax, min(responseBytesDefault, most))
	if c.ResponseBytesMax > most {
		return c, &ConfigError{"Config.ResponseBytesMax", c.ResponseBytesMax, fmt.Sprintf("must be at most what the store takes, %d", most)}
	}
	return c, nil
}
