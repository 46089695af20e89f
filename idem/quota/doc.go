// Package quota bounds what one tenant may ask for, across all instances of a service: an [idem.Quota].
//
// Three limits: new keys per second, keys of the last hours that are still remembered ("active"), look-ups per second. A
// replay counts for nothing. Who is over a limit gets 429 with Retry-After.
//
// # How instances share a limit
//
// They share counters, which only grow: an instance adds a block to a counter and reads the sum in the same call, and what
// of its block lies within the limit is its to give out. So a limit is never exceeded, whoever races, and no instance
// depends on another. Blocks are an eighth of what the instance gave out in this window or the one before, and at most a twentieth
// of the limit: most requests make no call, and little is lost where an instance ends with rights in hand. An instance that has met the
// limit asks nobody again before the window is over.
//
// A rate is counted in windows of one second of the instance's clock. Over any span of n seconds at most (n + 1 + s) times the
// limit is admitted, s being the seconds by which clocks differ: the extra one is the two halves of a first and last window.
// A rate above [ShardRate] has a counter for each part of it, so that no counter takes more writes than a partition can.
//
// Active keys are counted by the hour, in counters of a day: what is counted is gone Config.ActiveFor later. A key whose
// operation ends early, or never does, counts as long.
//
// # Cost
//
// One write unit for each block and, per instance and second, one for learning that nothing is left; for active keys besides
// one read of the days remembered, each minute and tenant that asks.
package quota
