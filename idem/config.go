package idem

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Config is the engine's configuration. The zero value of each field means its default.
type Config struct {
	// ExecutionMax bounds an execution where the context has no earlier deadline. It does not bound a handler whose lease is
	// renewed, where the context has no deadline at all: see RunMax. Default 25 s.
	ExecutionMax time.Duration
	// HandlerMargin is how long before the engine's last write the handler's context ends. Default 3 s.
	HandlerMargin time.Duration
	// AnswerMargin is how long before the hard deadline the engine stops writing, to have time to answer. Reads end halfway between. The
	// answer of a handler that writes for itself is written for longer, unless KillsAtDeadline is set: for the rest of its lease, and for
	// at least 10 s. Default 500 ms.
	AnswerMargin time.Duration
	// LeaseMargin is how long after the hard deadline a lease ends. It must be more than the clocks of two instances can
	// differ. Default 2 s.
	LeaseMargin time.Duration
	// CallTimeout bounds one call to the store. A call that takes longer counts as one without a reply. Default 5 s.
	CallTimeout time.Duration
	// KillsAtDeadline says that the platform ends the process, or its handler, at the caller's deadline, as AWS Lambda does.
	// Then no lease is renewed. Otherwise the lease of a handler that writes for itself is renewed for as long as it runs,
	// at most RunMax. Default false; never inferred from a context.
	KillsAtDeadline bool
	// FunctionTimeout is how long the platform lets one invocation run where it is known at the start: the time-out that
	// an AWS Lambda function is deployed with. New refuses a time-out that leaves no time to execute: at least 800 ms are
	// needed, because margins shrink to half of a short time. Default 0: not known.
	FunctionTimeout time.Duration
	// RunMax is how long the lease of one handler is renewed. When it is over, an alarm is logged, and the handler's
	// context ends with its current lease. At least ExecutionMax. Default 15 min.
	RunMax time.Duration
	// ClockSkew must be more than the clocks of two instances differ by. An expired key is free that much later, so that
	// no instance still promises a replay. At most LeaseMargin. Default 2 s, or LeaseMargin where that is less.
	ClockSkew time.Duration
	// FreezeAllowance is the longest time for which a process may be frozen and then send what it was about to send.
	// outbox.Runner takes absence of what a wrapped handler did for proof only after this time. For the calls of messages,
	// outbox.Config has an allowance of its own. Default 1 min.
	FreezeAllowance time.Duration
	// CacheAge is how long a cache in front of the store may hold an answer, in this process or in any other that serves
	// the same keys. After a cache-bust the key answers 409 for this long, and is free then; for up to 16 minutes more where
	// [Engine.CacheBust] returned an [*UnavailableError] and nobody called it again. If the engine's store is a
	// [storage.CachingStore] with a longer age, that age counts. Default 1 min, the default of package cache.
	CacheAge time.Duration
	// RefuseBefore, where set, is the time up to which records may have been lost: that of a restore or a fail-over, plus
	// ClockSkew. A key that is not proven to be younger, by Idempotency-First-Sent or a time in the key, executes
	// nothing: a final answer replays, an operation that is SafeToRunAgain executes, and the rest is 503. Clients that
	// send no time get that 503 for every new key. In observe mode every request executes, and the 503 is reported. The row
	// that a [storage.Loss] keeps has the same effect on every instance, within a minute and without a deployment. The later
	// of the two counts. Default: none.
	RefuseBefore time.Time
	// SweepGrace is how much later than its creation a new message's place in the sweep's queue is; outbox.Config.SweepGrace says
	// when the sweep offers it. Default 15 s.
	SweepGrace time.Duration
	// ContentionTries bounds how often a write is tried that fails because of another transaction or a throttle. Default
	// 6.
	ContentionTries int
	// RunsMax bounds how often a handler runs within one execution because of a lost optimistic lock. Default 5.
	RunsMax int
	// ResponseBytesMax bounds a stored response, headers included, which have at most 64 KiB ([storage.ResponseHeaderBytesMax]).
	// Default 3 MiB, or what a [storage.ResponseBound] takes if that is less; more than 3.5 MiB does not fit into a transaction
	// together with business writes, and more than the store takes is refused.
	ResponseBytesMax int
	// Fingerprinter computes fingerprints. Default canonical.New(canonical.Config{}).
	Fingerprinter *canonical.Fingerprinter
	// ScopeSecret keys the names of records, and with them operation ids, so that nobody who has an id (from a provider's
	// books, a log line or a URL) can test guesses of a client's key against it. At least 32 random bytes, made once for
	// the tables, and the same in all engines over them that execute or look up by a key. Those that only deliver, sweep and
	// reconcile need none: their warning is harmless. It must never change: under another secret every key would be new. Set it before the first request: it cannot be added later. The store keeps a mark of it, or of none, and an engine
	// with another secret answers [ErrScopeSecret], which is a 503. Default: none. Then names are plain hashes, and a log line
	// at start says so.
	ScopeSecret []byte
	// Quota limits the tenants' new keys and look-ups. Default: no limit.
	Quota Quota
	// WaitsMax bounds how many requests of this process wait at once, for the execution that holds their key (InFlightWait)
	// or for a final answer ([Engine.Await]): each holds a connection, memory and, on AWS Lambda, a whole instance, which has
	// one request anyway. One too many is answered at once, as if it had not wanted to wait. Default 1,000.
	WaitsMax int
	// WaitsPerTenantMax bounds the same for each tenant, so that one whose answers take long leaves waits to the others. At
	// most WaitsMax. Default a tenth of WaitsMax, at least 1.
	WaitsPerTenantMax int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Random is a cryptographic source of randomness. Default crypto/rand.Reader.
	Random io.Reader
	// Pause waits, or returns the context's error. Default: a timer.
	Pause func(context.Context, time.Duration) error
	// AfterFunc calls a function in a goroutine of its own when the time is over, and returns how to stop that, as
	// time.AfterFunc does. It renews the lease of a handler that is running. Default: timers that share one of the runtime's.
	AfterFunc func(time.Duration, func()) (stop func() bool)
	// Logger gets what an operator should know; never bodies, keys or tokens. Default slog.Default().
	Logger *slog.Logger
}

