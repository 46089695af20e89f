package idem

import (
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// Event is something that happens to a record: [Arrived], [Accepted], [Completed], [Released],
// [FencedOff], [Parked], [Resolved], [Freed], [Extended], [Ended] or [CacheBusted].
type Event interface{ event() }

// Arrived is a request that found the record in its way.
type Arrived struct {
	// Owner, LeaseUntil, Kind and SafeToRunAgain are those of the arriving execution, should it take over.
	Owner          Owner
	LeaseUntil     time.Time
	Kind           Kind
	SafeToRunAgain bool
	// Operation is the request's registered name; another one under the same scope is a mismatch.
	Operation string
	// Fingerprint is the request's, under the version, secret and selection that it was computed with.
	Fingerprint canonical.Fingerprint
	// AnyPayload compares no fingerprints: the policy replays the first result whatever was asked.
	AnyPayload bool
}

// Accepted is the 202 of a deferred execution whose first message is committed with it.
type Accepted struct {
	Owner    Owner
	Response Response
}

// Completed is a final response of the execution that holds the record.
type Completed struct {
	Owner    Owner
	Response Response
	// Alone says that nothing else is written with it.
	Alone bool
}

// Released is the holder's proof that nothing happened.
type Released struct {
	Owner  Owner
	Reason string
}

// FencedOff ends a leased execution, not an opaque one, whose commit had no reply: once it lands, that commit never can.
type FencedOff struct{ Owner Owner }

// Parked says that an opaque execution may have had its effect: by its own holder, or by whoever meets its dead lease.
type Parked struct{ Reason string }

func (Arrived) event()   {}
func (Accepted) event()  {}
func (Completed) event() {}
func (Released) event()  {}
func (FencedOff) event() {}
func (Parked) event()    {}

// Effect is what the engine has to do after a step.
type Effect int

// The effects of a step.
const (
	// EffectStore writes the next record, fenced by the one that was seen.
	EffectStore Effect = iota + 1
	// EffectTakeOver writes the next record, fenced, and then executes.
	EffectTakeOver
	// EffectRun executes: the record is the request's own, its reply was lost.
	EffectRun
	// EffectReserve reserves anew: the record has expired.
	EffectReserve
	// EffectReplay answers from the record.
	EffectReplay
	// EffectWait answers that another execution holds the record.
	EffectWait
	// EffectUnknown answers that the outcome is not known.
	EffectUnknown
	// EffectMismatch answers that the key belongs to another request.
	EffectMismatch
	// EffectRefingerprint computes the request's fingerprint under the record's version, secret and selection, and judges
	// again.
	EffectRefingerprint
	// EffectGone answers that the record has expired and its key is not free yet.
	EffectGone
	// EffectNothing does nothing: the record is as the event would make it.
	EffectNothing
)

var effectNames = [...]string{
	"", "store", "take over", "run", "reserve", "replay", "wait", "unknown", "mismatch", "refingerprint", "gone", "nothing",
}

// String names the effect.
func (e Effect) String() string {
	if e < 1 || int(e) >= len(effectNames) {
		return fmt.Sprintf("effect %d", int(e))
	}
	return effectNames[e]
}

// TransitionError is an event that the record's state does not admit: a stale holder, or a bug.
type TransitionError struct {
	State State
	Event Event
}

// Error implements error.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("idem: a record that is %s does not admit %T", e.State, e.Event)
}

// UnreadableError is a record that this release can't judge: another schema version, state or kind (peers.md H17). It is
// answered with 503, never with a guess.
type UnreadableError struct {
	SchemaVersion int
	State         State
	Kind          Kind
}

// Error implements error.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("idem: unreadable record: schema %d, state %q, kind %q", e.SchemaVersion, e.State, e.Kind)
}

// Step is the whole state machine of a record: pure, without clock, randomness or I/O. It returns the record after the
// event and what the engine has to do; the record is unchanged unless the effect is EffectStore or EffectTakeOver. It
// returns an [*UnreadableError], a [*TransitionError], an [*ExtendError], [ErrNotLive] or a [*CacheBustError].
func Step(r Record, event Event, now time.Time) (Record, Effect, error) {
	if !r.Readable() {
		return r, 0, &UnreadableError{r.SchemaVersion, r.State, r.Kind}
	}
	switch event := event.(type) {
	case Arrived:
		return arrived(r, event, now)
	case Accepted:
		return accepted(r, event)
	case Completed:
		return completed(r, event, now)
	case Released:
		return released(r, event, now)
	case FencedOff:
		return fencedOff(r, event, now)
	case Parked:
		return parked(r, event, now)
	case Resolved:
		return resolved(r, event, now)
	case Freed:
		return freed(r, event, now)
	case Extended:
		return extended(r, event, now)
	case Ended:
		return ended(r, event, now)
	case CacheBusted:
		return cacheBusted(r, event, now)
	}
	return r, 0, &TransitionError{r.State, event}
}

