package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Quota limits one tenant's new keys and look-ups; package quota enforces it across instances. It is never asked about a
// replay. A [*QuotaError] refuses. Any other error means that the quota could not be read, and the request gets 503.
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

// askQuota asks for the right to a new key. What a policy in observe mode executes besides is not asked for: it acts on
// nothing.
func (x *execution) askQuota(ctx context.Context) error {
	quota := x.engine.cfg.Quota
	if quota == nil || x.op.Policy.Observe && x.req.OneOff {
		return nil
	}
	giveBack, err := quota.NewKey(ctx, x.req.Tenant)
	if err != nil {
		return quotaError(err)
	}
	x.giveBack = giveBack
	return nil
}
