package idem

import (
	"context"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// WouldResolve returns the error that [Engine.Resolve] would return because of what is there now, nil where it would complete the record. The
// same machine judges the record; nothing is written, and nothing is logged.
func (e *Engine) WouldResolve(ctx context.Context, tenant string, id OperationID, seen storage.Revision, response Response) error {
	c, err := e.resolution(tenant, id, response)
	if err != nil {
		return err
	}
	return c.rehearse(ctx, seen, changeResolve)
}

// WouldFree is for [Engine.Free] what WouldResolve is for Resolve.
func (e *Engine) WouldFree(ctx context.Context, tenant string, id OperationID, seen storage.Revision) error {
	c, err := e.newChange(protocol.Free, tenant, id)
	if err != nil {
		return err
	}
	return c.rehearse(ctx, seen, changeFree)
}

// WouldCacheBust is for [Engine.CacheBust] what WouldResolve is for Resolve. busted says that the answer would not be given any more; it is
// false where nothing would be done.
func (e *Engine) WouldCacheBust(ctx context.Context, tenant string, id OperationID, seen storage.Revision) (busted bool, err error) {
	c, err := e.newBust(tenant, id, seen)
	if err != nil {
		return false, err
	}
	c.rehearsed = true
	code, err := c.drive(ctx)
	if err == nil {
		err = c.unbusted(code)
	}
	return code == protocol.Changed && err == nil, err
}

// rehearse judges a change of a record exactly as it was seen.
func (c *change) rehearse(ctx context.Context, seen storage.Revision, what string) error {
	c.rehearsed, c.machine.Seen = true, seenBits(seen)
	code, err := c.drive(ctx)
	if err == nil && code != protocol.Changed {
		err = c.refused(code, what)
	}
	return err
}
