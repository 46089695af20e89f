package idem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Resolved is evidence of what an opaque execution did, by another way than its holder: a probe or a person.
type Resolved struct{ Response Response }

// Freed is proof that nothing happened, by another way than the holder: a probe or a person who waited for the lease and
// for whatever it sent; or, of a lease that is not opaque, no proof at all: its holder is fenced off, as by [FencedOff].
type Freed struct{ Reason string }

func (Resolved) event() {}
func (Freed) event()    {}

// resolved leaves the commit's own flag unset: nobody knows what else the handler wrote.
func resolved(r Record, e Resolved, now time.Time) (Record, Effect, error) {
	if r.State != StateUnknown || r.Kind != KindOpaque {
		return r, 0, &TransitionError{r.State, e}
	}
	return finish(r, Completed{Response: e.Response}, now), EffectStore, nil
}

// freed fences off whoever held the record, whatever it is. What an opaque handler sent may be under way while its lease
// lives, parked or not; and one that is dead is parked first, so that it is never free without having been unknown.
func freed(r Record, e Freed, now time.Time) (Record, Effect, error) {
	proven := r.State == StateUnknown && r.Kind == KindOpaque && !now.Before(r.LeaseUntil)
	held := r.State == StateInProgress && r.Kind != KindOpaque
	if !proven && !held {
		return r, 0, &TransitionError{r.State, e}
	}
	r.State, r.LeaseUntil, r.LastError = StateFailedRetryable, now, e.Reason
	r.Epoch++
	return r, EffectStore, nil
}

// leaseRanOut is why a dead opaque lease is parked, by whoever meets it.
const leaseRanOut = "the lease ran out"

// ParkDead does what whoever meets a dead opaque lease does: it makes the record unknown, fenced by what was seen, and
// returns that state. It returns "" where there was nothing to do: no such record, a live lease, one that the next
// request takes over, or a race that somebody else won.
//
// Errors: [*UnavailableError], an [*UnreadableError] inside one for a record that this release can't judge.
func (e *Engine) ParkDead(ctx context.Context, key RecordKey) (State, error) {
	seen, err := e.get(ctx, key)
	switch {
	case err != nil:
		return "", err
	case seen == nil:
		return "", nil
	case !seen.Readable():
		return "", unavailable(&UnreadableError{seen.SchemaVersion, seen.State, seen.Kind})
	case !seen.LeaseDead(e.now()) || seen.mayRunAgain():
		return "", nil
	}
	parked, err := e.decide(ctx, *seen, Parked{Reason: leaseRanOut})
	var conflict *RecordConflictError
	switch {
	case errors.As(err, &conflict):
		return "", nil
	case err != nil:
		return "", err
	}
	e.tellDecided(ctx, eventSwept, *seen, slog.Int64("overdue_ms", e.now().Sub(seen.LeaseUntil).Milliseconds()))
	return parked.State, nil
}

// Resolve completes an opaque operation whose outcome was unknown, with the answer that its handler would have given: from
// now on every request with its key gets it. It is a person's, or a probe's, with evidence that the effect happened; seen
// is the record as they saw it.
//
// Errors: a [*RecordConflictError] with what is there now, where that is not what was seen; [ErrNotLive];
// [*TransitionError] for a record that is not unknown; [*ResponseError] for a response that can't be an answer;
// [ErrResponseTooLarge]; [*UnavailableError], after which it may be called again.
func (e *Engine) Resolve(ctx context.Context, tenant string, id OperationID, seen Fence, response Response) (Record, error) {
	if err := e.storable(response); err != nil {
		return Record{}, err
	}
	r, err := e.seen(ctx, tenant, id, seen)
	if err != nil {
		return Record{}, err
	}
	next, err := e.decide(ctx, r, Resolved{Response: response})
	if err != nil {
		return Record{}, err
	}
	e.tellDecided(ctx, eventReconciled, next, slog.String("outcome", "found"), slog.Int("status", response.Status))
	return next, nil
}

