// Package quota limits how many idempotency keys a tenant may use, across all instances of a service. It implements
// [idem.Quota], for the Config of an engine. Use it where many tenants share tables, so that one tenant cannot use up
// the capacity or the storage of all. A service with one tenant, or with limits at its gateway, does not need it.
//
// There are four limits: new keys per second, active keys (those of the last hours, which are still remembered),
// look-ups of an operation's status per second, and waits begun per second. A tenant that is over one of the first three
// gets 429 with Retry-After. A replay of a stored answer is never refused, and takes no right where its record is read first
// (below). A request that is over the limit of waits is answered at once, as if it had not wanted to wait.
//
// The instances share counters. Package dynamoquota keeps them in a DynamoDB table, and [Memory] in one process for
// tests.
//
//	counters, err := dynamoquota.New(client, "quota")
//	quotas, err := quota.New(counters, quota.Config{
//		Limits: func(tenant string) quota.Limits { return quota.Limits{NewKeysPerSecond: 100} },
//	})
//	engine, err := idem.New(store, idem.Config{Quota: quotas})
//
// # How instances share a limit
//
// An instance takes rights in blocks. It adds a block to a counter, and reads the sum in the same call. The part of
// its block that lies within the limit may then be given to requests, without further calls. The rights of one counter
// are therefore never exceeded, however many instances add at the same time, and no instance depends on another.
//
// A block is an eighth of the rights that the instance used lately, and at most a twentieth of the limit. Most
// requests therefore make no call. A tenant that stays below four fifths of its limit is never refused because other
// instances hold unused rights. An instance that has met the limit makes no more calls before the window is over.
//
// # How exact a rate is
//
// A rate is counted in windows of Config.Window by the instance's clock. A tenant may use all rights of a window at
// once. During any n consecutive windows, at most the rights of n + 1 + s windows are given out. The 1 is for the
// incomplete windows at both ends, and s is the largest difference between the instances' clocks, in windows, rounded
// up. Clock differences move rights in time; they add none in the long run.
//
// # How exact a limit of active keys is
//
// Active keys are counted by the hour, in one counter for each day. At the turn of an hour an instance whose clock is
// ahead begins the next one with the sum of those before, while an instance that is behind still adds to the last one.
// A tenant that uses up its limit within the difference of two clocks (or the moment by which a read is old) may there
// get more than its limit, and twice as much at most. The surplus counts like other keys: within 5 minutes it is
// seen, and nothing more is admitted until enough of them are active no longer. At any other time the limit is never
// exceeded.
//
// A key counts for Config.ActiveFor and up to one
// hour more, less the minutes for which unused rights outlive their hour. A key counts for that long even if its
// operation ends early or never ends. Rights that an instance has not used are given back; those of an instance that
// dies count as keys.
//
// # What a replay takes
//
// An operation that reads before it reserves asks nothing for a replay: optimistic and deferred ones always, atomic and wrapped
// ones with idem.Operation.ReadFirst. Without that a request learns only from its lost reserve that it is a replay. It has taken a
// right by then, from the block in hand or else from the counter, and gives it back to its instance, not to the counter. There the
// tenant's next new key uses it. Until that comes the other instances lack it: a right of a rate to the end of its window. Of
// active keys each instance so keeps one in hand, which counts as a key, and does so for Config.ActiveFor after the instance was last
// asked for the tenant. Duplicates in many instances, each of which serves few requests, may so use up a small limit: set ReadFirst
// where the instances are AWS Lambda's. It costs each new key one read and one round trip.
//
// # Cost
//
// Each block costs one write unit. That is one for each key where an instance sees fewer than 16 keys a second, and
// 0.02 for each key at 500 a second. An instance that met the limit in the last minute reads before it adds, for half
// a read unit, so refused requests cost no writes. Active keys cost another half a read unit for each day remembered,
// every 5 minutes, and every 10 s while the limit is met.
//
// A partition of DynamoDB takes 1,000 writes and 3,000 reads a second. The rights of a window are therefore divided
// among counters of [ShardRate] rights each, and each instance begins with a random one. One counter takes at most
// 500 writes in a window, and one more from each instance in the first window in which the limit is met. The counter
// of active keys takes a write from each instance every few seconds, however many keys there are.
package quota
