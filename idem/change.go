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

// change performs one change of a record by somebody who does not hold it.
type change struct {
	driver
	machine protocol.Change
	cfg     protocol.Config
	// until is what a record may be extended to.
	until time.Time
	// response is what a record is completed with.
	response Response
	// was is the state of the record before it was changed.
	was storage.State
	// ask asks what became of a record, for the errand Reconcile.
	ask Question
	// rehearsed says that nothing is written: the first write counts as made.
	rehearsed bool
	// unheard is what the last try without a reply came to.
	unheard error
}

// newChange returns a change of the tenant's record of an operation id, or [ErrNotLive] for an id that can't exist.
func (e *Engine) newChange(errand protocol.Errand, tenant string, id OperationID) (*change, error) {
	key, err := id.RecordKey()
	op, none := id.Incarnation()
	if err != nil || none != nil || tenant == "" {
		return nil, ErrNotLive
	}
	return e.changeOf(key, protocol.Change{Errand: errand, Op: op}, tenant)
}

func (e *Engine) changeOf(key storage.RecordKey, machine protocol.Change, tenant string) (c *change, err error) {
	c = &change{driver: driver{engine: e, key: key, tenant: tenant}, machine: machine, cfg: e.cfg.protocol()}
	c.machine.Seed, err = e.mint.ID()
	return c, err
}

// drive drives the machine to its end: one action, one call.
func (c *change) drive(ctx context.Context) (protocol.SayCode, error) {
	in := protocol.Input{What: protocol.Begin}
	for {
		in.Now = c.now()
		var a protocol.Action
		c.machine, a = c.machine.Next(in, &c.cfg)
		switch a.Do {
		case protocol.Tell:
			return a.Say.Code, nil
		case protocol.Read:
			in = c.read(ctx, a)
		case protocol.Send:
			if c.rehearsed {
				return protocol.Changed, nil
			}
			in = c.sendChange(ctx, a)
		case protocol.Probe:
			in = c.probe(ctx)
		case protocol.Admit, protocol.Run, protocol.Wait, protocol.Ask, protocol.Call, protocol.Alert: // never of a change
		}
		if c.fatal == nil {
			c.fatal = c.judge(in.Reply.Rec)
		}
		if c.fatal != nil {
			return 0, c.fatal
		}
	}
}

// judge looks at what the machine is shown, where it is not in a header.
func (c *change) judge(shown protocol.Record) error {
	if shown.State == protocol.Absent || !c.machine.Op.None() && shown.Op != c.machine.Op {
		return nil
	}
	c.cfg.Life = lifeOf(c.seen.Retention, c.seen.Expiry, c.response.Status)
	switch c.machine.Errand {
	case protocol.Bust:
		if c.machine.Owner.None() {
			c.machine.Owner = shown.Owner
		}
	case protocol.Extend:
		return extendable(*c.seen, c.until, translation.TimeOf(c.now()))
	case protocol.EndLife:
		if c.seen.State.Final() && !c.seen.Expiry.ResourceBacked {
			return &TransitionError{State: c.seen.State, Change: "an end with its resource"}
		}
	case protocol.ParkDead, protocol.Reconcile, protocol.Resolve, protocol.Free: // as the machine decides
	}
	return nil
}

// extendable says whether a record that lives may be extended that far.
func extendable(r storage.Record, until, now time.Time) error {
	latest := r.DoneAt.Add(RetentionMax)
	if !r.State.Final() || r.Expired(now) || r.ExpiresAt.IsZero() || !until.After(r.ExpiresAt) || !until.After(latest) {
		return nil
	}
	return &ExtendError{Until: until, Latest: latest}
}

// sendChange sends a write. A row whose answer stays is written with its response, which is read first: a store writes
// whole records.
func (c *change) sendChange(ctx context.Context, a protocol.Action) protocol.Input {
	if c.pauseFirst(ctx, a) != nil {
		return protocol.Input{}
	}
	if a.Write.Rec.Revision != c.frozen.revision {
		base := c.row(a.Write.Rec.Op)
		if c.answers.at(a.Write.Rec.Answer).row != nil {
			loaded, err := c.loaded(ctx, *base)
			if err != nil {
				c.fatal = err
				return protocol.Input{}
			}
			base = &loaded
		}
		c.was = base.State
		c.freeze(a.Write, base)
	}
	in, err := c.send(ctx, a)
	if err != nil {
		c.cause = err
	}
	if in.Reply.Code == protocol.Lost {
		c.unheard = err
	}
	return in
}

// loaded is the record with its response. The life of an erased one is changed all the same; the store keeps saying that
// it was erased.
func (c *change) loaded(ctx context.Context, r storage.Record) (storage.Record, error) {
	loaded, err := c.engine.load(ctx, r, c.engine.cfg.CallTimeout)
	if errors.Is(err, storage.ErrErased) {
		r.Response.Header, r.Response.Body = nil, nil
		return r, nil
	}
	return loaded, err
}

// refused is the error of a change that was not made, or may not have been: where a try had no reply, it may have landed, and what is in
// the way now may have been written on top of it.
func (c *change) refused(code protocol.SayCode, what string) error {
	switch code {
	case protocol.NotLive:
		return ErrNotLive
	case protocol.Stale:
		if c.unheard != nil {
			return unavailable(fmt.Errorf("the record has changed since, before or after this landed: %w", c.unheard))
		}
		return &storage.RecordConflictError{Existing: c.seen}
	case protocol.Inadmissible:
		return &TransitionError{State: c.seen.State, Change: what}
	default: // not decided: below
	}
	if c.cause == nil { // its time was over before the first try
		return unavailable(&storage.NotAskedError{Cause: context.DeadlineExceeded})
	}
	return unavailable(c.cause)
}
