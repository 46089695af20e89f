// Package hourly compares every hour of the ledger in pieces, on an SQS work queue (ADR 0042).
//
// An hour is compared in passes: soon after it is over, an hour later, and behind the longest that anything is worked on or
// unknown. A pass over an hour is cut into parts of equal length; one part is a [Piece], the unit of work. Every few minutes the
// [Planner] puts what is not done into the queue, and a [Worker] compares one piece a message, newest rows first. How far it came
// and what it found is one row, which is replaced under its revision: a second run of the piece, a doubled message or a process
// that comes back from a freeze changes nothing. The queue only wakes: what it loses, the planner sends again, because an hour is
// done when all of its pieces say so in the table.
package hourly
