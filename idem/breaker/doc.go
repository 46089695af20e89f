// Package breaker is a circuit breaker around a store. While the store is down, new requests are refused at once,
// with 503 and a Retry-After, instead of waiting for time-outs. Nothing runs unprotected meanwhile.
//
// Use it in every service whose store is reached over a network; package lambdaapp does. A store in memory does not
// need it. Wrap the store itself. What may answer without the store, such as package cache, goes around the breaker,
// so that its replays go on while the breaker is open:
//
//	store, err := breaker.New(dynamoStore, breaker.Config{})
//
// Only calls that begin something are refused, with a [*storage.NotAskedError] that says that nothing was sent. Calls
// that end something are always sent, because only the store can tell what becomes of an effect that may have
// happened:
//
//	refused while open                  sent always
//	Get, QueuedMessages, QueuedRecords  Message (evidence is judged by it), LoadResponse (its record was just read)
//	Place                               SetPlace
//	Insert, Update to in_progress       Insert, Update to anything else: complete, reject, release, fence off, park
//	UpdateMessage to claimed            UpdateMessage to anything else: back off, park, offer
//	                                    commits (their handler has run) and settlements
//
// While the store is down, a request that has begun waits for its time-outs, as it does without a breaker, and a new
// request does not wait. A commit whose reply was lost is still sent again, and still fenced off.
//
// The breaker opens after Config.FailuresMax failures in a row. A failure is a call without a reply: a time-out, a
// broken or refused connection, a 5xx. Any reply counts as an answer: conflicts, failed conditions, running
// transactions, refused access, and throttles too. One busy key or tenant can cause those, and the engine retries
// them within bounds; a breaker that opened on them would refuse every tenant because of one. A call does not count
// at all if its caller hung up, if it timed out after beginning with less than Config.Patience, or if it ended without a
// reply Config.Patience after its context: then its process was frozen, or had no processor.
//
// After Config.OpenFor the next call alone is sent, as a probe; the others are still refused. It is a request like
// any other, whose writes are conditional and fenced, so it does no harm if its reply is lost as well. Any answer
// closes the breaker, and a failure opens it again.
//
// Each process has a breaker with a state of its own. Methods that a store has besides and that make no call, such as
// DecodeImage of dynamo.Store, are called on that store itself.
package breaker
