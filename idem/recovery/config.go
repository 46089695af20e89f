package recovery

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Config is the configuration of sweeps and reconcilers. The zero value of each field means its default.
type Config struct {
	// LongestRequest is the longest time that a request of a handler can take to arrive and be processed, the handler being
	// gone or not: of any handler that a Probe is registered for. Default 1 min.
	LongestRequest time.Duration
	// ListingDelay is the longest time until what a handler made is found by its operation's Probe. Default 0.
	ListingDelay time.Duration
	// ClockSkew is the most by which two clocks differ. Default 2 s.
	ClockSkew time.Duration
	// ProbeTimeout bounds one Probe. Default 5 s.
	ProbeTimeout time.Duration
	// ProbeBackoffMin and ProbeBackoffMax bound what lies between two probes that decide nothing: about as long again as
	// they have been in vain. Defaults 1 min and 1 h.
	ProbeBackoffMin, ProbeBackoffMax time.Duration
	// StoreTimeout bounds one listing, and one read, of the store. Default 3 s.
	StoreTimeout time.Duration
	// SettleMargin is the end of the context's time in which nothing is looked at any more: it is for writing what was
	// found. Default 2 s.
	SettleMargin time.Duration
	// SweepPage is how many records are listed at once. Default 100.
	SweepPage int
	// SweepMax bounds how many records one run looks at; the next run goes on there. Default 10,000.
	SweepMax int
	// Now is the clock, the same as the engine's. Default time.Now.
	Now func() time.Time
	// Logger gets one line for each thing that became of a record, beside the engine's own; lines with alarm=true want a
	// person. Default: discards.
	Logger *slog.Logger

	// freeze is the engine's Config.FreezeAllowance.
	freeze time.Duration
}

func (c Config) withDefaults() Config {
	c.LongestRequest = cmp.Or(c.LongestRequest, time.Minute)
	c.ClockSkew = cmp.Or(c.ClockSkew, 2*time.Second)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, 5*time.Second)
	c.ProbeBackoffMin = cmp.Or(c.ProbeBackoffMin, time.Minute)
	c.ProbeBackoffMax = cmp.Or(c.ProbeBackoffMax, time.Hour)
	c.StoreTimeout = cmp.Or(c.StoreTimeout, 3*time.Second)
	c.SettleMargin = cmp.Or(c.SettleMargin, 2*time.Second)
	c.SweepPage = cmp.Or(c.SweepPage, 100)
	c.SweepMax = cmp.Or(c.SweepMax, 10_000)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	for _, d := range []struct {
		field        string
		value, least time.Duration
	}{
		{"LongestRequest", c.LongestRequest, time.Millisecond}, {"ListingDelay", c.ListingDelay, 0}, {"ClockSkew", c.ClockSkew, time.Millisecond},
		{"ProbeTimeout", c.ProbeTimeout, time.Millisecond}, {"ProbeBackoffMin", c.ProbeBackoffMin, time.Second},
		{"ProbeBackoffMax", c.ProbeBackoffMax, c.ProbeBackoffMin}, {"StoreTimeout", c.StoreTimeout, time.Millisecond},
		{"SettleMargin", c.SettleMargin, time.Millisecond},
	} {
		if d.value < d.least {
			return &idem.ConfigError{Field: "Config." + d.field, Value: d.value, Rule: fmt.Sprintf("must be at least %v", d.least)}
		}
	}
	if c.SweepPage < 1 || c.SweepMax < 1 {
		return &idem.ConfigError{Field: "Config.SweepPage, SweepMax", Value: fmt.Sprintf("%d, %d", c.SweepPage, c.SweepMax), Rule: "must be at least 1"}
	}
	return nil
}

// now is the clock in the resolution that is stored.
func (c Config) now() time.Time { return c.Now().UTC().Truncate(time.Millisecond) }

// provable is from when a lease's end on absence proves something (docs/design.md "Messages"): what the holder sent last
// has arrived by then, and is listed; also where it was frozen before it sent it.
func (c Config) provable(leaseUntil time.Time) time.Time {
	return leaseUntil.Add(c.LongestRequest + c.ListingDelay + c.freeze + c.ClockSkew)
}
