package idem

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ParkDead does what whoever meets a dead lease of a wrapped handler does: it makes the record unknown, fenced by what was
// seen, and returns that state. It returns "" where there was nothing to do: no such record, a live lease, one that the
// next request takes over, or a race that somebody else won.
//
// Errors: [*UnavailableError], an [*UnreadableError] inside one for a record that this release can't judge.
func (e *Engine) ParkDead(ctx context.Context, key storage.RecordKey) (storage.State, error) {
	c, err := e.changeOf(key, protocol.Change{Errand: protocol.ParkDead}, "")
	if err != nil {
		return "", err
	}
	switch code, err := c.drive(ctx); {
	case err != nil:
		return "", err
	case code == protocol.Unavailable:
		return "", c.refused(code, "")
	case code != protocol.Changed:
		return "", nil
	}
	parked := c.frozen.record
	e.tellDecided(ctx, eventSwept, *parked, slog.Int64("overdue_ms", e.now().Sub(parked.LeaseUntil).Milliseconds()))
	return parked.State, nil
}

// Resolve completes a wrapped operation whose outcome was unknown, with the answer that its handler would have given: from
// now on every request with its key gets it. It is a person's, or a probe's, with evidence that the effect happened; seen
// is the revision of the record that they saw.
//
// Errors: a [*storage.RecordConflictError] with what is there now, where that is not what was seen; [ErrNotLive];
// [*TransitionError] for a record that is not unknown; [*ResponseError] for a response that can't be an answer;
// [ErrResponseTooLarge]; [*UnavailableError], after which it may be called again.
func (e *Engine) Resolve(ctx context.Context, tenant string, id OperationID, seen storage.Revision, response Response) (storage.Record, error) {
	if err := e.storable(response); err != nil {
		return storage.Record{}, err
	}
	c, err := e.newChange(protocol.Resolve, tenant, id)
	if err != nil {
		return storage.Record{}, err
	}
	c.response = response
	c.machine.Answer = c.answers.add(answer{response: response})
	next, err := c.decide(ctx, seen, "a resolution")
	if err != nil {
		return storage.Record{}, err
	}
	e.tellDecided(ctx, eventReconciled, next, slog.String("outcome", "found"), slog.Int("status", response.Status))
	return next, nil
}

// Free makes a record's key executable again. It is a person's, or a probe's, with proof that nothing happened; seen is the
// revision of the record that they saw. A wrapped record must be unknown, its lease over, and the proof no older than the
// longest request after that: package recovery waits for it, a person has to. Any other record that is in progress needs no
// proof: its holder is fenced off and can't commit any more.
//
// Errors: as with [Engine.Resolve]; [*TransitionError] for a record that is in another state, and for a wrapped one that
// is in progress or whose lease lives.
func (e *Engine) Free(ctx context.Context, tenant string, id OperationID, seen storage.Revision, reason string) (storage.Record, error) {
	c, err := e.newChange(protocol.Free, tenant, id)
	if err != nil {
		return storage.Record{}, err
	}
	c.reason = reason
	next, err := c.decide(ctx, seen, "a release")
	if err != nil {
		return storage.Record{}, err
	}
	outcome := "absent"
	if c.was == storage.StateInProgress {
		outcome = "fenced_off"
	}
	e.tellDecided(ctx, eventReconciled, next, slog.String("outcome", outcome), slog.String("reason", reason))
	return next, nil
}

// decide makes a change to a record exactly as it was seen.
func (c *change) decide(ctx context.Context, seen storage.Revision, what string) (storage.Record, error) {
	var known bool
	if c.machine.Seen, known = storage.Bits(seen); !known || c.machine.Seen.None() {
		c.machine.Seen = protocol.ID{0, 1} // no row has it: nobody can have seen this one
	}
	code, err := c.drive(ctx)
	switch {
	case err != nil:
		return storage.Record{}, err
	case code != protocol.Changed:
		return storage.Record{}, c.refused(code, what)
	}
	return *c.frozen.record, nil
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

// tellDecided writes the one event line of what became of a record without a request.
func (e *Engine) tellDecided(ctx context.Context, name string, r storage.Record, more ...slog.Attr) {
	line := []slog.Attr{
		slog.String("operation", r.Operation), slog.String("tenant", r.Tenant), slog.String("key_hash", string(r.Key)),
		slog.String("operation_id", string(r.OperationID)), slog.Int64("epoch", r.Epoch),
	}
	e.cfg.Logger.LogAttrs(ctx, eventLevel(name), name, append(line, more...)...)
}