// arrived judges a request. The order is the contract: expiry, then the fingerprint in every unexpired state, then state.
func arrived(r Record, e Arrived, now time.Time) (Record, Effect, error) {
	if r.Expired(now) {
		if !r.KeyFree(now) {
			return r, EffectGone, nil
		}
		return r, EffectReserve, nil
	}
	if r.Operation != e.Operation {
		return r, EffectMismatch, nil
	}
	if !e.AnyPayload {
		if !r.Fingerprint.Alike(e.Fingerprint) {
			return r, EffectRefingerprint, nil
		}
		if !r.Fingerprint.Equal(e.Fingerprint) {
			return r, EffectMismatch, nil
		}
	}
	switch r.State {
	case StateInProgress:
		return arrivedInProgress(r, e, now)
	case StatePending, StateCompleted, StateFailed:
		return r, EffectReplay, nil
	case StateFailedRetryable:
		return takeOver(r, e), EffectTakeOver, nil
	case StateUnknown:
		return r, EffectUnknown, nil
	}
	return r, 0, &TransitionError{r.State, e}
}

func arrivedInProgress(r Record, e Arrived, now time.Time) (Record, Effect, error) {
	switch {
	case !r.LeaseDead(now) && r.Owner == e.Owner:
		return r, EffectRun, nil
	case !r.LeaseDead(now):
		return r, EffectWait, nil
	case r.mayRunAgain():
		return takeOver(r, e), EffectTakeOver, nil
	}
	// A dead opaque lease is no permission to run again: whoever meets it writes unknown.
	return park(r, leaseRanOut), EffectStore, nil
}

// takeOver keeps the operation id, so that an earlier holder's messages and writes stay within the incarnation's fence.
func takeOver(r Record, e Arrived) Record {
	r.State, r.Owner, r.LeaseUntil = StateInProgress, e.Owner, e.LeaseUntil
	r.Kind, r.SafeToRunAgain = e.Kind, e.SafeToRunAgain
	r.Epoch++
	r.Attempts++
	r.LastError = ""
	return r
}

func accepted(r Record, e Accepted) (Record, Effect, error) {
	if r.State != StateInProgress || r.Owner != e.Owner || r.Kind != KindDeferred {
		return r, 0, &TransitionError{r.State, e}
	}
	r.State, r.Response, r.LeaseUntil, r.LastError = StatePending, e.Response, time.Time{}, ""
	return r, EffectStore, nil
}

// completed settles from in_progress, and for an opaque operation from unknown too: evidence is never refused.
func completed(r Record, e Completed, now time.Time) (Record, Effect, error) {
	evidence := r.State == StateUnknown && r.Kind == KindOpaque
	if r.Owner != e.Owner || r.State != StateInProgress && !evidence {
		return r, 0, &TransitionError{r.State, e}
	}
	return finish(r, e, now), EffectStore, nil
}

// finish makes the record final: it alone starts the retention.
func finish(r Record, e Completed, now time.Time) Record {
	r.State, r.Response, r.LeaseUntil, r.LastError = StateCompleted, e.Response, time.Time{}, ""
	r.DoneAt, r.ExpiresAt = now, r.Expiry.At(now, r.Retention, e.Response.Status)
	r.FreeAt = r.Expiry.FreeAt(r.ExpiresAt)
	r.Alone = e.Alone
	return r
}

func released(r Record, e Released, now time.Time) (Record, Effect, error) {
	if r.State != StateInProgress || r.Owner != e.Owner {
		return r, 0, &TransitionError{r.State, e}
	}
	r.State, r.LeaseUntil, r.LastError = StateFailedRetryable, now, e.Reason
	return r, EffectStore, nil
}

func fencedOff(r Record, e FencedOff, now time.Time) (Record, Effect, error) {
	if r.State != StateInProgress || r.Owner != e.Owner || r.Kind == KindOpaque {
		return r, 0, &TransitionError{r.State, e}
	}
	r.State, r.LeaseUntil, r.LastError = StateFailedRetryable, now, "the commit had no reply and was fenced off"
	r.Epoch++
	return r, EffectStore, nil
}

func parked(r Record, e Parked, _ time.Time) (Record, Effect, error) {
	if r.State != StateInProgress || r.Kind != KindOpaque {
		return r, 0, &TransitionError{r.State, e}
	}
	return park(r, e.Reason), EffectStore, nil
}

// park keeps owner and epoch, so that the holder's own late evidence still settles.
func park(r Record, reason string) Record {
	r.State, r.LastError = StateUnknown, reason
	return r
}
