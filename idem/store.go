package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps records and messages. Its implementations pass storetest.Run. Every write is conditional; whatever it
// returns means the same everywhere:
//
//   - nil: the write is known to have happened.
//   - [*RecordConflictError], [*MessageConflictError], [*WriteFailedError]: a condition failed, nothing happened.
//   - [ErrContention]: a running transaction or a throttle was in the way, nothing happened.
//   - [*OutcomeUnknownError]: there was no reply; the write may have happened or happen yet.
//   - [ErrResponseTooLarge]: refused before anything was sent.
//   - [*NotAskedError]: the store is known to be down, nothing was sent (package breaker).
//   - anything else: nothing happened, and trying again is not known to help.
//
// A Store is safe for concurrent use.
type Store interface {
	// Get reads a record strongly; nil when there is none. Expired records are returned: their reader judges.
	Get(ctx context.Context, key RecordKey) (*Record, error)
	// LoadResponse returns the record with the body of its response, reading chunks where it has any, and opening it where
	// it is sealed. It returns [ErrChunksMissing] when they are gone, [ErrErased] where nobody can open it any more.
	LoadResponse(ctx context.Context, r Record) (Record, error)
	// Insert writes the record if its key is absent, or expired at now. A [*RecordConflictError] carries what is there.
	Insert(ctx context.Context, r Record, now time.Time) error
	// Update writes the record where the stored one satisfies the fence.
	Update(ctx context.Context, r Record, fence Fence) error
	// Prepare freezes a commit into one transaction and returns what sends it. Sending again sends identical bytes with
	// the same token, so a lost reply is resolved by sending again.
	Prepare(c Commit) (send func(context.Context) error, err error)
}

// Commit is one transaction of an execution. Item 0 is always the record.
type Commit struct {
	// Record is the record as it shall be.
	Record Record
	// Fence is what the stored record must satisfy; nil inserts where it is absent or expired at Now.
	Fence *Fence
	// Now is the time frozen into the transaction's conditions.
	Now time.Time
	// Writes are the business writes, in order: a [*WriteFailedError] names positions here.
	Writes []Write
	// Messages are inserted, each if absent.
	Messages []Message
	// Token is the client request token, at most 36 characters: hash(owner, phase, attempt).
	Token string
}

// Settlement is the one transaction that ends a message.
type Settlement struct {
	// Message is what the message becomes. The stored one must not be final.
	Message MessageEnd
	// Fence, where set, is what the stored message must satisfy besides. Definite evidence has none: it settles from
	// any epoch.
	Fence *MessageFence
	// Record is what the record becomes; nil leaves it (another message follows, or it is final already). The stored
	// one must be pending under the same operation id.
	Record *RecordEnd
	// Writes are the business writes, in order.
	Writes []Write
	// Next is inserted, if absent: the next message of the chain.
	Next *Message
	// Token is the client request token, at most 36 characters.
	Token string
}

// MessageEnd is what a settlement makes of a message; the attributes that are not named here stay as they are.
type MessageEnd struct {
	ID MessageID
	// Tenant is the message's and its record's, and Sealed as in [Message]: what an encrypting store goes by. They are not
	// written.
	Tenant      string
	Sealed      bool
	State       MessageState
	DoneAt      time.Time
	Retention   time.Duration
	Reference   string
	LastOutcome string
	// Evidence is kept on the message; empty removes nothing.
	Evidence []byte
	// SweepAt is where the message stands in its queue, if its state is not final.
	SweepAt time.Time
}

// RecordEnd is what a settlement makes of a record.
type RecordEnd struct {
	Key         RecordKey
	OperationID OperationID
	// State is completed or failed.
	State    State
	Response Response
	// Sealed is as in [Record].
	Sealed    bool
	DoneAt    time.Time
	ExpiresAt time.Time
	// Expiry is the record's, as its message carries it.
	Expiry    Expiry
	LastError string
}

// Errors that callers only branch on.
var (
	// ErrContention: a running transaction, a throttle or a capacity limit was in the way, and nothing happened.
	ErrContention = errors.New("idem: contention in the store")
	// ErrThrottled is the ErrContention of a throttle or capacity limit.
	ErrThrottled = fmt.Errorf("%w: throttled", ErrContention)
	// ErrResponseTooLarge: the response does not fit, and nothing was sent.
	ErrResponseTooLarge = errors.New("idem: response too large to store")
	// ErrChunksMissing: a record's response lies in chunks that can't be read.
	ErrChunksMissing = errors.New("idem: the stored response is incomplete")
	// ErrErased: a stored response or a message's payload was encrypted under a tenant's key that was erased.
	ErrErased = errors.New("idem: the tenant's key was erased")
)

// RecordConflictError: the condition on a record failed; nothing of the write happened.
type RecordConflictError struct {
	// Existing is the stored record without the body of a chunked response; nil when there is none.
	Existing *Record
}

// Error implements error.
func (e *RecordConflictError) Error() string {
	if e.Existing == nil {
		return "idem: the record is gone"
	}
	return fmt.Sprintf("idem: the record is %s under another fence", e.Existing.State)
}

// MessageConflictError: the condition on a message failed; nothing of the write happened.
type MessageConflictError struct {
	// Existing is the stored message; nil when there is none.
	Existing *Message
}

// Error implements error.
func (e *MessageConflictError) Error() string {
	if e.Existing == nil {
		return "idem: the message is gone"
	}
	return fmt.Sprintf("idem: the message is %s under another fence", e.Existing.State)
}

// WriteFailedError: the condition of a business write failed, and that of the record did not; nothing happened.
type WriteFailedError struct {
	// Indexes are the positions of the writes that failed, ascending; at least one.
	Indexes []int
}

// Error implements error.
func (e *WriteFailedError) Error() string {
	return fmt.Sprintf("idem: the conditions of writes %v failed", e.Indexes)
}

// NotAskedError: the store has been down and was not asked, so nothing of the call happened.
type NotAskedError struct {
	// RetryAfter is when it will be asked again.
	RetryAfter time.Duration
}

// Error implements error.
func (e *NotAskedError) Error() string {
	return fmt.Sprintf("idem: the store is down and is not asked for %v", e.RetryAfter)
}

// OutcomeUnknownError: the store gave no reply; the write may have happened, or may happen yet.
type OutcomeUnknownError struct {
	// Cause is what the transport said.
	Cause error
}

// Error implements error.
func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("idem: no reply from the store, the outcome is unknown: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *OutcomeUnknownError) Unwrap() error { return e.Cause }
