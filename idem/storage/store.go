package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps records and messages. Its implementations pass storetest.Run. Every write is conditional, and its errors
// mean the same in every store:
//
//   - nil: the write is known to have happened.
//   - [*RecordConflictError], [*MessageConflictError], [*WriteFailedError]: a condition failed, nothing happened.
//   - [ErrContention], as a [*ContentionError]: another transaction or a throttle stopped the write, nothing happened.
//   - [*OutcomeUnknownError]: there was no reply; the write may have happened, or may still happen.
//   - [ErrResponseTooLarge]: refused before anything was sent.
//   - [*NotAskedError]: nothing was sent: the store is known to be down (package breaker), the call's time was over, or
//     there were no credentials to sign it with.
//   - anything else: nothing happened, and trying again is not known to help.
//
// No write leaves after the deadline of its context. A store compares that with its clock last, by the monotonic clock and by the
// wall clock: the context ends by the first alone, which stands still while a machine is suspended. What the write is about may
// have expired meanwhile and be gone, so that its condition holds. What is too late is a [*NotAskedError].
//
// A Store is safe for concurrent use.
type Store interface {
	Loss
	// Get reads a record strongly; nil if there is none. Expired records are returned too.
	Get(ctx context.Context, key RecordKey) (*Record, error)
	// LoadResponse returns the record with the body of its response. It reads chunks, and decrypts a sealed response; a store
	// that does not encrypt refuses a sealed one. It returns [ErrChunksMissing] if chunks are gone, and [ErrErased] if nobody
	// can decrypt the response any more.
	LoadResponse(ctx context.Context, r Record) (Record, error)
	// ScopeMark returns the mark of the secret that the store's records are named under (Config.ScopeSecret), read
	// strongly. If there is none it stores the given one, unless that is empty. Of two that come at once one is stored,
	// and both callers get that one. No method changes or removes it later. A write without a reply is an
	// [*OutcomeUnknownError], and may be sent again.
	ScopeMark(ctx context.Context, keep string) (kept string, err error)
	// Insert writes the record if its key is absent, or free at now: an Update whose fence has FreeAt. A
	// [*RecordConflictError] has the stored record.
	Insert(ctx context.Context, r Record, now time.Time) error
	// Update writes the whole record where the stored one satisfies the fence.
	Update(ctx context.Context, r Record, fence Fence) error
	// Renew changes the stored record's lease and revision to the given one's, where the fence admits it, and nothing else:
	// neither its state nor its place in its queue. A fence that admits absence is refused.
	Renew(ctx context.Context, r Record, fence Fence) error
	// Postpone moves the stored record to another place in its queue, the given one's LookAt, where the fence admits it.
	// Everything else stays, the revision too. No time at all, and a fence that admits absence, are refused.
	Postpone(ctx context.Context, r Record, fence Fence) error
	// Prepare freezes a commit into one transaction and returns what sends it. Sending again sends identical bytes with
	// the same token, so a lost reply is resolved by sending again: a transaction that happened succeeds again and changes
	// nothing, for at least ten minutes. One that failed is judged again. A token that comes back with another content is
	// an error.
	Prepare(c Commit) (send func(context.Context) error, err error)
}

// Commit is one transaction of an execution. Item 0 is always the record.
type Commit struct {
	// Record is the record as it is to be stored.
	Record Record
	// Fence is the condition on the stored record. Nil inserts the record if the key is absent or free at Now.
	Fence *Fence
	// Now is the time frozen into the transaction's conditions.
	Now time.Time
	// Writes are the business writes, in order: a [*WriteFailedError] names positions here. No two of them are about the same
	// row, and record, messages and writes are at most 100 items: both are refused.
	Writes []Write
	// Messages are inserted, each if absent.
	Messages []Message
	// Token is the client request token, at most 36 characters: hash(owner, phase, attempt).
	Token string
}

