// Package quota bounds what one tenant may ask for, across all instances of a service: an [idem.Quota].
//
// Three limits: new keys per second, keys of the last hours that are still remembered ("active"), look-ups per second. A
// replay counts for nothing. Who is over a limit gets 429 with Retry-After.
//
// # How instances share a limit
//
// They share counters: an instance adds a block to a counter and reads the sum in the same call, and what of its block lies
// within the limit is its to give out. So a limit is never exceeded, whoever races, and no instance depends on another.
// Blocks are an eighth of what the instance gave out lately, and at most a twentieth of the limit: most requests make no
// call, and a tenant that stays below four fifths of its limit is never refused because others hold rights that they don't
// use. An instance that has met the limit asks nobody again before the window is over.
//
// A rate is counted in windows of the instance's clock, each of which is a burst at most. Over any span of n windows at most
// (n + 1 + s) windows' rights are given out, s being by how many windows clocks differ, rounded up; the 1 stands for the
// parts of a first and a last window. What clocks differ by shifts rights in time; it adds none in the long run.
//
// Active keys are counted by the hour, in counters of a day: what is counted is gone Config.ActiveFor to an hour more later,
// less the minutes for which rights outlive their hour. A key whose operation ends early, or never does, counts as long.
// Rights that an instance has not used go back; those of one that dies count as keys.
//
// # Cost
//
// One write unit for each block: one for each key where an instance sees less than 16 a second, 0.02 at 500. An instance
// that met the limit in the last minute reads before it adds, half a unit: what is refused costs no writes. Active keys
// cost besides half a read unit for each day remembered, every 5 minutes, and every 10 s while the limit is met.
//
// A partition of DynamoDB takes 1,000 writes and 3,000 reads a second. A window's rights are divided among counters of
// [ShardRate], which an instance begins with at random: a counter takes 500 writes, and one more from each instance in the
// first window in which the limit is met. The counter of active keys takes a write from each instance every few seconds,
// however many keys there are.
package quota
