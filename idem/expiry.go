package idem

import (
	"fmt"
	"time"
)

// Expiry is how the life of a final record ends, besides its retention: what the policy said when it was reserved. The
// zero value frees the key, and lets the record go, when the retention is over.
type Expiry struct {
	// KeepFor is how long the record is kept after it has expired.
	KeepFor time.Duration
	// Gone says that while it is kept it answers 410; otherwise a new request may replace it.
	Gone bool
	// ResourceBacked says that a success does not expire before it is ended, with the resource that it made.
	ResourceBacked bool
}

func (p Policy) expiry() Expiry {
	return Expiry{KeepFor: p.KeepFor, Gone: p.AfterExpiry == AfterExpiryGone, ResourceBacked: p.ResourceBacked}
}

// At is when a record expires that was done with this status; zero where it lives as long as its resource.
func (e Expiry) At(done time.Time, retention time.Duration, status int) time.Time {
	if e.ResourceBacked && status >= 200 && status <= 299 {
		return time.Time{}
	}
	return done.Add(retention)
}

// Expired says whether the record has stopped answering at now. Only final records expire; native TTL removes them later.
func (r Record) Expired(now time.Time) bool {
	return r.State.Final() && !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
}

// FreeAt is from when a new request may replace a record that expires at the given time; zero where that is not known yet.
func (e Expiry) FreeAt(expires time.Time) time.Time {
	if expires.IsZero() || !e.Gone {
		return expires
	}
	return expires.Add(e.KeepFor)
}

// KeyFree says whether a new request may replace the record at now.
func (r Record) KeyFree(now time.Time) bool {
	switch r.State {
	case StateCompleted, StateFailed, StateFailedRetryable:
		return !r.FreeAt.IsZero() && !now.Before(r.FreeAt)
	}
	return false
}

// gone is the error of an expired record that still holds its key; nil for one that counts as absent.
func (r Record) gone(now time.Time) error {
	if r.KeyFree(now) {
		return nil
	}
	return &ExpiredError{OperationID: r.OperationID}
}

// keptUntil is when a final record may go: not before its key is free. One that was ended early stays for its retention
// all the same: a commit without a reply may still be on its way, and must find that it has happened.
func (r Record) keptUntil() time.Time {
	kept := r.FreeAt
	for _, least := range []time.Time{r.ExpiresAt.Add(r.Expiry.KeepFor), r.DoneAt.Add(r.Retention)} {
		if kept.Before(least) {
			kept = least
		}
	}
	return kept
}

// Extended gives a final record more time to answer.
type Extended struct{ Until time.Time }

// Ended ends a record that is backed by a resource.
type Ended struct{}

// CacheBusted makes a completed record not answer any more, so that the next request executes again.
type CacheBusted struct {
	// Owner is the execution whose answer is meant: what a later one has answered stands.
	Owner  Owner
	Reason string
}

func (Extended) event()    {}
func (Ended) event()       {}
func (CacheBusted) event() {}

// extended never shortens, and never lets an expired record answer again.
func extended(r Record, e Extended, now time.Time) (Record, Effect, error) {
	latest := r.DoneAt.Add(RetentionMax)
	switch {
	case !r.State.Final():
		return r, 0, &TransitionError{r.State, e}
	case r.Expired(now):
		return r, 0, ErrNotLive
	case r.ExpiresAt.IsZero() || !e.Until.After(r.ExpiresAt):
		return r, EffectNothing, nil
	case e.Until.After(latest):
		return r, 0, &ExtendError{Until: e.Until, Latest: latest}
	}
	r.ExpiresAt, r.FreeAt = e.Until, r.Expiry.FreeAt(e.Until)
	return r, EffectStore, nil
}

func ended(r Record, e Ended, now time.Time) (Record, Effect, error) {
	switch {
	case !r.State.Final() || !r.Expiry.ResourceBacked:
		return r, 0, &TransitionError{r.State, e}
	case !r.ExpiresAt.IsZero():
		return r, EffectNothing, nil
	}
	r.ExpiresAt, r.FreeAt = now, r.Expiry.FreeAt(now)
	return r, EffectStore, nil
}

// cacheBusted leaves failed_retryable, which is what it is: proven that nothing happened, except that it was answered.
func cacheBusted(r Record, e CacheBusted, now time.Time) (Record, Effect, error) {
	switch {
	case r.Owner != e.Owner || r.State == StateFailedRetryable || r.Expired(now):
		return r, EffectNothing, nil
	case r.State != StateCompleted:
		return r, 0, &TransitionError{r.State, e}
	case r.ExpiresAt.IsZero():
		return r, 0, &CacheBustError{r.OperationID, "it lives as long as its resource"}
	case r.Kind == KindOpaque && !r.SafeToRunAgain:
		return r, 0, &CacheBustError{r.OperationID, "its handler wrote for itself and is not safe to run again"}
	case r.Kind != KindOpaque && !r.Alone:
		return r, 0, &CacheBustError{r.OperationID, "its commit wrote more than the record, or a release that did not say"}
	}
	r.State, r.LeaseUntil, r.LastError = StateFailedRetryable, now, "cache-bust: "+e.Reason
	r.Response, r.Sealed, r.Chunks = Response{}, false, 0
	r.Alone, r.DoneAt, r.ExpiresAt, r.FreeAt = false, time.Time{}, time.Time{}, time.Time{}
	return r, EffectStore, nil
}

// ExpiredError says that the key's time is over. Nothing was executed.
type ExpiredError struct {
	// OperationID is the expired record's; empty where none is left, and the time of the request alone tells.
	OperationID OperationID
	// FirstSent says that the client's own first-sent time is older than the retention: 412. Otherwise it is 410.
	FirstSent bool
}

// Error implements error.
func (e *ExpiredError) Error() string {
	if e.OperationID != "" {
		return fmt.Sprintf("idem: %s has expired", e.OperationID)
	}
	return "idem: the request was first sent longer ago than the retention, and has no live record"
}

// ExtendError refuses to let a record answer for longer than [RetentionMax].
type ExtendError struct {
	Until time.Time
	// Latest is the last instant that the record can be extended to.
	Latest time.Time
}

// Error implements error.
func (e *ExtendError) Error() string {
	return fmt.Sprintf("idem: a record can't answer until %v: %v is the last", e.Until, e.Latest)
}

// CacheBustError refuses a cache-bust that could make something happen twice. Nothing was changed.
type CacheBustError struct {
	OperationID OperationID
	// Reason says why, for the operator.
	Reason string
}

// Error implements error.
func (e *CacheBustError) Error() string {
	return fmt.Sprintf("idem: the answer of %s stays: %s", e.OperationID, e.Reason)
}
