package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Quota bounds what one tenant may ask for; package quota enforces it across instances. It is never asked about a
// replay. Its errors: a [*QuotaError] refuses; any other means that nobody could be asked, and fails closed.
type Quota interface {
	// NewKey asks for the right to one new key of the tenant. giveBack, which is not nil where err is, returns the right
	// of a request that turned out to need no new key; it does not block and is called at most once.
	NewKey(ctx context.Context, tenant string) (giveBack func(), err error)
	// LookUp asks for the right to read the status of one operation.
	LookUp(ctx context.Context, tenant string) error
}

// QuotaError says that a tenant has used up one of its limits: 429. Nothing was reserved.
type QuotaError struct {
	// Limit names the limit: "new keys per second".
	Limit string
	// RetryAfter is when the limit will have room again.
	RetryAfter time.Duration
}

// Error implements error.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("idem: quota of %s is used up for %v", e.Limit, e.RetryAfter)
}

// quotaError passes a refusal on; trouble with asking is the store's.
func quotaError(err error) error {
	var over *QuotaError
	if errors.As(err, &over) {
		return over
	}
	return unavailable(err)
}

// newKey asks for the right to a new key before one is reserved. Where it is refused, a kind that reserves blindly looks
// first whether it needs one: a replay is never refused. It returns the record that it then finds. What a policy in
// observe mode executes besides is not asked for: it acts on nothing.
func (x *execution) newKey(ctx context.Context) (*Record, error) {
	quota := x.engine.cfg.Quota
	if quota == nil || x.giveBack != nil || x.op.Policy.Observe && x.req.OneOff {
		return nil, nil
	}
	giveBack, err := quota.NewKey(ctx, x.req.Tenant)
	if err == nil {
		x.giveBack = giveBack
		return nil, nil
	}
	err = quotaError(err)
	var over *QuotaError
	if !errors.As(err, &over) || x.looked {
		return nil, err
	}
	existing, readErr := x.read(ctx)
	if readErr != nil {
		return nil, readErr
	}
	if existing == nil {
		return nil, err
	}
	return existing, nil
}

// giveKeyBack returns a right that was not needed: the record is another's.
func (x *execution) giveKeyBack() {
	if x.giveBack != nil {
		x.giveBack()
		x.giveBack = nil
	}
}
