package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Quota limits one tenant's new keys and look-ups; package quota enforces it across instances. It never refuses a replay. It is not
// asked about one where the record is read before it is reserved: see [Operation.ReadFirst]. One with a method Wait(ctx, tenant) error is also asked before a request waits, be it for a replay: one that is over that
// limit is answered at once. A [*QuotaError] refuses. Any other error means that the quota could not be read, and the request gets 503.
type Quota interface {
	// NewKey asks for the right to one new key of the tenant. giveBack, which is not nil where err is, returns the right
	// of a request that turned out to need no new key; it does not block and is called at most once.
	NewKey(ctx context.Context, tenant string) (giveBack func(), err error)
	// LookUp asks for the right to read the status of one operation.
	LookUp(ctx context.Context, tenant string) error
}

// waitQuota is a [Quota] that limits waits too.
type waitQuota interface {
	// Wait asks for the right to one wait.
	Wait(ctx context.Context, tenant string) error
}

// mayWait says whether a request may wait, until it leaves. Where it may not, by the bounds of this process or by the quota, or where
// the quota can't be read, it is answered as if it had not wanted to: a wait is never worth an error.
func (e *Engine) mayWait(ctx context.Context, tenant string) (leave func(), may bool) {
	leave, may = e.waits.enter(tenant)
	if !may {
		return nil, false
	}
	quota, limited := e.cfg.Quota.(waitQuota)
	if !limited {
		return leave, true
	}
	err := quota.Wait(ctx, tenant)
	if err == nil {
		return leave, true
	}
	leave()
	if over := (*QuotaError)(nil); !errors.As(err, &over) {
		e.cfg.Logger.WarnContext(ctx, "not waited: the quota can't be read", "tenant", tenant, "error", err)
	}
	return nil, false
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
