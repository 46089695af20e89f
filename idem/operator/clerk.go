package operator

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// ClerkConfig is what a clerk works with. Audit is required.
type ClerkConfig struct {
	// Audit is the log of changes.
	Audit AuditLog
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// ClockOff is as in [Config]. Default: nobody is asked.
	ClockOff func(ctx context.Context) (time.Duration, error)
	// Random is a cryptographic source of randomness, for the entries' ids. Default crypto/rand.Reader.
	Random io.Reader
}

// Clerk makes changes of the application's own, and needs the audit log alone. It is for a person who has no access to records and
// messages, and for a change that is made while those are not there. It is safe for concurrent use.
type Clerk struct{ cfg ClerkConfig }

// NewClerk returns a clerk, or an [*idem.ConfigError].
func NewClerk(cfg ClerkConfig) (*Clerk, error) {
	if cfg.Audit == nil {
		return nil, &idem.ConfigError{Field: "ClerkConfig.Audit", Value: nil, Rule: "must be given"}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	return &Clerk{cfg}, nil
}

// Do carries out a change of the application's own, as [Desk.Do] does.
func (c *Clerk) Do(ctx context.Context, t Task, ch Change) (Result, error) {
	if t.Name == "" || t.Subject == "" || t.Act == nil {
		return Result{}, &InvalidError{"task", "must have a name, a subject and an act"}
	}
	return c.carry(ctx, ch, action{name: t.Name, subject: t.Subject, tenant: t.Tenant, would: t.Would, judge: t.Judge, act: t.Act})
}

func (c *Clerk) now() time.Time { return c.cfg.Now().UTC().Truncate(time.Millisecond) }