// Free makes a record's key executable again. It is a person's, or a probe's, with proof that nothing happened; seen is the
// record as they saw it. An opaque record must be unknown, its lease over, and the proof no older than the longest request
// after that: package recovery waits for it, a person has to. Any other record that is in progress needs no proof: its
// holder is fenced off and can't commit any more.
//
// Errors: as with [Engine.Resolve]; [*TransitionError] for a record that is in another state, and for an opaque one that
// is in progress or whose lease lives.
func (e *Engine) Free(ctx context.Context, tenant string, id OperationID, seen Fence, reason string) (Record, error) {
	r, err := e.seen(ctx, tenant, id, seen)
	if err != nil {
		return Record{}, err
	}
	next, err := e.decide(ctx, r, Freed{Reason: reason})
	if err != nil {
		return Record{}, err
	}
	outcome := "absent"
	if r.State == StateInProgress {
		outcome = "fenced_off"
	}
	e.tellDecided(ctx, eventReconciled, next, slog.String("outcome", outcome), slog.String("reason", reason))
	return next, nil
}

// ResponseError is a response that no request can be answered with.
type ResponseError struct{ Status int }

// Error implements error.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("idem: a response with status %d, which must be 200..599", e.Status)
}

// storable refuses a response that can't be stored.
func (e *Engine) storable(response Response) error {
	if response.Status < 200 || response.Status > 599 {
		return &ResponseError{response.Status}
	}
	if n := response.Bytes(); n > e.cfg.ResponseBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrResponseTooLarge, n, e.cfg.ResponseBytesMax)
	}
	return nil
}

// seen reads the tenant's record and demands that it is what somebody saw.
func (e *Engine) seen(ctx context.Context, tenant string, id OperationID, fence Fence) (Record, error) {
	r, err := e.find(ctx, tenant, id)
	if err == nil && !fence.Admits(r) {
		err = &RecordConflictError{Existing: &r}
	}
	return r, err
}

// decide makes an event happen to a record exactly as it was seen, or returns a [*RecordConflictError]. What is written is
// frozen once and sent again while there is no reply; what is in the way may then be what was sent.
func (e *Engine) decide(ctx context.Context, seen Record, event Event) (Record, error) {
	next, err := e.revised(Step(seen, event, e.now()))
	if err != nil {
		return Record{}, err
	}
	lost := false
	for try := 0; ; try++ {
		err := e.replace(ctx, seen, next)
		var conflict *RecordConflictError
		var unknown *OutcomeUnknownError
		switch {
		case err == nil:
			return next, nil
		case errors.As(err, &conflict):
			return e.decided(ctx, next, conflict, lost)
		case errors.As(err, &unknown):
			lost = true
		case !errors.Is(err, ErrContention):
			return Record{}, amendError(err)
		}
		if try == amendsMax-1 || e.cfg.Pause(ctx, e.jitter(pollPause(try))) != nil {
			return Record{}, amendError(err)
		}
	}
}

// decided tells one's own landed write, whose reply was lost, from another's.
func (e *Engine) decided(ctx context.Context, next Record, conflict *RecordConflictError, lost bool) (Record, error) {
	r := conflict.Existing
	if !lost || r == nil || !FenceOf(next).Admits(*r) || !r.DoneAt.Equal(next.DoneAt) || r.LastError != next.LastError {
		return Record{}, conflict
	}
	stored, err := e.load(ctx, *r)
	switch {
	case errors.Is(err, ErrErased):
		return *r, nil
	case err != nil:
		return Record{}, err
	case !sameResponse(stored.Response, next.Response):
		return Record{}, conflict
	}
	return stored, nil
}

func sameResponse(a, b Response) bool {
	return a.Status == b.Status && slices.Equal(a.Header, b.Header) && bytes.Equal(a.Body, b.Body)
}

// tellDecided writes the one event line of what became of a record without a request.
func (e *Engine) tellDecided(ctx context.Context, name string, r Record, more ...slog.Attr) {
	line := []slog.Attr{
		slog.String("operation", r.Operation), slog.String("tenant", r.Tenant), slog.String("key_hash", string(r.Key)),
		slog.String("operation_id", string(r.OperationID)), slog.Int64("epoch", r.Epoch),
	}
	e.cfg.Logger.LogAttrs(ctx, eventLevel(name), name, append(line, more...)...)
}
