package idem

import "github.com/idem-go/idem-aws/idem/storage"

// What an application shares with those who write stores: package storage has the whole of it.
type (
	// OperationID names one incarnation of a scope. See [storage.OperationID].
	OperationID = storage.OperationID
	// MessageID names one message of an operation, and is the downstream key. See [storage.MessageID].
	MessageID = storage.MessageID
	// Response is a stored answer. See [storage.Response].
	Response = storage.Response
	// Field is one header line.
	Field = storage.Field
	// Write is one business write of a transaction. See [storage.Write].
	Write = storage.Write
	// Failure is what a failed condition of a [Write] means: [Reject], [Retry], or nothing expected.
	Failure = storage.Failure
	// Kind is how an operation is protected: when its handler runs, and what is committed together with its answer.
	Kind = storage.Kind
)

// The kinds of operation.
const (
	// KindAtomic is for handlers whose every write goes through the execution's transaction: reserve, handler, one
	// fenced transaction. A crash leaves a dead lease, which the next request takes over.
	KindAtomic = storage.KindAtomic
	// KindOptimistic is the same where duplicates may compute in parallel: one transaction inserts the completed record.
	KindOptimistic = storage.KindOptimistic
	// KindDeferred is for an effect outside the database: the record is inserted pending with its 202, together with
	// the first message; a worker performs the effect and settles.
	KindDeferred = storage.KindDeferred
	// KindWrapped is for existing handlers that write for themselves. A crash leaves unknown.
	KindWrapped = storage.KindWrapped
)

// ErrResponseTooLarge: the response does not fit, and nothing was sent.
var ErrResponseTooLarge = storage.ErrResponseTooLarge