// Settlement is the one transaction that ends a message, or starts it again.
type Settlement struct {
	// Message is what the message becomes.
	Message MessageEnd
	// Replace, where set, is the whole message as it is to be stored; of Message only what identifies it counts then.
	Replace *Message
	// Fence is what the stored message must satisfy.
	Fence MessageFence
	// Record is what the record becomes; nil leaves it (another message follows, or it is final already). The stored
	// one must be pending under the same operation id.
	Record *RecordEnd
	// Check, where set, is the condition on a record that is not changed. Not with Record.
	Check *RecordCheck
	// Writes are the business writes, in order.
	Writes []Write
	// Next is inserted, if absent: the next message of the chain.
	Next *Message
	// Earlier are the other messages of a chain that ends: they get the RemoveAt of Message. One that is gone is left out.
	Earlier []MessageID
	// Token is the client request token, at most 36 characters.
	Token string
}

// RecordCheck is a condition on a record that the write does not change: it must be pending under the operation id. With
// Ended it must not be that, but final, another incarnation's, or absent.
type RecordCheck struct {
	// Key is the record's.
	Key RecordKey
	// OperationID is the incarnation that is meant.
	OperationID OperationID
	// Ended demands the opposite, as above.
	Ended bool
}

// Admits says whether the stored record, nil if there is none, satisfies the check.
func (c RecordCheck) Admits(r *Record) bool {
	if c.Ended {
		return r == nil || r.OperationID != c.OperationID || r.State.Final()
	}
	return r != nil && r.OperationID == c.OperationID && r.State == StatePending
}

// MessageEnd is what a settlement makes of a message; the attributes that are not named here stay as they are.
type MessageEnd struct {
	// ID is the message's.
	ID MessageID
	// Tenant and Topic are the message's, and Sealed is as in [Message]. A store that encrypts needs them. They are not
	// written.
	Tenant, Topic string
	Sealed        bool
	// State is the message's from now on.
	State MessageState
	// Revision is the message's from now on.
	Revision Revision
	// DoneAt, Reference, LastOutcome and SettledBy are as in [Message].
	DoneAt      time.Time
	Reference   string
	LastOutcome string
	SettledBy   Settler
	// KeptDelivered and KeptDeclined are kept on the message; nil removes nothing.
	KeptDelivered, KeptDeclined *Kept
	// Unfailed makes the message so, as in [Message]; false leaves it.
	Unfailed bool
	// SweepAt is the message's place in its queue, if its state is not final.
	SweepAt time.Time
	// RemoveAt is the message's, if its operation has ended; zero leaves it.
	RemoveAt time.Time
}

// RecordEnd is what a settlement makes of a record.
type RecordEnd struct {
	// Key is the record's.
	Key RecordKey
	// OperationID is the incarnation that ends.
	OperationID OperationID
	// State is completed or failed.
	State State
	// Revision is the record's from now on.
	Revision Revision
	// Response is the final answer.
	Response Response
	// Sealed is as in [Record].
	Sealed bool
	// DoneAt and ExpiresAt are as in [Record].
	DoneAt    time.Time
	ExpiresAt time.Time
	// FreeAt is as in [Record].
	FreeAt time.Time
	// Expiry is the record's, as its message carries it.
	Expiry Expiry
	// LastError is as in [Record].
	LastError string
}

// Errors that callers only branch on.
var (
	// ErrContention: another transaction, a throttle or a capacity limit stopped the write, and nothing happened.
	ErrContention = errors.New("idem: contention in the store")
	// ErrThrottled is the ErrContention of a throttle or capacity limit.
	ErrThrottled = fmt.Errorf("%w: throttled", ErrContention)
	// ErrKeyUnavailable is the ErrThrottled of a tenant's encryption key that can't be fetched. It says nothing of the store, nor of other
	// tenants' rows.
	ErrKeyUnavailable = fmt.Errorf("%w: a tenant's key can't be fetched", ErrThrottled)
	// ErrResponseTooLarge: the response does not fit, and nothing was sent.
	ErrResponseTooLarge = errors.New("idem: response too large to store")
	// ErrChunksMissing: a record's response is stored in chunks that cannot be read.
	ErrChunksMissing = errors.New("idem: the stored response is incomplete")
	// ErrErased: a stored response or a message's payload was encrypted under a tenant's key that was erased.
	ErrErased = errors.New("idem: the tenant's key was erased")
)

