package storage

import "time"

// CachingStore is a store that answers from memory. If Config.CacheAge is less than its age, idem.New uses the store's: a
// cache-bust must not free a key while a cache still replays the old answer.
type CachingStore interface {
	// CacheAge is how long after its read an answer is still given from memory.
	CacheAge() time.Duration
}

// CacheAgeOf is the age of a [CachingStore], 0 for any other store. A decorator returns the age of the store that it
// wraps.
func CacheAgeOf(store any) time.Duration {
	if caching, ok := store.(CachingStore); ok {
		return caching.CacheAge()
	}
	return 0
}
