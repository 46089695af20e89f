// Package breaker is a circuit breaker around a store: while the store is down, requests are refused at once, with 503 and
// a Retry-After, instead of each waiting for its time-outs. It fails closed, as everything here does: nothing runs
// unprotected because the store can't be asked.
//
// Only what begins something is refused, and an [*storage.NotAskedError] then says that nothing was sent. What ends something
// is sent always, because only the store can tell what becomes of an effect that may have happened:
//
//	refused while open                  sent always
//	Get, QueuedMessages, QueuedRecords  Message (evidence is judged by it), LoadResponse (its record was just read)
//	Place                               SetPlace
//	Insert, Update to in_progress       Insert, Update to anything else: complete, reject, release, fence off, park
//	UpdateMessage to claimed            UpdateMessage to anything else: back off, park, offer
//	                                    commits (their handler has run) and settlements
//
// So a store that is down costs a request that has begun its time-outs, as without a breaker, and a new one nothing. A
// commit whose reply was lost is still sent again, and still fenced off.
//
// The breaker opens after Config.FailuresMax failures in a row. A failure is a call without a reply: a time-out, a broken or
// refused connection, a 5xx. An answer is none, whatever it says: conflicts, failed conditions, running transactions,
// refused access, and throttles too. Those are a hot key's or a table's, and the engine retries them within bounds; a
// breaker that opened on them would refuse everybody for one tenant's sake. A call counts neither way whose caller hung up,
// or timed out with less than Config.Patience to begin with.
//
// After Config.OpenFor the next call is the probe, alone; the others are still refused. It is a request like any other,
// whose writes are conditional and fenced like any other's, so it does no harm if its reply is lost as well. Any answer
// closes the breaker, a failure opens it anew.
//
// Its state is the process's own. Wire it around the store itself, behind what may answer without the store (package
// cache), whose replays then go on:
//
//	store, err := breaker.New(dynamoStore, breaker.Config{})
//
// What a store has besides, such as dynamo.Store's DecodeImage, makes no call: ask that store itself.
package breaker
