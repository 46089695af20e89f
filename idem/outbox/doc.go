// Package outbox delivers the messages that commits leave behind, and brings to an end what nobody holds any more: [Topics] say
// how an effect is asked for, a [Worker] delivers one message, and a [Runner] sweeps and reconciles messages and the records of
// wrapped operations alike. In a container [Runner.Run] does all of it; Lambda functions call its parts.
//
// The row is the truth. A stream record, a queue message and the sweep are only wake-ups, and any of them may be late,
// doubled or lost.
//
// What stays undecided stands in the queue of what is unknown, and is a person's: [Operator] for messages, idem.Engine.Resolve and
// idem.Engine.Free for records.
package outbox
