// Package cache keeps final records in memory, so that a process answers replays of recent requests without the
// store. It wraps a store, and an engine uses the result in the store's place:
//
//	store, err := cache.New(dynamoStore, cache.Config{})
//	engine, err := idem.New(store, idem.Config{})
//
// Use it where one process sees the same keys again within a minute: a container behind a load balancer with sticky
// clients, or a worker that repeats requests. One Lambda instance among hundreds rarely sees a key twice, so there it
// saves little. A service without it behaves in the same way, and only reads more.
//
// The cache holds completed and failed records only. Until they expire, only an operator changes those: by a
// cache-bust, or by another expiry. The process that makes such a change through its cache sees it at once. Other
// processes see it within Config.MaxAge, 1 minute by default, and so does the first one where the reply to its change
// was lost.
//
// A record is never answered past its expiry, nor within Config.ClockSkew before it, because another process may
// already execute its key anew. Records without an expiry are not held, nor are records of a release that this one
// cannot read. The store makes every decision that writes: an answer of the cache is only replayed, or refused as a
// mismatch.
//
// The cache is bounded by entries and by bytes, and drops the entries that were used longest ago. Responses that
// package seal has encrypted stay encrypted in memory. What the cache returns shares no memory with what it holds.
//
// # What it saves
//
// The cache saves reads only. Optimistic and deferred operations read first, and atomic and wrapped ones do with
// Operation.ReadFirst. Without it their replay is a lost reserve, which DynamoDB bills as a write of the stored size,
// and the cache saves only the reading of chunks. Polls of a finished operation's status are reads too. For each
// replay from the cache (go test ./idem/cache -run TestWhatItSaves -v):
//
//	response          read first                    reserve first
//	300 B of JSON     1 call, 1 R                   nothing
//	10 KB of JSON     1 call, 1 R                   nothing
//	10 KB of noise    2 calls, 1 + 3 R              1 call, 3 R
//	1 MB of noise     2 calls, 1 + 260 R            1 call, 260 R
//
// R is a strong read unit, a fifth of a write unit's price.
package cache
