// Package outbox delivers the messages that commits insert, and ends messages and records that no process works on any
// more. [Topics] say how each kind of effect is made, a [Worker] delivers one message, and a [Runner] sweeps and
// reconciles messages and the records of wrapped operations. In a container [Runner.Run] does all of that; Lambda
// functions call its parts.
//
// The state of a message is its row. A stream record, a queue message and the sweep are only wake-ups, and any of them
// may be late, doubled or lost.
//
// What the runner cannot decide waits for an operator: [Operator] changes messages, and idem.Engine.Resolve and
// idem.Engine.Free change records.
package outbox
