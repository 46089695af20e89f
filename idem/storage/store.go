package storage

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
//   - [ErrContention], as a [*ContentionError]: a running transaction or a throttle was in the way, nothing happened.
//   - [*OutcomeUnknownError]: there was no reply; the write may have happened or happen yet.
//   - [ErrResponseTooLarge]: refused before anything was sent.
//   - [*NotAskedError]: nothing was sent: the store is known to be down (package breaker), the call's time was over before
//     it could leave, or there were no credentials to sign it with.
//   - anything else: nothing happened, and trying again is not known to help.
//
// A Store is safe for concurrent use.
type Store interface {
	Loss
	// Get reads a record strongly; nil when there is none. Expired records are returned: their reader judges.
	Get(ctx context.Context, key RecordKey) (*Record, error)
	// LoadResponse returns the record with the body of its response, reading chunks where it has any, and opening it where
	// it is sealed. It returns [ErrChunksMissing] when they are gone, [ErrErased] where nobody can open it any more.
	LoadResponse(ctx context.Context, r Record) (Record, error)
	// ScopeMark returns the mark of the secret that the store's records are named under (Config.ScopeSecret), read strongly.
	// Where none is kept it keeps the given one, unless that is empty: of two that come at once one is kept, and both are
	// told which. Nothing changes or removes it later. A write without a reply is an [*OutcomeUnknownError], and may be
	// sent again.
	ScopeMark(ctx context.Context, keep string) (kept string, err error)
	// Insert writes the record if its key is absent, or free at now: an Update whose fence has FreeAt. A
	// [*RecordConflictError] carries what is there.
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
	// the same token, so a lost reply is resolved by sending again.
	Prepare(c Commit) (send func(context.Context) error, err error)
}

// Commit is one transaction of an execution. Item 0 is always the record.
type Commit struct {
	// Record is the record as it shall be.
	Record Record
	// Fence is what the stored record must satisfy; nil inserts where the key is absent or free at Now.
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

// Settlement is the one transaction that ends a message, or starts it anew.
type Settlement struct {
	// Message is what the message becomes.
	Message MessageEnd
	// Replace, where set, is the whole message as it shall be; of Message only what names it counts then.
	Replace *Message
	// Fence is what the stored message must satisfy.
	Fence MessageFence
	// Record is what the record becomes; nil leaves it (another message follows, or it is final already). The stored
	// one must be pending under the same operation id.
	Record *RecordEnd
	// Check, where set, is demanded of a record that stays as it is. Not with Record.
	Check *RecordCheck
	// Writes are the business writes, in order.
	Writes []Write
	// Next is inserted, if absent: the next message of the chain.
	Next *Message
	// Earlier are the other messages of a chain that ends: they get the RemoveAt of Message.
	Earlier []MessageID
	// Token is the client request token, at most 36 characters.
	Token string
}

// RecordCheck is demanded of a record that stays as it is: pending under the operation id or, with Ended, not that: final,
// another incarnation's, or gone.
type RecordCheck struct {
	Key         RecordKey
	OperationID OperationID
	Ended       bool
}

// Admits says whether the stored record, nil where there is none, is as demanded.
func (c RecordCheck) Admits(r *Record) bool {
	if c.Ended {
		return r == nil || r.OperationID != c.OperationID || r.State.Final()
	}
	return r != nil && r.OperationID == c.OperationID && r.State == StatePending
}

// MessageEnd is what a settlement makes of a message; the attributes that are not named here stay as they are.
type MessageEnd struct {
	ID MessageID
	// Tenant and Topic are the message's, and Sealed is as in [Message]: what an encrypting store goes by. They are not
	// written.
	Tenant, Topic string
	Sealed        bool
	State         MessageState
	// Revision is the message's from now on.
	Revision    Revision
	DoneAt      time.Time
	Reference   string
	LastOutcome string
	// KeptDelivered and KeptDeclined are kept on the message; nil removes nothing.
	KeptDelivered, KeptDeclined *Kept
	// SweepAt is where the message stands in its queue, if its state is not final.
	SweepAt time.Time
	// RemoveAt is the message's, if its operation has ended; zero leaves it.
	RemoveAt time.Time
}

// RecordEnd is what a settlement makes of a record.
type RecordEnd struct {
	Key         RecordKey
	OperationID OperationID
	// State is completed or failed.
	State State
	// Revision is the record's from now on.
	Revision Revision
	Response Response
	// Sealed is as in [Record].
	Sealed    bool
	DoneAt    time.Time
	ExpiresAt time.Time
	// FreeAt is as in [Record].
	FreeAt time.Time
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
	// Message is what the same transaction found in the place of a message that it would have inserted or changed; nil
	// where nothing was in the way of those. It is one's own where a commit that landed was sent again.
	Message *Message
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

// WriteFailedError: the condition of a business write failed, and those of the record and the messages did not; nothing
// happened. Where something was not judged, the failed conditions were judged beside a transaction that was changing the
// rest: whether they count is the caller's to decide.
type WriteFailedError struct {
	// Indexes are the positions of the writes that failed, ascending; at least one.
	Indexes []int
	// Unjudged are the positions of the writes that nobody judged, because of another transaction or a throttle.
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

// ContentionError: another transaction, a throttle or a capacity limit was in the way, and nothing happened. It is
// [ErrContention], and [ErrThrottled] where Throttled is set.
type ContentionError struct {
	// Unjudged are the positions of the business writes that were not judged; none where it was the store's own part.
	Unjudged []int
	// Throttled says that a throttle or a capacity limit was in the way.
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

// MalformedError: a stored message can't be read at all, nor judged: another release's, or damaged.
type MalformedError struct {
	// ID is the message's, where that can be read.
	ID    MessageID
	Cause error
}

// Error implements error.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("idem: the stored message %s can't be read: %v", e.ID, e.Cause)
}

// Unwrap returns the cause.
func (e *MalformedError) Unwrap() error { return e.Cause }

// NotAskedError: the store was not asked, so nothing of the call happened.
type NotAskedError struct {
	// RetryAfter is when a store that is known to be down will be asked again; 0 where Cause says why it was not.
	RetryAfter time.Duration
	// Cause is why the call did not leave, where the store is not known to be down.
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
