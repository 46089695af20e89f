package storage

import (
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// SchemaVersion is written into every record and message. A row with another version was written by a release that this
// one does not know. Requests for it get 503, also where its key is free: a release that changes the version has to say which older
// ones [Record.Readable] and a store's condition for a free key still admit, or keys of expired rows stay closed until TTL.
const SchemaVersion = 1

// State is the state of a record. The states and who leaves them are in docs/semantics.md.
type State string

// The states that a record can be stored in. "expired" is not among them: it is derived when a record is read.
const (
	StateInProgress      State = "in_progress"
	StatePending         State = "pending"
	StateCompleted       State = "completed"
	StateFailed          State = "failed"
	StateFailedRetryable State = "failed_retryable"
	StateUnknown         State = "unknown"
)

// Known says whether this release knows the state.
func (s State) Known() bool {
	switch s {
	case StateInProgress, StatePending, StateCompleted, StateFailed, StateFailedRetryable, StateUnknown:
		return true
	}
	return false
}

// Final says whether the record holds the operation's last answer: only such records expire.
func (s State) Final() bool { return s == StateCompleted || s == StateFailed }

// Kind is how an operation is protected: when its handler runs, and what is committed together with its answer.
type Kind string

// The kinds of operation.
const (
	// KindAtomic is for handlers whose every write goes through the execution's transaction: reserve, handler, one
	// fenced transaction. A crash leaves a dead lease, which the next request takes over.
	KindAtomic Kind = "atomic"
	// KindOptimistic is the same where duplicates may compute in parallel: one transaction inserts the completed record.
	KindOptimistic Kind = "optimistic"
	// KindDeferred is for an effect outside the database: the record is inserted pending with its 202, together with
	// the first message; a worker performs the effect and settles.
	KindDeferred Kind = "deferred"
	// KindWrapped is for existing handlers that write for themselves. A crash leaves unknown.
	KindWrapped Kind = "wrapped"
)

// Known says whether this release knows the kind.
func (k Kind) Known() bool {
	switch k {
	case KindAtomic, KindOptimistic, KindDeferred, KindWrapped:
		return true
	}
	return false
}

// CacheBustReason begins the LastError of a record whose answer a cache-bust took out of use. The operator's reason follows.
const CacheBustReason = "cache-bust: "

// Record is the durable state of one scope. Times are UTC with millisecond resolution; a zero time is absent.
type Record struct {
	// Key is a hash of the scope, and the primary key in the store.
	Key RecordKey
	// State is where the record is in its life.
	State State
	// OperationID is the random id of this incarnation of the scope.
	OperationID OperationID
	// Epoch counts take-overs within an incarnation, from 1.
	Epoch int64
	// Owner is the execution that holds, or last held, the record.
	Owner Owner
	// Revision names the write that made the row. A write that moves only LookAt keeps it.
	Revision Revision
	// LeaseUntil is the end of the right to execute. It is later than the function's hard deadline, so that nobody takes
	// over from a live holder.
	LeaseUntil time.Time
	// LookAt is the record's place in its queue, if it is in one; zero means LeaseUntil.
	LookAt time.Time

	// Tenant is who made the request.
	Tenant string
	// Operation is the operation's first released name, and Kind its kind.
	Operation string
	Kind      Kind
	// Principal is a hash of the caller within the tenant, where the policy binds keys to one; else empty.
	Principal string
	// SafeToRunAgain is the declaration of a wrapped operation that running it twice does no harm.
	SafeToRunAgain bool
	// Observed says that the execution was of a policy in observe mode: other requests with the key may have been executed
	// beside it, and left no trace.
	Observed bool

	// Fingerprint is what later requests with the key are compared with.
	Fingerprint canonical.Fingerprint
	// Response is the final answer, or while the record is pending the 202.
	Response Response
	// Sealed says that the response's headers and body are encrypted; the store opens them on demand.
	Sealed bool
	// RecordOnly says that the commit that completed the record wrote nothing else: no business write, no message.
	RecordOnly bool
	// Chunks counts the items beside the record that hold the response's body; the store reads them on demand.
	Chunks int
	// ChunksDigest tells the body that lies in chunks from any other that they may hold by the time they are read. It is the store's
	// own, and empty where there are no chunks.
	ChunksDigest string

	// CreatedAt is when the key was reserved, and DoneAt when the operation ended.
	CreatedAt time.Time
	DoneAt    time.Time
	// ExpiresAt is until when the record answers. Only completed and failed records have it; a record that is backed by a
	// resource has it only after it was ended.
	ExpiresAt time.Time
	// FreeAt is from when another request may replace a record that is completed, failed or failed_retryable; zero where
	// that is not known yet.
	FreeAt time.Time
	// Retention is how long the record answers, counted from DoneAt.
	Retention time.Duration
	// Expiry is how the record's life ends, by the policy that it was reserved under.
	Expiry Expiry
	// Attempts counts executions of this incarnation.
	Attempts int
	// LastError is why the record was freed or parked; empty where it never was.
	LastError string
	// Trace is the position in a trace that began this incarnation, without its tracestate; none where nobody traced it.
	Trace trace.Context

	// Unknown is what the row holds besides, written by a release that knows more: the store's own, not to be looked at or
	// changed. A release that rewrites the record carries it through.
	Unknown any

	// SchemaVersion is that of the release that wrote the row.
	SchemaVersion int
}

// Readable says whether this release knows the record's schema version, state and kind. Requests for any other record get
// 503.
func (r Record) Readable() bool {
	return r.SchemaVersion == SchemaVersion && r.State.Known() && r.Kind.Known()
}

// LeaseDead says whether the right to execute has run out.
func (r Record) LeaseDead(now time.Time) bool {
	return r.State == StateInProgress && !now.Before(r.LeaseUntil)
}

// OnlyObserved says that nothing of the operation has ended and no state says that it may have happened, and that nobody who
// enforces may execute it: another request may have been executed beside it. That ends with the record's retention, of a dead lease by
// every clock: skew is more than two of them differ by.
func (r Record) OnlyObserved(now time.Time, skew time.Duration) bool {
	again := false
	switch r.State {
	case StateFailedRetryable:
		again = r.FreeAt.IsZero() || now.Before(r.FreeAt)
	case StateInProgress:
		again = r.LeaseDead(now) && r.mayRunAgain() && !r.Abandoned(now, skew)
	case StatePending, StateCompleted, StateFailed, StateUnknown:
	}
	return r.Observed && !r.SafeToRunAgain && again
}

// Abandoned says that what was only observed has a dead lease whose retention is over by every clock: the key is free, although the row
// says so only once a request with it has come. skew is as in [Record.OnlyObserved].
func (r Record) Abandoned(now time.Time, skew time.Duration) bool {
	return r.Observed && !r.SafeToRunAgain && r.LeaseDead(now) && r.mayRunAgain() && !now.Before(r.LeaseUntil.Add(r.Retention+skew))
}

// WireMax is the longest time after which a request to the store can still arrive: its signature is valid for 15 minutes.
// A record is kept this long, and a minute for clocks that differ, after its key is free.
const (
	WireMax        = 15 * time.Minute
	recordOutlives = WireMax + time.Minute
)

// RemoveAfter returns when native TTL may remove the record, and whether it may at all. A completed or failed record may
// be removed once its key is free and it was kept long enough; a failed_retryable one once its key is free, or a
// retention after its lease if that is not known; one in progress a retention after its lease, if running again does no
// harm. Pending, unknown and all other records in progress are never removed. Each record stays for 16 more minutes: a
// reserve that was sent before the key was free may still arrive, and must find the row, or it would leave a lease that
// nobody holds. The key of an abandoned lease is free once the row says so, and no row says it by itself: a reserve that
// meets it may be sent until it is removed, and what that one leaves ends with its own lease.
func (r Record) RemoveAfter() (time.Time, bool) {
	switch {
	case r.State.Final():
		return r.keptUntil().Add(recordOutlives), !r.FreeAt.IsZero() || !r.ExpiresAt.IsZero()
	case r.State == StateFailedRetryable && !r.FreeAt.IsZero():
		return r.FreeAt.Add(recordOutlives), true
	case r.State == StateFailedRetryable, r.State == StateInProgress && r.mayRunAgain():
		return r.LeaseUntil.Add(r.Retention + recordOutlives), true
	}
	return time.Time{}, false
}

// mayRunAgain says whether a dead lease may be taken over: by kind, or because the operation was declared safe.
func (r Record) mayRunAgain() bool { return r.Kind != KindWrapped || r.SafeToRunAgain }

// QueueLease and QueueUnknown are the queues of the records' sparse index; messages have QueueUnknown too.
const (
	QueueLease   = "lease"
	QueueUnknown = "unknown"
)

// Queue returns the queue of the sparse index that the record is in, and the time from which it should be processed. Only
// wrapped records that are not safe to run again have one: any other dead lease is taken over by the next request.
func (r Record) Queue() (queue string, at time.Time, ok bool) {
	if r.mayRunAgain() {
		return "", time.Time{}, false
	}
	at = r.LookAt
	if at.IsZero() {
		at = r.LeaseUntil
	}
	switch r.State {
	case StateInProgress:
		return QueueLease, at, true
	case StateUnknown:
		return QueueUnknown, at, true
	case StatePending, StateCompleted, StateFailed, StateFailedRetryable: // in no queue
	}
	return "", time.Time{}, false
}

// RecordRef is a record as the sparse index shows it: the attributes that never change, and when to process it. The rest
// is in the row.
type RecordRef struct {
	// Key, OperationID and Tenant are the record's.
	Key         RecordKey
	OperationID OperationID
	Tenant      string
	// At is when somebody should look at it.
	At time.Time
}
