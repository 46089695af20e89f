// Package outbox delivers the messages that commits leave behind: topics, the message's state machine, the worker and
// the sweep.
//
// The outbox row is the truth. A stream record, a queue message and the sweeper are only wake-ups, and any of them may be
// late, doubled or lost.
package outbox
