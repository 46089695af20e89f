package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ParkDead makes a wrapped record whose lease is over unknown, fenced by what was read, and returns that state. It
// returns "" where nothing was done: there is no such record, its lease is alive, the next request takes it over, or the
// record changed meanwhile.
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

// Resolve completes a wrapped operation whose outcome was unknown, with the answer that its handler would have given:
// from now on every request with its key gets it. It is for a person, or a probe, with evidence that the effect happened;
// seen is the revision of the record that they saw. It also completes what was only observed and has not ended, with the
// answer of a request that was executed beside it.
//
// Errors: a [*storage.RecordConflictError] with the present record, where that is not the one that was seen;
// [ErrNotLive]; [*TransitionError] for a record that is not unknown; [*ResponseError] for a response that can't be an
// answer; [ErrResponseTooLarge]; [*UnavailableError], after which it may be called again. The latter is also told where a
// try had no reply and somebody has changed the record since: nobody can say whether the try landed before that.
func (e *Engine) Resolve(ctx context.Context, tenant string, id OperationID, seen storage.Revision, response Response) (storage.Record, error) {
	c, err := e.resolution(tenant, id, response)
	if err != nil {
		return storage.Record{}, err
	}
	next, err := c.decide(ctx, seen, changeResolve)
	if err != nil {
		return storage.Record{}, err
	}
	e.tellDecided(ctx, eventReconciled, next, slog.String("outcome", "found"), slog.Int("status", response.Status))
	return next, nil
}

// What a change is called in a [TransitionError].
const changeResolve, changeFree, changeBust = "a resolution", "a release", "a cache-bust"

// resolution is the change that completes a record with a response.
func (e *Engine) resolution(tenant string, id OperationID, response Response) (*change, error) {
	if err := e.storable(response); err != nil {
		return nil, err
	}
	c, err := e.newChange(protocol.Resolve, tenant, id)
	if err != nil {
		return nil, err
	}
	c.response = response
	c.machine.Answer = c.answers.add(answer{response: response})
	return c, nil
}

