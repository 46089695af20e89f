// Package outbox makes the effects that operations ask for, such as a charge at a provider. It delivers the messages
// that commits insert, and ends the messages and records that no process works on any more. Use it for every effect
// outside of the database: the message is committed with the business writes, and the effect then happens at most
// once.
//
// [Topics] say how each kind of effect is made, a [Worker] delivers one message, and a [Runner] sweeps and reconciles
// messages and the records of wrapped operations. In a container [Runner.Run] does all of that. On Lambda package
// lambdaapp calls its parts. [Inline] delivers a message within the request that committed it.
//
// A topic's Call sends one HTTP request with package call, or anything else that says what became of it. Queues for
// wake-ups are in package sqsqueue, and in package memqueue for one process. The state of a message is its row in the
// store. A stream record, a queue message and the sweep are only wake-ups, and any of them may be late, doubled or
// lost.
//
// The runner leaves to an operator what it cannot decide: [Operator] changes messages, and idem.Engine.Resolve and
// idem.Engine.Free change records. Package operator offers both with an audit log.
package outbox
