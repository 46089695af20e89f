// Package cache keeps final records in memory, so that replays of recent requests are answered without the store. It is
// off unless it is wired:
//
//	store, err := cache.New(dynamoStore, cache.Config{})
//	engine, err := idem.New(store, idem.Config{})
//
// It holds completed and failed records only, which nothing changes until they expire but an operator: by a cache-bust or
// by another expiry. The process that makes such a change through the cache sees it at once, whatever it was reading
// meanwhile. The others see it within Config.MaxAge, 1 minute by default, and so does the first where the reply was lost.
//
// A record is never answered past its expiry, nor within Config.ClockSkew of it: another process may have begun anew by
// then. Records without an expiry, and those of a release that this one can't judge, are not held. Every decision that
// writes is still the store's: what the cache answers is only ever replayed or refused as a mismatch.
//
// It is bounded by entries and by bytes, and drops what was used longest ago. Sealed responses stay sealed in memory: what
// the store opens is handed on and not held. What comes out shares no memory with what is held.
//
// # What it saves
//
// Only reads. Optimistic and deferred operations read first, atomic and wrapped ones only with Operation.ReadFirst: without it
// their replay is a lost reserve, which DynamoDB bills as a write of the stored size, and the cache saves no more than the
// reading of chunks. Polls of a finished operation's status are reads, too. For each replay from the cache
// (go test ./idem/cache -run TestWhatItSaves -v):
//
//	response          read first                    reserve first
//	300 B of JSON     1 call, 1 R                   nothing
//	10 KB of JSON     1 call, 1 R                   nothing
//	10 KB of noise    2 calls, 1 + 3 R              1 call, 3 R
//	1 MB of noise     2 calls, 1 + 260 R            1 call, 260 R
//
// R is a strong read unit, a fifth of a write unit's price. So it pays where one process sees the same keys again within
// a minute, a container behind sticky clients or a worker that repeats; a Lambda instance among hundreds rarely does.
package cache