const (
	responseBytesBound = 3584 << 10
	workMin            = 400 * time.Millisecond // less is no time to execute anything in
	countMax           = 250                    // tries and runs
)

func (c Config) withDefaults() Config {
	c.ExecutionMax = cmp.Or(c.ExecutionMax, 25*time.Second)
	c.HandlerMargin = cmp.Or(c.HandlerMargin, 3*time.Second)
	c.AnswerMargin = cmp.Or(c.AnswerMargin, 500*time.Millisecond)
	c.LeaseMargin = cmp.Or(c.LeaseMargin, 2*time.Second)
	c.CallTimeout = cmp.Or(c.CallTimeout, 5*time.Second)
	c.RunMax = cmp.Or(c.RunMax, max(15*time.Minute, c.ExecutionMax))
	c.ClockSkew = cmp.Or(c.ClockSkew, min(2*time.Second, c.LeaseMargin))
	c.FreezeAllowance = cmp.Or(c.FreezeAllowance, time.Minute)
	c.CacheAge = cmp.Or(c.CacheAge, time.Minute)
	c.SweepGrace = cmp.Or(c.SweepGrace, 15*time.Second)
	c.ContentionTries = cmp.Or(c.ContentionTries, 6)
	c.RunsMax = cmp.Or(c.RunsMax, 5)
	c.WaitsMax = cmp.Or(c.WaitsMax, 1000)
	c.WaitsPerTenantMax = cmp.Or(c.WaitsPerTenantMax, max(1, c.WaitsMax/10))
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
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"ExecutionMax", c.ExecutionMax}, {"HandlerMargin", c.HandlerMargin}, {"AnswerMargin", c.AnswerMargin},
		{"LeaseMargin", c.LeaseMargin}, {"CallTimeout", c.CallTimeout}, {"SweepGrace", c.SweepGrace},
		{"RunMax", c.RunMax}, {"ClockSkew", c.ClockSkew}, {"FreezeAllowance", c.FreezeAllowance}, {"CacheAge", c.CacheAge},
		{"FunctionTimeout", c.FunctionTimeout},
	} {
		if d.value < 0 {
			return &ConfigError{"Config." + d.field, d.value, "must not be negative"}
		}
	}
	least := c.HandlerMargin + c.AnswerMargin + workMin
	if c.ExecutionMax < least {
		return &ConfigError{"Config.ExecutionMax", c.ExecutionMax, fmt.Sprintf("must be at least HandlerMargin + AnswerMargin + %v = %v", workMin, least)}
	}
	if machine := c.protocol(); c.FunctionTimeout != 0 && !protocol.PlanOf(0, translation.MillisOf(c.FunctionTimeout), &machine).Fits(&machine) {
		return &ConfigError{"Config.FunctionTimeout", c.FunctionTimeout, fmt.Sprintf("must leave a handler %v, which has half of it beside long margins: at least %v", workMin, 2*workMin)}
	}
	if c.ClockSkew > c.LeaseMargin {
		return &ConfigError{"Config.ClockSkew", c.ClockSkew, fmt.Sprintf("must be at most LeaseMargin = %v: a lease outlives its holder on every clock", c.LeaseMargin)}
	}
	if c.RunMax < c.ExecutionMax {
		return &ConfigError{"Config.RunMax", c.RunMax, fmt.Sprintf("must be at least ExecutionMax = %v", c.ExecutionMax)}
	}
	if min(c.ContentionTries, c.RunsMax) < 1 || max(c.ContentionTries, c.RunsMax) > countMax {
		return &ConfigError{"Config.ContentionTries, Config.RunsMax", fmt.Sprintf("%d, %d", c.ContentionTries, c.RunsMax), fmt.Sprintf("must be 1..%d", countMax)}
	}
	if c.WaitsMax < 0 {
		return &ConfigError{"Config.WaitsMax", c.WaitsMax, "must be positive, or 0 for its default"}
	}
	if c.WaitsPerTenantMax < 1 || c.WaitsPerTenantMax > c.WaitsMax {
		return &ConfigError{"Config.WaitsPerTenantMax", c.WaitsPerTenantMax, fmt.Sprintf("must be 1..WaitsMax = %d, or 0 for its default", c.WaitsMax)}
	}
	if n := len(c.ScopeSecret); c.ScopeSecret != nil && n < scopeSecretBytesMin {
		return &ConfigError{"Config.ScopeSecret", fmt.Sprintf("%d bytes", n), fmt.Sprintf("must be at least %d random bytes, or nil", scopeSecretBytesMin)}
	}
	if c.ResponseBytesMax < 0 || c.ResponseBytesMax > responseBytesBound {
		return &ConfigError{"Config.ResponseBytesMax", c.ResponseBytesMax, fmt.Sprintf("must be at most %d", responseBytesBound)}
	}
	return nil
}

