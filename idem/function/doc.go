// Package function protects plain functions: a direct call, a queue message, a stream record. [Function.Do] runs an
// operation of an [idem.Engine] with bytes in and bytes out, in place of a request and a response. The guarantees are
// those of docs/semantics.md.
//
//	charges, err := function.New(engine,
//		idem.Operation{Name: "charges.create", Kind: idem.KindAtomic, Policy: idem.IETF()},
//		function.Config{Tenant: "shop", Key: function.JSONPointer("/detail/id")})
//	result, err := charges.Do(ctx, event, func(ctx context.Context, tx *idem.Tx, event []byte) ([]byte, error) { … })
//
// [Typed] makes of it a function of Go values, which lambda.Start takes. [Each] makes a handler of records with Go
// values for awslambda.SQS and awslambda.Stream, and [EachRaw] one of bytes; awslambda.Body is the input of a queue
// message, and [QueuePolicy] remembers a key for longer than a queue can deliver its message again. Keys that JMESPath
// picks are in package function/jmespath, so that only its users need its module. Use package middleware for HTTP
// functions: here an output is bytes, so a 500 or 429 that is written as an output would be stored as a success.
//
// # Which kind
//
// The handler of an atomic or optimistic function writes through its transaction. Writes, messages and output become
// visible together, once, or not at all. If the handler fails or crashes nothing has happened, and the next call
// executes. A deferred function sends one message, and its output answers until the message's worker has settled it.
// A wrapped function has effects of its own: use it for existing code that stays as it is. If it fails or crashes its
// outcome is unknown, and nothing executes again unless it was declared SafeToRunAgain.
//
// # Keys
//
// A key has one part or several. Each part is a string, a number or a boolean. A part that is null, missing, empty or
// composed is a [*KeyError] and never a key, because all inputs without one would share it. A key of one boolean
// alone is refused too. The parts are hashed as one canonical JSON array, so no delimiter can be forged, and the
// string "1" is another key than the number 1, which equals 1.0. The parts, like the operation's name, must not
// change once they are released.
//
// The whole input is fingerprinted, or the part of it that Config.Fields picks. The same key with another input is
// [ErrMismatch], or replays where the policy says so. Pick by Fields what a retry repeats: an event's time of
// delivery changes with each one.
//
// # Queues
//
// An item is acknowledged when its operation is decided and stored, never before:
//
//	executed, or a duplicate of what was completed     acknowledged
//	deferred, committed with its message               acknowledged: the outbox has it now
//	a duplicate of what is still running               fails, and comes again; behind it nothing of a FIFO queue runs
//	unknown                                            fails; never runs again; reaches the dead-letter queue
//	error of the handler                               fails; atomic and optimistic run again, wrapped is unknown now
//	rejected (a [StoredError])                         fails; each delivery gets the stored answer, and runs nothing
//	no key, or another input under the key             fails; reaches the dead-letter queue
//	can't be decoded, or has no fingerprint            fails (an [InputError]); reaches the dead-letter queue
//
// The visibility timeout of the queue must be longer than an execution's lease (the function's time-out and
// Config.LeaseMargin of the engine), or the duplicates of a long execution use up maxReceiveCount.
//
// # Compared with Powertools for AWS Lambda
//
// The idempotent decorator of Powertools (TypeScript 2.35.0) protects a function as a wrapped function does here. They
// differ in this:
//
//   - Powertools has no fence, so a slow first holder overwrites or deletes a newer result. Here each write of a record
//     is conditional on the execution that it belongs to.
//   - Its lease ends with Lambda's time-out, and then the function runs again, whatever it did before. Here only a function
//     that provably left nothing runs again. The outcome of a wrapped function is unknown then, and must be looked up.
//   - An exception deletes its record. Here it does so for atomic functions only, because a wrapped one may have had its
//     effect.
//   - Here business writes, outgoing messages and the result are one transaction, except for wrapped functions.
//   - By default it makes the key of the whole payload, and accepts a key that is missing or made of nulls. Callers without
//     a key then share a record, and one gets another's response. Here a key is named, and all of its parts must be there.
//   - It compares payloads under the same key only if configured to. Here they are compared unless configured otherwise.
//   - Here an empty result is stored like any other, in the bytes that the first caller got. A result that is too large
//     fails before an atomic function has committed anything. A wrapped function has run by then: it is not run again, and
//     its callers get an error that says so.
//
// Powertools has some things that this package does not have: stores other than DynamoDB, a local cache, retentions below
// an hour, decorators, a switch in the environment (Config.DisabledForTests says why), and JMESPath functions of its own
// such as powertools_json.
package function
