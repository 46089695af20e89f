package storage

import "time"

// CachingStore is a store that answers from memory. idem.New takes what it says for Config.CacheAge where that is less: a
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