// RecordConflictError says that the condition on a record failed, and nothing of the write happened.
type RecordConflictError struct {
	// Existing is the stored record without the body of a chunked response; nil when there is none.
	Existing *Record
	// Message is the stored message, if the same transaction failed on a message that it would have inserted or changed;
	// otherwise nil. It is the caller's own message if a commit that was applied is sent again.
	Message *Message
}

// Error implements error.
func (e *RecordConflictError) Error() string {
	if e.Existing == nil {
		return "idem: the record is gone"
	}
	return fmt.Sprintf("idem: the record is %s under another fence", e.Existing.State)
}

// MessageConflictError says that the condition on a message failed, and nothing of the write happened.
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

// WriteFailedError says that the condition of a business write failed, those of the record and the messages did not, and
// nothing happened. If some items were not judged, another transaction was changing them at the time; the caller decides
// whether the failed conditions count.
type WriteFailedError struct {
	// Indexes are the positions of the writes that failed, ascending; at least one.
	Indexes []int
	// Unjudged are the positions of the writes that were not judged, because of another transaction or a throttle.
	Unjudged []int
	// OwnUnjudged says that an item of the store's own was not judged: the record, a message, or a part of the response.
	OwnUnjudged bool
}

// Error implements error.
func (e *WriteFailedError) Error() string {
	text := fmt.Sprintf("idem: the conditions of writes %v failed", e.Indexes)
	if len(e.Unjudged) > 0 || e.OwnUnjudged {
		text += fmt.Sprintf("; writes %v were not judged, nor was the store's own part: %v", e.Unjudged, e.OwnUnjudged)
	}
	return text
}

// ContentionError says that another transaction, a throttle or a capacity limit stopped the write, and nothing happened.
// It is [ErrContention], and [ErrThrottled] where Throttled is set.
type ContentionError struct {
	// Unjudged are the positions of the business writes that were not judged; none if it was an item of the store's own.
	Unjudged []int
	// Throttled says that it was a throttle or a capacity limit.
	Throttled bool
}

// Error implements error.
func (e *ContentionError) Error() string {
	if e.Throttled {
		return ErrThrottled.Error()
	}
	return ErrContention.Error()
}

// Is says that it is ErrContention, and which of the two.
func (e *ContentionError) Is(target error) bool {
	return target == ErrContention || e.Throttled && target == ErrThrottled
}

// MalformedError says that a stored message cannot be read: another release wrote it, or it is damaged.
type MalformedError struct {
	// ID is the message's, where that can be read.
	ID MessageID
	// Cause says what cannot be read.
	Cause error
}

// Error implements error.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("idem: the stored message %s can't be read: %v", e.ID, e.Cause)
}

// Unwrap returns the cause.
func (e *MalformedError) Unwrap() error { return e.Cause }

// MalformedRecordError says that a stored record cannot be read at all, and not be judged: another release wrote it, or it is
// damaged.
type MalformedRecordError struct {
	// Key is the record's.
	Key RecordKey
	// Cause says what cannot be read.
	Cause error
}

// Error implements error.
func (e *MalformedRecordError) Error() string {
	return fmt.Sprintf("idem: the stored record %s can't be read: %v", e.Key, e.Cause)
}

// Unwrap returns the cause.
func (e *MalformedRecordError) Unwrap() error { return e.Cause }

// NotAskedError says that the call was not sent to the store, so nothing happened.
type NotAskedError struct {
	// RetryAfter is when a store that is known to be down will be called again; 0 if Cause is set.
	RetryAfter time.Duration
	// Cause is why the call was not sent, if the store is not known to be down.
	Cause error
}

// Error implements error.
func (e *NotAskedError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("idem: nothing was sent to the store: %v", e.Cause)
	}
	return fmt.Sprintf("idem: the store is down and is not asked for %v", e.RetryAfter)
}

// Unwrap returns the cause.
func (e *NotAskedError) Unwrap() error { return e.Cause }

// OutcomeUnknownError says that the store gave no reply. The write may have happened, or may still happen.
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
