package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// DefaultClockSkew is the default of Config.ClockSkew.
const DefaultClockSkew = 2 * time.Second

// Config is the configuration of workers, runners and operators. The zero value of each field means its default.
type Config struct {
	// ClaimLease is how long a claim is the right to call the provider. Default 10 s.
	ClaimLease time.Duration
	// CallTimeout bounds one call of a topic, and one [Probe] of a topic or an operation. Default 5 s.
	CallTimeout time.Duration
	// SettleMargin is the last part of a lease, in which no call may run: it is for the settlement. Default 2 s.
	SettleMargin time.Duration
	// FunctionTimeout is how long the platform lets one invocation run where it is known at the start: the time-out that an AWS
	// Lambda function is deployed with. It must hold a whole claim. Default 0: not known.
	FunctionTimeout time.Duration
	// SettleMax bounds how long a settlement is sent again that had no reply or met a running transaction, and any other
	// write; where the context has an earlier deadline, a settlement has half of the time until that. Default 10 s.
	SettleMax time.Duration
	// KeepMax bounds how long definite evidence that could not be settled is sent to the store, to be kept on its message,
	// where the context has no earlier deadline. If the provider neither honours keys nor can be probed, its answer to a call
	// exists nowhere else: without a deadline, or in an [Inline] whose process outlives the request, it is sent for as long as
	// the process lives, and elsewhere for KeepMax after the context is cancelled. Default 10 min.
	KeepMax time.Duration
	// RefuseBefore is the time up to which data may have been lost: that of a restore or a fail-over, plus the clocks'
	// difference. A message that was created before it counts as called, because the trace of its call may be lost. The
	// row that a [storage.Loss] keeps has the same effect on every instance, within a minute. The later of the two
	// counts. Default: never.
	RefuseBefore time.Time
	// LongestRequest is the longest time that a request of a wrapped handler can take to arrive and be processed, even if
	// the handler is gone. It is also the default of Topic.LongestRequest. Default 1 min.
	LongestRequest time.Duration
	// ListingDelay is the longest time until an operation's Probe finds what its wrapped handler made. It is also the
	// default of Topic.ListingDelay. Default 0.
	ListingDelay time.Duration
	// FreezeAllowance is the longest time for which a process may be frozen between the last look at its call's deadline and the
	// moment at which the request leaves. A message's absence is proof only after this time too, and no key is used again so
	// shortly before the provider forgets it. Package call looks right before it sends; a Call of your own that does not look at its
	// context then is bounded by nothing else. Default 1 min, as idem.Config.FreezeAllowance, which is for wrapped operations.
	FreezeAllowance time.Duration
	// ClockSkew is the largest difference between two instances' clocks. Default DefaultClockSkew. It must be at least
	// idem.Config.ClockSkew.
	ClockSkew time.Duration
	// BackoffMin and BackoffMax bound the pause after a call without a definite answer; its upper end doubles with each
	// attempt and the pause is drawn from all of it. Defaults 1 s and 30 s.
	BackoffMin, BackoffMax time.Duration
	// ProbeBackoffMin and ProbeBackoffMax bound the pause after a probe of a message or a record that decided nothing.
	// The pause grows with the time since which probes have decided nothing. Defaults 1 min and 1 h.
	ProbeBackoffMin, ProbeBackoffMax time.Duration
	// SweepGrace is how much later than its due time a message's place in the sweep's queue is. The sweep looks ahead by
	// what SweepGrace exceeds ClaimLease by, so it leaves a due message to its wake-up for the shorter of the two.
	// Default 15 s, so that a first claim within 5 s moves no place.
	SweepGrace time.Duration
	// SweepPage is how many messages, or records, a [Runner] lists at once. Default 100. What is offered unread (WakeUpsMax)
	// is listed by up to 1,000.
	SweepPage int
	// SweepMax bounds how many messages, and how many records, one run of it reads; of messages that are unknown, how many of
	// each topic. The next run continues there. Default 10,000. It does not bound what is offered unread (WakeUpsMax).
	SweepMax int
	// SweepConcurrency is how many messages of each of its queues one run of a [Runner] looks at at once, and how many
	// records. Of messages that are unknown it is the number of each topic (Topic.ProbesMax); of unknown records, where there
	// are several probes, that of each operation. Of what is offered unread it is the number of batches. Default 8; at least
	// 1: then everything happens one after the other.
	//
	// A provider that hangs holds up the looks of its own topics: each takes CallTimeout then, and about 80 end in a minute.
	// With a run a minute this keeps up with about 4,500 unknown messages of each of its topics, because each is asked about
	// once in ProbeBackoffMax in the end.
	SweepConcurrency int
	// WakeUpsMax lets the sweep offer due messages without reading them, in batches, until so many wake-ups wait in the queue. Default
	// 0: the sweep reads each message, and offers it alone. Every process that delivers must have the same value as the sweep, and the
	// queue must be a [BatchWakeUps].
	//
	// The worker that receives a wake-up reads the message then, and does what the sweep would have done: it parks the message, gives
	// it up, or cancels it. A wake-up that meets a live claim, or comes too early, is dropped: the next run of the sweep offers the
	// message again.
	//
	// The value divided by the sweep's period is the rate at which a backlog is worked off: 200,000 with a run a minute are up to 3,333
	// messages a second. A message is offered again while its wake-up still waits, and the value bounds these copies. A copy costs a
	// tenth of a request to the queue, and its receiver a read. Where the queue is full, a run still offers up to 100 messages of each
	// shard.
	WakeUpsMax int
	// InlinePause is how long an [Inline] leaves messages of a tenant and a topic to the worker after one of their calls was slow.
	// Each pause is drawn from half of it to one and a half times as much, so that processes do not probe at the same time.
	// When it is over, one call is made within its request: if that is slow too, the next pause begins. Default 30 s.
	InlinePause time.Duration
	// InlineSlowAfter is from when on a call counts as slow. One that times out always does. Default half of CallTimeout.
	InlineSlowAfter time.Duration
	// InlineSlowMax is after how many slow calls of a topic, with no quick one between them, the pause is for all tenants.
	// Default 3.
	InlineSlowMax int
	// InlineWakes has an [Inline] ask the queue for a wake-up of each message that it leaves to the worker. Set it where no relay of
	// the table's stream does that, as in a container with package memqueue: otherwise such a message waits for the sweep.
	// Default false.
	InlineWakes bool
	// StoreTimeout bounds one call to the store. A call that takes longer counts as one without a reply. Default 3 s.
	StoreTimeout time.Duration
	// ContentionTries bounds how often a write is tried that fails because of another transaction or a throttle. Evidence
	// is sent for as long as SettleMax and KeepMax say. Default 6; at most 250.
	ContentionTries int
	// ResponseBytesMax bounds a stored response, headers included, which have at most 64 KiB ([storage.ResponseHeaderBytesMax]).
	// Default 3 MiB; at most 3.5 MiB, as in [idem.Config].
	ResponseBytesMax int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Random is a cryptographic source of randomness, for owners and jitter; workers and runners use it concurrently. Default
	// crypto/rand.Reader.
	Random io.Reader
	// Pause waits, or returns the context's error. Default [idem.Pause].
	Pause func(context.Context, time.Duration) error
	// Logger gets one line for each decision about a message or a record, beside the engine's own lines. Lines with
	// alarm=true need an operator. It never gets payloads or keys. Default slog.Default(), as it is when the topics are made;
	// slog.New(slog.DiscardHandler) silences it.
	Logger *slog.Logger
	// Tracer records a span for each delivery, in the trace of the request that sent the message, and for each sweep and
	// reconciliation. Default: that of the span which the context carries, else none.
	Tracer trace.Tracer
}

