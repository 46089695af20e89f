package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ErrNotLive: the tenant has no record of this operation id, or it has expired.
var ErrNotLive = errors.New("idem: no live record of the operation")

// TransitionError says that the record's state does not admit the change.
type TransitionError struct {
	// State is the record's, as it was found.
	State storage.State
	// Change says what was to be done.
	Change string
}

// Error implements error.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("idem: a record in state %s can't be changed by %s", e.State, e.Change)
}

// UnreadableError says that a record has a schema version, state or kind that this release does not know. Requests for it
// get 503.
type UnreadableError struct {
	// SchemaVersion, State and Kind are what the stored record says.
	SchemaVersion int
	State         storage.State
	Kind          Kind
}

// Error implements error.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("idem: unreadable record: schema %d, state %q, kind %q", e.SchemaVersion, e.State, e.Kind)
}

// Extend lets a final record answer until the given time, at most [RetentionMax] after it was done. It returns until when
// the record answers now; the zero time means as long as its resource lives. It never shortens that time, and does not
// change how long the record's messages are kept. A response in chunks is written again with its record, in one
// transaction, so that no chunk is removed before the record.
//
// Errors: [ErrNotLive]; [*ExtendError]; [*TransitionError] for a record that is not final;
// [*UnavailableError], after which it may be called again.
func (e *Engine) Extend(ctx context.Context, tenant string, id OperationID, until time.Time) (time.Time, error) {
	c, err := e.newChange(protocol.Extend, tenant, id)
	if err != nil {
		return time.Time{}, err
	}
	c.until = until.UTC().Truncate(time.Millisecond)
	c.machine.Until = translation.InstantOf(c.until)
	switch code, err := c.drive(ctx); {
	case err != nil:
		return time.Time{}, err
	case code == protocol.Changed:
		return c.frozen.record.ExpiresAt, nil
	case code == protocol.Unchanged:
		return c.seen.ExpiresAt, nil
	default:
		return time.Time{}, c.refused(code, "an extension")
	}
}

// End ends the life of a record under [Policy].ResourceBacked, together with the resource that it made: from now on it
// has expired. Delete the resource first, then call End until it succeeds or returns [ErrNotLive]. In between, a replay
// names a resource that is gone. The other order would let a retry make a second resource.
//
// A record whose result is no success, and one that has expired, are not changed. Errors as with [Engine.Extend].
func (e *Engine) End(ctx context.Context, tenant string, id OperationID) error {
	c, err := e.newChange(protocol.EndLife, tenant, id)
	if err != nil {
		return err
	}
	code, err := c.drive(ctx)
	if err != nil || code == protocol.Changed || code == protocol.Unchanged {
		return err
	}
	return c.refused(code, "an end with its resource")
}

// CacheBust makes a completed record stop answering. The next request with its key and payload executes again, once no
// cache in front of the store can hold the old answer: Config.CacheAge after CacheBust has returned. It is for an operator who found that
// an answer is wrong.
//
// After an [*UnavailableError] the key may be held for up to 16 minutes more: with busted true the answer is not given any more, but the
// store did not confirm the write that frees the key sooner; with false the change may have been stored all the same. Calling it again
// makes it Config.CacheAge from that call: with the revision that the record has now, if it is failed_retryable and its LastError begins
// with [storage.CacheBustReason].
//
// It returns a [*CacheBustError] where executing again could make something happen twice: where the commit wrote anything
// but the record, where a policy in observe mode may have executed another request beside it, where the handler wrote for
// itself and is not safe to run again, and while the record is backed by a resource. If the answer has expired already, or
// is not given any more, nothing is done, and busted is false.
//
// seen is the revision of the record whose answer a person found wrong: where it has changed since, the error is a
// [*storage.RecordConflictError], and nothing is done. "" means whatever answer is there.
//
// Other errors: [ErrNotLive]; [*TransitionError] for a record that is not completed; [*UnavailableError].
func (e *Engine) CacheBust(ctx context.Context, tenant string, id OperationID, seen storage.Revision, reason string) (busted bool, err error) {
	c, err := e.newBust(tenant, id, seen)
	if err != nil {
		return false, err
	}
	c.reason = storage.CacheBustReason + reason
	code, err := c.drive(ctx)
	if busted = c.machine.Heard || code == protocol.Changed; err == nil {
		err = c.unbusted(code)
	}
	if busted || err == nil {
		e.cfg.Logger.WarnContext(ctx, "cache-bust", "operation", c.row(c.machine.Op).Operation, "operation_id", id, "key_hash", c.key, "reason", reason)
	}
	return busted, err
}

// newBust is the change that takes an answer out of use, as it was seen; "" is whatever answer is there.
func (e *Engine) newBust(tenant string, id OperationID, seen storage.Revision) (*change, error) {
	c, err := e.newChange(protocol.Bust, tenant, id)
	if err != nil {
		return nil, err
	}
	if seen != "" {
		c.machine.Seen = seenBits(seen)
	}
	return c, nil
}

// unbusted is the error of a cache-bust that ends with a code.
func (c *change) unbusted(code protocol.SayCode) error {
	switch {
	case code == protocol.Inadmissible && c.seen.State == storage.StateCompleted:
		return &CacheBustError{c.seen.OperationID, bustedNever(*c.seen)}
	case code != protocol.Changed && code != protocol.Unchanged:
		return c.refused(code, changeBust)
	}
	return nil
}

// bustedNever says why the answer of a completed record stays.
func bustedNever(r storage.Record) string {
	switch {
	case r.ExpiresAt.IsZero():
		return "it lives as long as its resource"
	case r.Kind == KindWrapped:
		return "its handler wrote for itself and is not safe to run again"
	case r.Observed:
		return "it was only observed, and another request may have been executed beside it"
	}
	return "its commit wrote more than the record, or a release that did not say"
}

// ExtendError refuses to let a record answer for longer than [RetentionMax].
type ExtendError struct {
	// Until is the expiry that was asked for.
	Until time.Time
	// Latest is the last instant that the record can be extended to.
	Latest time.Time
}

// Error implements error.
func (e *ExtendError) Error() string {
	return fmt.Sprintf("idem: the record can't be kept until %v; the latest is %v", e.Until, e.Latest)
}

// CacheBustError refuses a cache-bust that could make something happen twice. Nothing was changed.
type CacheBustError struct {
	// OperationID names the operation whose stored response was to be removed.
	OperationID OperationID
	// Reason says why, for the operator.
	Reason string
}

// Error implements error.
func (e *CacheBustError) Error() string {
	return fmt.Sprintf("idem: the answer of %s stays: %s", e.OperationID, e.Reason)
}
