package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ResolveRecord completes a wrapped operation whose outcome is unknown, with the answer that its handler would have given.
func (d *Desk) ResolveRecord(ctx context.Context, id idem.OperationID, response idem.Response, ch Change) (Result, error) {
	return d.onRecord(ctx, "resolve", id, ch, recordChange{
		would: func(ctx context.Context, r storage.Record) (string, error) {
			err := d.cfg.Engine.WouldResolve(ctx, r.Tenant, id, r.Revision, response)
			return fmt.Sprintf("complete it with status %d", response.Status), admitted("resolved", r, err)
		},
		act: func(ctx context.Context, r storage.Record) (string, error) {
			next, err := d.cfg.Engine.Resolve(ctx, r.Tenant, id, r.Revision, response)
			return string(next.State), admitted("resolved", r, err)
		},
	})
}

// Release makes a record's key executable again: of a wrapped operation that is unknown and of which nothing happened, or of
// any other that is held, whose holder is fenced off. What was observed is released twice: see [idem.Engine.Free]. An operation that
// is unknown is [ErrRefused] until [outbox.Runner.Absence]: before that, nobody can know that nothing happens any more.
func (d *Desk) Release(ctx context.Context, id idem.OperationID, ch Change) (Result, error) {
	return d.onRecord(ctx, "release", id, ch, recordChange{
		judge: func(r storage.Record) error {
			if from := d.runner.Absence(r); r.State == storage.StateUnknown && d.now().Before(from) {
				return fmt.Errorf("%w: a request of its handler may be under way until %s", ErrRefused, from.Format(time.RFC3339))
			}
			return nil
		},
		would: func(ctx context.Context, r storage.Record) (string, error) {
			err := d.cfg.Engine.WouldFree(ctx, r.Tenant, id, r.Revision)
			return executes + releasedTwice(r), admitted("released", r, err)
		},
		act: func(ctx context.Context, r storage.Record) (string, error) {
			next, err := d.cfg.Engine.Free(ctx, r.Tenant, id, r.Revision, "released: "+ch.Reason)
			return string(next.State), admitted("released", r, err)
		},
	})
}

// executes is what a dry run says of a change that frees a key.
const executes = "let the next request with its key execute"

// outcomeUnchanged is that of a cache-bust of an answer that is not given any more.
const outcomeUnchanged = "unchanged"

// CacheBust makes a completed record not answer any more, where nothing else came of its execution. Where its answer has expired, or is not
// given any more, the outcome is "unchanged".
func (d *Desk) CacheBust(ctx context.Context, id idem.OperationID, ch Change) (Result, error) {
	return d.onRecord(ctx, "cache-bust", id, ch, recordChange{
		would: func(ctx context.Context, r storage.Record) (string, error) {
			busted, err := d.cfg.Engine.WouldCacheBust(ctx, r.Tenant, id, r.Revision)
			if err == nil && !busted {
				return "leave it unchanged: no answer is given any more", nil
			}
			return executes, admitted("busted", r, err)
		},
		act: func(ctx context.Context, r storage.Record) (string, error) {
			busted, err := d.cfg.Engine.CacheBust(ctx, r.Tenant, id, r.Revision, ch.Reason)
			if err == nil && !busted {
				return outcomeUnchanged, nil
			}
			return string(storage.StateFailedRetryable), admitted("busted", r, err)
		},
	})
}

// admitted says in the operator's words that a record's state does not admit a change.
func admitted(changed string, r storage.Record, err error) error {
	var not *idem.TransitionError
	if errors.As(err, &not) {
		return fmt.Errorf("operator: the %s operation is %s, and can't be %s: %w", r.Kind, r.State, changed, err)
	}
	return err
}

// ReconcileRecord asks now what became of a wrapped operation that is unknown. It is [ErrUndecided] where nobody could say, and [ErrRefused]
// for one that has no Probe.
func (d *Desk) ReconcileRecord(ctx context.Context, id idem.OperationID, ch Change) (Result, error) {
	r, err := d.found(ctx, id)
	if err != nil {
		return Result{Action: "reconcile", Subject: string(id)}, err
	}
	would := "ask what became of it"
	if r.State != storage.StateUnknown {
		would = "do nothing: it is " + string(r.State) + ", and only what is unknown is asked about"
	}
	return d.carry(ctx, ch, action{
		name: "reconcile", subject: string(id), tenant: r.Tenant, would: would,
		judge: func(context.Context) error {
			if r.State == storage.StateUnknown && d.cfg.Probes[r.Operation] == nil {
				return fmt.Errorf("%w: its operation has no Probe, so that nobody can be asked", ErrRefused)
			}
			return nil
		},
		act: func(ctx context.Context) (string, error) {
			decision, err := d.runner.ReconcileRecord(ctx, r.Tenant, id)
			if err == nil {
				err = undecided(decision)
			}
			return string(decision), err
		},
	})
}

// recordChange is a change of a record that was read.
type recordChange struct {
	// judge, where it is not nil, refuses the change, also as a dry run.
	judge func(storage.Record) error
	// would says what the change does, or why it is refused; act makes it.
	would, act func(context.Context, storage.Record) (string, error)
}

// onRecord changes a record that is as the actor saw it.
func (d *Desk) onRecord(ctx context.Context, name string, id idem.OperationID, ch Change, of recordChange) (Result, error) {
	r, err := d.found(ctx, id)
	if err != nil {
		return Result{Action: name, Subject: string(id)}, err
	}
	return d.carry(ctx, ch, action{
		name: name, subject: string(id), tenant: r.Tenant,
		judge: func(ctx context.Context) error {
			known, err := d.known(ctx) // after the record, and right before the change
			if err != nil {
				return err
			}
			if now := SeenRecord(r, known); now != ch.Seen {
				return &StaleError{string(id), ch.Seen, now}
			}
			if of.judge != nil {
				return of.judge(r)
			}
			return nil
		},
		rehearse: func(ctx context.Context) (string, bool, error) {
			would, err := of.would(ctx, r)
			return would, false, err
		},
		act: func(ctx context.Context) (string, error) { return of.act(ctx, r) },
	})
}

func (d *Desk) found(ctx context.Context, id idem.OperationID) (storage.Record, error) {
	r, err := d.record(ctx, id)
	switch {
	case err != nil:
		return storage.Record{}, err
	case r == nil:
		return storage.Record{}, ErrNotFound
	}
	return *r, nil
}