// Free makes a record's key executable again. It is for a person, or a probe, with proof that nothing happened; seen is
// the revision of the record that they saw. A wrapped record must be unknown and its lease over, and the proof must be
// from as late as for [Engine.Reconcile]: later than the lease's end plus the handler's longest request, the provider's
// listing delay, Config.FreezeAllowance and Config.ClockSkew. Free looks at the lease alone. outbox.Runner waits for the
// rest, which outbox.Runner.Absence tells, and operator.Desk refuses a person's release until then. Any other record that is
// in progress needs no proof: its holder is fenced off and cannot commit any more.
//
// What was observed is freed twice, because proof about the record says nothing of a request that was executed beside it.
// After the first time the record is failed_retryable, and only those who observe execute. Free it again with proof that no
// other request was executed either; then those who enforce execute, too.
//
// Errors: as with [Engine.Resolve]; [*TransitionError] for a record that is in another state, and for a wrapped one that
// is in progress or whose lease lives.
func (e *Engine) Free(ctx context.Context, tenant string, id OperationID, seen storage.Revision, reason string) (storage.Record, error) {
	c, err := e.newChange(protocol.Free, tenant, id)
	if err != nil {
		return storage.Record{}, err
	}
	c.reason = reason
	next, err := c.decide(ctx, seen, changeFree)
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

// Question asks for the outcome of an unknown record, as it was read. It returns the answer that the handler would have
// given, if the effect happened (else its status is 0), and whether it is known that nothing happened. An error ends the
// reconciliation, and nothing is changed.
type Question func(ctx context.Context, seen storage.Record) (found Response, absent bool, err error)

// Reconcile asks for the outcome of a wrapped operation that is unknown, and writes what the answer means: completed with
// what was found, or free. It returns the new state, or "" where nothing was changed: the operation is not unknown, the
// answer decides nothing, the record changed meanwhile, or nothing was found too early for that to be a proof. Absence is
// a proof once absentAfter, Config.FreezeAllowance and Config.ClockSkew have passed since the lease's end; absentAfter is
// the longest request of the handler plus the provider's listing delay. An answer that is too large to be stored becomes
// a 500 that says so, because the effect happened.
//
// Errors: what ask returns; a [*ResponseError] for an answer that can't be one; [*UnavailableError], after which it may be
// called again; an [*UnreadableError] inside one for a record that this release can't judge.
func (e *Engine) Reconcile(ctx context.Context, tenant string, id OperationID, absentAfter time.Duration, ask Question) (storage.State, error) {
	c, err := e.newChange(protocol.Reconcile, tenant, id)
	if errors.Is(err, ErrNotLive) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c.ask = ask
	c.cfg.AbsentAfter = translation.MillisOf(absentAfter + e.cfg.FreezeAllowance + e.cfg.ClockSkew)
	switch code, err := c.drive(ctx); {
	case err != nil:
		return "", err
	case code == protocol.Unavailable:
		return "", c.refused(code, "")
	case code != protocol.Changed:
		return "", nil
	}
	next := *c.frozen.record
	if next.State == storage.StateCompleted {
		e.tellDecided(ctx, eventReconciled, next, slog.String("outcome", "found"), slog.Int("status", next.Response.Status))
	} else {
		e.tellDecided(ctx, eventReconciled, next, slog.String("outcome", "absent"), slog.String("reason", next.LastError))
	}
	return next.State, nil
}

// probe asks what became of the record.
func (c *change) probe(ctx context.Context) protocol.Input {
	in := protocol.Input{What: protocol.Probed, Outcome: protocol.OutUnclear}
	found, absent, err := c.ask(ctx, *c.seen)
	c.cfg.Life = lifeOf(c.seen.Retention, c.seen.Expiry, found.Status) // of what was found, stored or not: a resource lives all the same
	if err == nil && found.Status != 0 {
		if err = c.engine.storable(found); errors.Is(err, ErrResponseTooLarge) {
			found, err = notKept(), nil
		}
	}
	switch {
	case err != nil:
		c.fatal = err
	case found.Status != 0:
		in.Outcome, c.response = protocol.OutDelivered, found
		c.machine.Answer = c.answers.add(answer{response: found})
	case absent:
		in.Outcome = protocol.OutAbsent
	}
	return in
}

// decide makes a change to a record exactly as it was seen.
func (c *change) decide(ctx context.Context, seen storage.Revision, what string) (storage.Record, error) {
	c.machine.Seen = seenBits(seen)
	code, err := c.drive(ctx)
	switch {
	case err != nil:
		return storage.Record{}, err
	case code != protocol.Changed:
		return storage.Record{}, c.refused(code, what)
	}
	return *c.frozen.record, nil
}

// seenBits is a revision that was seen, for the machine. Of one that can't be a revision nobody can have seen the row: no row has what it is.
func seenBits(seen storage.Revision) protocol.ID {
	if bits, known := storage.Bits(seen); known && !bits.None() {
		return bits
	}
	return protocol.ID{0, 1}
}

// ResponseError says that a response has a status that no request can be answered with.
type ResponseError struct {
	// Status is the one that was given.
	Status int
}

// Error implements error.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("idem: a response with status %d, which must be 200..599", e.Status)
}

// storable refuses a response that can't be stored.
func (e *Engine) storable(response Response) error {
	if response.Status < 200 || response.Status > 599 {
		return &ResponseError{response.Status}
	}
	return response.CheckSize(e.cfg.ResponseBytesMax, storage.ResponseHeaderBytesMax)
}

// tellDecided writes the one event line of what became of a record without a request.
func (e *Engine) tellDecided(ctx context.Context, name string, r storage.Record, more ...slog.Attr) {
	line := []slog.Attr{
		slog.String("operation", r.Operation), slog.String("tenant", r.Tenant), slog.String("key_hash", string(r.Key)),
		slog.String("operation_id", string(r.OperationID)), slog.Int64("epoch", r.Epoch),
	}
	e.cfg.Logger.LogAttrs(ctx, eventLevel(name), name, append(line, more...)...)
}