// Bounds of what is sent again, and how often what others change is judged anew.
const (
	fenceMargin = time.Second             // of an execution's time is kept for fencing off a commit without a reply
	reserveFor  = 3500 * time.Millisecond // a store that is down is answered with 503 soon
	completeFor = 10 * time.Second        // evidence is tried for at least that long, lease or not
	loopsMax    = 8
)

// protocol is what the machines depend on, whatever the operation.
func (c Config) protocol() protocol.Config {
	return protocol.Config{
		ExecutionMax: translation.MillisOf(c.ExecutionMax), HandlerMargin: translation.MillisOf(c.HandlerMargin), FenceMargin: translation.MillisOf(fenceMargin),
		AnswerMargin: translation.MillisOf(c.AnswerMargin), LeaseMargin: translation.MillisOf(c.LeaseMargin), WorkMin: translation.MillisOf(workMin),
		ReserveFor: translation.MillisOf(reserveFor), GiveBackFor: translation.MillisOf(reserveFor) / 2, CompleteFor: translation.MillisOf(completeFor), Kills: c.KillsAtDeadline, RunMax: translation.MillisOf(c.RunMax),
		Skew: translation.MillisOf(c.ClockSkew), CacheAge: translation.MillisOf(c.CacheAge), WireMax: translation.MillisOf(storage.WireMax),
		ContentionMax: uint8(c.ContentionTries), RunsMax: uint8(c.RunsMax), LoopsMax: loopsMax,
	}
}

// protocolOf is what the machines of an operation depend on.
func (e *Engine) protocolOf(op Operation) protocol.Config {
	c := e.cfg.protocol()
	c.Kind = protocol.Kind(slices.Index(recordKinds, op.Kind))
	c.Safe = op.SafeToRunAgain && op.Kind == KindWrapped // the rest is safe to run again by its kind
	c.ReadFirst, c.Observed, c.Inline = op.ReadFirst, op.Policy.Observe, op.Inline != nil
	return c
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