const (
	responseBytesBound = 3584 << 10
	fallbackBytes      = 4 << 10     // what the default fallback never exceeds
	answerTime         = time.Second // is left of an invocation after a claim, to answer in
)

func (c Config) withDefaults() Config {
	c.ClaimLease = cmp.Or(c.ClaimLease, 10*time.Second)
	c.CallTimeout = cmp.Or(c.CallTimeout, 5*time.Second)
	c.SettleMargin = cmp.Or(c.SettleMargin, 2*time.Second)
	c.SettleMax = cmp.Or(c.SettleMax, 10*time.Second)
	c.KeepMax = cmp.Or(c.KeepMax, 10*time.Minute)
	c.LongestRequest = cmp.Or(c.LongestRequest, time.Minute)
	c.FreezeAllowance = cmp.Or(c.FreezeAllowance, time.Minute)
	c.ClockSkew = cmp.Or(c.ClockSkew, DefaultClockSkew)
	c.BackoffMin = cmp.Or(c.BackoffMin, time.Second)
	c.BackoffMax = cmp.Or(c.BackoffMax, 30*time.Second)
	c.ProbeBackoffMin = cmp.Or(c.ProbeBackoffMin, time.Minute)
	c.ProbeBackoffMax = cmp.Or(c.ProbeBackoffMax, time.Hour)
	c.SweepGrace = cmp.Or(c.SweepGrace, 15*time.Second)
	c.SweepPage = cmp.Or(c.SweepPage, 100)
	c.SweepMax = cmp.Or(c.SweepMax, 10_000)
	c.SweepConcurrency = cmp.Or(c.SweepConcurrency, 8)
	c.InlinePause = cmp.Or(c.InlinePause, 30*time.Second)
	c.InlineSlowAfter = cmp.Or(c.InlineSlowAfter, c.CallTimeout/2)
	c.InlineSlowMax = cmp.Or(c.InlineSlowMax, 3)
	c.StoreTimeout = cmp.Or(c.StoreTimeout, 3*time.Second)
	c.ContentionTries = cmp.Or(c.ContentionTries, 6)
	c.ResponseBytesMax = cmp.Or(c.ResponseBytesMax, 3<<20)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Pause == nil {
		c.Pause = idem.Pause
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
		{"ClaimLease", c.ClaimLease}, {"CallTimeout", c.CallTimeout}, {"SettleMargin", c.SettleMargin}, {"SettleMax", c.SettleMax},
		{"KeepMax", c.KeepMax}, {"LongestRequest", c.LongestRequest}, {"FreezeAllowance", c.FreezeAllowance}, {"ClockSkew", c.ClockSkew}, {"BackoffMin", c.BackoffMin}, {"ProbeBackoffMin", c.ProbeBackoffMin}, {"SweepGrace", c.SweepGrace}, {"StoreTimeout", c.StoreTimeout},
		{"InlinePause", c.InlinePause},
	} {
		if d.value < time.Millisecond {
			return &idem.ConfigError{Field: "Config." + d.field, Value: d.value, Rule: "must be at least 1 ms, the resolution that is stored"}
		}
	}
	broken := func(field string, value any, format string, args ...any) error {
		return &idem.ConfigError{Field: "Config." + field, Value: value, Rule: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.ListingDelay < 0:
		return broken("ListingDelay", c.ListingDelay, "must not be negative")
	case c.ClaimLease < c.CallTimeout+c.SettleMargin:
		return broken("ClaimLease", c.ClaimLease, "must be at least CallTimeout + SettleMargin = %v: a call must end within its caller's lease", c.CallTimeout+c.SettleMargin)
	case c.FunctionTimeout != 0 && c.FunctionTimeout < c.ClaimLease+answerTime:
		return broken("FunctionTimeout", c.FunctionTimeout, "must be at least ClaimLease + %v = %v: less leaves no time to call and to settle", answerTime, c.ClaimLease+answerTime)
	case c.BackoffMax < c.BackoffMin:
		return broken("BackoffMax", c.BackoffMax, "must be at least BackoffMin = %v", c.BackoffMin)
	case c.ProbeBackoffMax < c.ProbeBackoffMin:
		return broken("ProbeBackoffMax", c.ProbeBackoffMax, "must be at least ProbeBackoffMin = %v", c.ProbeBackoffMin)
	case c.SweepPage < 1 || c.SweepMax < 1:
		return broken("SweepPage, SweepMax", fmt.Sprintf("%d, %d", c.SweepPage, c.SweepMax), "must be at least 1")
	case c.SweepConcurrency < 1:
		return broken("SweepConcurrency", c.SweepConcurrency, "must be at least 1")
	case c.InlineSlowAfter < 0:
		return broken("InlineSlowAfter", c.InlineSlowAfter, "must not be negative")
	case c.InlineSlowMax < 1:
		return broken("InlineSlowMax", c.InlineSlowMax, "must be at least 1")
	case c.WakeUpsMax < 0:
		return broken("WakeUpsMax", c.WakeUpsMax, "must not be negative")
	case c.ContentionTries < 1 || c.ContentionTries > attemptsBound:
		return broken("ContentionTries", c.ContentionTries, "must be 1..%d", attemptsBound)
	case c.ResponseBytesMax < fallbackBytes || c.ResponseBytesMax > responseBytesBound:
		return broken("ResponseBytesMax", c.ResponseBytesMax, "must be %d..%d", fallbackBytes, responseBytesBound)
	}
	return nil
}
