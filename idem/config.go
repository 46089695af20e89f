package idem

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// Config is the engine's configuration. The zero value of each field means its default.
type Config struct {
	// ExecutionMax bounds an execution where the context has no earlier deadline. Default 25 s.
	ExecutionMax time.Duration
	// HandlerMargin is how long before the engine's last write the handler's context ends. Default 3 s.
	HandlerMargin time.Duration
	// AnswerMargin is how long before the hard deadline the engine stops writing, to have time to answer. Default 500 ms.
	AnswerMargin time.Duration
	// LeaseMargin is how long after the hard deadline a lease ends: more than the clocks of two holders can differ.
	// Default 2 s.
	LeaseMargin time.Duration
	// WireMax is the longest time a request to the store can live on the wire after it was sent. Retentions must be
	// longer than an execution and this. Default 15 min.
	WireMax time.Duration
	// CallTimeout bounds one call to the store; past it the call counts as one without a reply. Default 5 s.
	CallTimeout time.Duration
	// SweepGrace is how long the sweep leaves a new message to its stream record. Default 15 s.
	SweepGrace time.Duration
	// ContentionTries bounds how often a write is tried that met a running transaction or a throttle. Default 6.
	ContentionTries int
	// RunsMax bounds how often a handler runs within one execution because of a lost optimistic lock. Default 5.
	RunsMax int
	// ResponseBytesMax bounds a stored response, headers included. Default 3 MiB, or what a [ResponseBound] takes if that is
	// less; more than 3.5 MiB does not fit into a transaction together with business writes, and more than the store takes
	// is refused.
	ResponseBytesMax int
	// Fingerprinter computes fingerprints. Default canonical.New(canonical.Config{}).
	Fingerprinter *canonical.Fingerprinter
	// Quota bounds what a tenant may ask for. Default: nothing does.
	Quota Quota
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Random is a cryptographic source of randomness. Default crypto/rand.Reader.
	Random io.Reader
	// Pause waits, or returns the context's error. Default: a timer.
	Pause func(context.Context, time.Duration) error
	// Logger gets what an operator should know; never bodies, keys or tokens. Default: discards.
	Logger *slog.Logger
}

const (
	responseBytesBound = 3584 << 10
	workMin            = time.Second // less is no time to execute anything in
)

func (c Config) withDefaults() Config {
	c.ExecutionMax = cmp.Or(c.ExecutionMax, 25*time.Second)
	c.HandlerMargin = cmp.Or(c.HandlerMargin, 3*time.Second)
	c.AnswerMargin = cmp.Or(c.AnswerMargin, 500*time.Millisecond)
	c.LeaseMargin = cmp.Or(c.LeaseMargin, 2*time.Second)
	c.WireMax = cmp.Or(c.WireMax, 15*time.Minute)
	c.CallTimeout = cmp.Or(c.CallTimeout, 5*time.Second)
	c.SweepGrace = cmp.Or(c.SweepGrace, 15*time.Second)
	c.ContentionTries = cmp.Or(c.ContentionTries, 6)
	c.RunsMax = cmp.Or(c.RunsMax, 5)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Pause == nil {
		c.Pause = Pause
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"ExecutionMax", c.ExecutionMax}, {"HandlerMargin", c.HandlerMargin}, {"AnswerMargin", c.AnswerMargin},
		{"LeaseMargin", c.LeaseMargin}, {"WireMax", c.WireMax}, {"CallTimeout", c.CallTimeout}, {"SweepGrace", c.SweepGrace},
	} {
		if d.value < 0 {
			return &ConfigError{"Config." + d.field, d.value, "must not be negative"}
		}
	}
	if least := c.HandlerMargin + c.AnswerMargin + workMin; c.ExecutionMax < least {
		return &ConfigError{"Config.ExecutionMax", c.ExecutionMax, fmt.Sprintf("must be at least HandlerMargin + AnswerMargin + %v = %v", workMin, least)}
	}
	if c.ContentionTries < 1 || c.RunsMax < 1 {
		return &ConfigError{"Config.ContentionTries, Config.RunsMax", fmt.Sprintf("%d, %d", c.ContentionTries, c.RunsMax), "must be at least 1"}
	}
	if c.ResponseBytesMax < 0 || c.ResponseBytesMax > responseBytesBound {
		return &ConfigError{"Config.ResponseBytesMax", c.ResponseBytesMax, fmt.Sprintf("must be at most %d", responseBytesBound)}
	}
	return nil
}

// Pause waits for d, or until the context is done, whose error it then returns.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
